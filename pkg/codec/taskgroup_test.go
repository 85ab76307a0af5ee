package codec

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/policy"
)

// The members of a TaskGroup and what it is called are found by each other, whatever
// both are called.
func TestGroupOfATaskGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		namespace := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?`)
		name := rapid.StringMatching(`[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?`)
		pod := podWith(app("main", "heteroflow.io/gpu", "1"), carrying("ai.training/job-id", "llm"), ownedBy("Job", "1", true))
		pod.Namespace = namespace.Draw(t, "namespace")
		its := name.Draw(t, "name")
		pod.Annotations[AnnotationTaskGroup] = rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "blank") + its + " "
		r, _ := Request(pod, policy.Default()) // some of these names are no DNS names, and of a group all the same
		if got := GroupOf(pod.Namespace, its); got != r.Group || !r.Gang {
			t.Errorf("the TaskGroup is %q, its member of %q, %t", got, r.Group, r.Gang)
		}
		other, another := namespace.Draw(t, "other namespace"), name.Draw(t, "another name")
		if same := other == pod.Namespace && another == its; same != (GroupOf(other, another) == r.Group) {
			t.Errorf("%s/%s is %q, as %s/%s", other, another, r.Group, pod.Namespace, its)
		}
	})
	r, err := Request(podWith(app("main", "heteroflow.io/gpu", "1"), ownedBy("Job", "1", true)), policy.Default())
	if err != nil || r.Gang {
		t.Errorf("a Job's pod is of a task group: %t, %v", r.Gang, err)
	}
	r, err = Request(podWith(app("main", "heteroflow.io/gpu", "1"), annotated(AnnotationTaskGroup, "chat", AnnotationTaskType, "inference")), policy.Default())
	if err != nil || r.Gang || r.Group == "" {
		t.Errorf("inference waits for its group: %t, %q, %v", r.Gang, r.Group, err)
	}
}

func TestRuntime(t *testing.T) {
	limit := []string{AnnotationMaxRuntime, " 90m "}
	const grace = 30 * time.Second // of who says nothing of it
	tests := map[string]struct {
		annotations []string
		byDefault   time.Duration
		want        time.Duration
	}{
		"as it says":                         {limit, 2 * time.Hour, 90*time.Minute + grace},
		"as it says, longer than default":    {limit, time.Minute, 90*time.Minute + grace},
		"as it says, without a default":      {limit, 0, 90*time.Minute + grace},
		"by default":                         {nil, 2 * time.Hour, 2*time.Hour + grace},
		"by no default":                      {nil, 0, 0},
		"past any calendar":                  {[]string{AnnotationMaxRuntime, "2562047h"}, 0, longest + grace},
		"training":                           {[]string{AnnotationTaskType, "training"}, time.Hour, time.Hour + grace},
		"inference":                          {[]string{AnnotationTaskType, "inference"}, time.Hour, 0},
		"inference, whatever it says":        {append([]string{AnnotationTaskType, "inference"}, limit...), time.Hour, 0},
		"of a group, which the ledger knows": {append([]string{AnnotationTaskGroup, "chat"}, limit...), time.Hour, 90*time.Minute + grace},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := policy.Default()
			s.DefaultTaskTimeout = tc.byDefault
			r, err := Request(podWith(app("main", "heteroflow.io/gpu", "1"), annotated(tc.annotations...)), s)
			sameFaults(t, err)
			if r.Runtime != tc.want {
				t.Errorf("runs for %s, want %s", r.Runtime, tc.want)
			}
			s.EnforceTaskTimeout = true
			if again, _ := Request(podWith(app("main", "heteroflow.io/gpu", "1"), annotated(tc.annotations...)), s); again.Runtime != tc.want {
				t.Errorf("enforced: runs for %s, want %s", again.Runtime, tc.want)
			}
		})
	}
}

func TestMaxRuntime(t *testing.T) {
	for value, want := range map[string]time.Duration{"90m": 90 * time.Minute, " 2h30m ": 150 * time.Minute, "1ns": 1, "": 0, "0s": 0, "-1h": 0, "7200": 0, "2 hours": 0} {
		if got, ok := MaxRuntime(podWith(annotated(AnnotationMaxRuntime, value))); got != want || ok != (want > 0) {
			t.Errorf("%q: %s, %t, want %s", value, got, ok, want)
		}
	}
	if got, ok := MaxRuntime(podWith()); got != 0 || ok {
		t.Errorf("nothing said: %s, %t", got, ok)
	}
}

func TestInference(t *testing.T) {
	for value, want := range map[string]bool{"inference": true, " inference ": true, "training": false, "batch": false, "": false, "Inference": false} {
		if got := Inference(podWith(annotated(AnnotationTaskType, value))); got != want {
			t.Errorf("%q: %t", value, got)
		}
	}
	if Inference(podWith()) {
		t.Error("who says nothing is inference")
	}
}

// ten is a moment that two zones call differently.
var ten = metav1.NewTime(time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC))

// chat is a service that sleeps from ten until eight, and what its members had.
func chat(t testing.TB, members ...gpu.Placement) *v1alpha1.TaskGroup {
	t.Helper()
	eight := metav1.NewTime(ten.Add(10 * time.Hour))
	g := &v1alpha1.TaskGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "chat"}, Spec: v1alpha1.TaskGroupSpec{Type: v1alpha1.TaskGroupInference}}
	g.Status.Next = &v1alpha1.TaskGroupChange{At: ten, Until: &eight, Replicas: 2, TimeZone: "Europe/Berlin"}
	if len(members) == 0 {
		return g
	}
	g.Status.Next = &v1alpha1.TaskGroupChange{At: eight, Opens: true, TimeZone: "Europe/Berlin"}
	g.Status.Kept = &v1alpha1.TaskGroupKept{From: eight}
	for i := range members {
		text, err := EncodeClaim(&members[i])
		if err != nil {
			t.Fatal(err)
		}
		g.Status.Kept.Members = append(g.Status.Kept.Members,
			v1alpha1.TaskGroupMember{UID: types.UID(members[i].Pod), Node: string(members[i].Node), Allocation: text})
	}
	return g
}

// had is what the member had.
func had(pod string) gpu.Placement {
	return gpu.Placement{
		Pod: gpu.PodID(pod), Namespace: "team-a", Node: "n1", Group: "team-a/heteroflow.io/task-group=chat",
		Grants: []gpu.Grant{granted("main", 0, gpu.App, whole(gpu.Nvidia, "GPU-"+pod, 0, 1000))},
	}
}

func TestService(t *testing.T) {
	const group = "team-a/heteroflow.io/task-group=chat"
	at := func(hour int) string { return fmt.Sprintf("2026-11-30 %02d:00 CET", hour) }
	closing := &ledger.Closing{At: ten.Time, Until: ten.Add(10 * time.Hour), Stay: 2}
	tests := map[string]struct {
		change func(*v1alpha1.TaskGroup)
		want   ledger.Service
		zone   string // of the times
	}{
		"about to close":          {func(*v1alpha1.TaskGroup) {}, ledger.Service{Closing: closing}, at(22)},
		"for good":                {func(g *v1alpha1.TaskGroup) { g.Status.Next.Until = nil }, ledger.Service{Closing: &ledger.Closing{At: ten.Time, Stay: 2}}, at(22)},
		"about to open":           {func(g *v1alpha1.TaskGroup) { g.Status.Next.Opens = true }, ledger.Service{}, ""},
		"nothing said yet":        {func(g *v1alpha1.TaskGroup) { g.Status = v1alpha1.TaskGroupStatus{} }, ledger.Service{}, ""},
		"in no zone":              {func(g *v1alpha1.TaskGroup) { g.Status.Next.TimeZone = "" }, ledger.Service{Closing: closing}, "2026-11-30 21:00 UTC"},
		"nobody had anything":     {func(g *v1alpha1.TaskGroup) { g.Status.Kept = &v1alpha1.TaskGroupKept{From: ten} }, ledger.Service{Closing: closing}, at(22)},
		"one had something":       {func(g *v1alpha1.TaskGroup) { *g = *chat(t, had("a")) }, ledger.Service{Kept: []gpu.Placement{had("a")}, From: ten.Add(10 * time.Hour)}, "2026-12-01 08:00 CET"},
		"two had, in their order": {func(g *v1alpha1.TaskGroup) { *g = *chat(t, had("b"), had("a")) }, ledger.Service{Kept: []gpu.Placement{had("b"), had("a")}, From: ten.Add(10 * time.Hour)}, "2026-12-01 08:00 CET"},
		"asleep, and no change is near": {func(g *v1alpha1.TaskGroup) { *g = *chat(t, had("a")); g.Status.Next = nil },
			ledger.Service{Kept: []gpu.Placement{had("a")}, From: ten.Add(10 * time.Hour)}, "2026-12-01 07:00 UTC"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := chat(t)
			tc.change(g)
			got, err := Service(g)
			sameFaults(t, err)
			tc.want.Group, tc.want.Name = group, "team-a/chat"
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			const layout = "2006-01-02 15:04 MST"
			if tc.zone != "" && got.From.Format(layout) != tc.zone && (got.Closing == nil || got.Closing.At.Format(layout) != tc.zone) {
				t.Errorf("people read %v, %s, want %s", got.Closing, got.From.Format(layout), tc.zone)
			}
			if got.Closing != nil && !got.Closing.Until.IsZero() && got.Closing.Until.Location().String() != got.Closing.At.Location().String() {
				t.Errorf("it ends in another zone than it begins: %s", got.Closing.Until)
			}
		})
	}
}

// A service that cannot be wholly read is one all the same: its members are placed. But
// of what it takes back nothing is believed then.
func TestServicesThatCannotBeRead(t *testing.T) {
	member := func(change func(*v1alpha1.TaskGroupMember)) func(*v1alpha1.TaskGroup) {
		return func(g *v1alpha1.TaskGroup) { change(&g.Status.Kept.Members[1]) }
	}
	const at = "TaskGroup team-a/chat: "
	another := had("b")
	another.Group = "team-a/heteroflow.io/task-group=other"
	theirs, err := EncodeClaim(&another)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*v1alpha1.TaskGroup)
		want   []string
	}{
		"no JSON": {member(func(m *v1alpha1.TaskGroupMember) { m.Allocation = "{" }), []string{at + "status.kept.members[1].allocation: unexpected end of JSON input"}},
		"no cards": {member(func(m *v1alpha1.TaskGroupMember) {
			m.Allocation = `{"version":1,"group":"team-a/heteroflow.io/task-group=chat","containers":[]}`
		}), []string{at + "status.kept.members[1].allocation: has no cards"}},
		"of another group": {member(func(m *v1alpha1.TaskGroupMember) { m.Allocation = theirs }), []string{at + `status.kept.members[1].allocation: group: "team-a/heteroflow.io/task-group=other" is not "team-a/heteroflow.io/task-group=chat"`}},
		"nobody":           {member(func(m *v1alpha1.TaskGroupMember) { m.UID = "" }), []string{at + "status.kept.members[1].uid: is missing"}},
		"nowhere":          {member(func(m *v1alpha1.TaskGroupMember) { m.Node = "" }), []string{at + "status.kept.members[1].node: is missing"}},
		"one twice":        {member(func(m *v1alpha1.TaskGroupMember) { m.UID = "a" }), []string{at + "status.kept.members[1].uid: a is named twice"}},
		"since never":      {func(g *v1alpha1.TaskGroup) { g.Status.Kept.From = metav1.Time{} }, []string{at + "status.kept.from: is missing"}},
		"several": {func(g *v1alpha1.TaskGroup) {
			g.Status.Kept.Members[0].UID, g.Status.Kept.Members[1].Node = "", ""
			g.Status.Next = &v1alpha1.TaskGroupChange{Replicas: -1}
		}, []string{at + "status.next.at: is missing", "status.kept.members[0].uid: is missing", "status.kept.members[1].node: is missing"}},
		"fewer than none stay": {func(g *v1alpha1.TaskGroup) {
			g.Status.Next, g.Status.Kept = &v1alpha1.TaskGroupChange{At: ten, Replicas: -1}, nil
		}, []string{at + "status.next.replicas: -1 is negative"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := chat(t, had("a"), had("b"))
			tc.change(g)
			got, err := Service(g)
			sameFaults(t, err, tc.want...)
			want := ledger.Service{Group: "team-a/heteroflow.io/task-group=chat", Name: "team-a/chat"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// In which zone people are told of a time changes nothing about the time.
func TestZonesThatAreNone(t *testing.T) {
	for _, zone := range []string{"Mars/Olympus", "Local", "../../etc/passwd"} {
		closes, keeps := chat(t), chat(t, had("a"))
		closes.Status.Next.TimeZone, keeps.Status.Next.TimeZone = zone, zone
		want := fmt.Sprintf("TaskGroup team-a/chat: status.next.timeZone: %q is not a time zone of the tz database", zone)
		got, err := Service(closes)
		sameFaults(t, err, want)
		if got.Closing == nil || !got.Closing.At.Equal(ten.Time) || got.Closing.At.Location() != time.UTC {
			t.Errorf("%s: closes %v", zone, got.Closing)
		}
		got, err = Service(keeps)
		sameFaults(t, err, want)
		if len(got.Kept) != 1 || !got.From.Equal(ten.Add(10*time.Hour)) {
			t.Errorf("%s: keeps %v from %s", zone, got.Kept, got.From)
		}
	}
}

// What members hold, by whatever form they asked for it, is what is kept for them: to
// the card, as a bound pod's record has it.
func TestWhatMembersHeldIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod, p := asked(t)
		if len(p.Grants) == 0 {
			return
		}
		pod.Annotations[AnnotationTaskGroup] = "chat"
		member := Placement(bind(t, pod, p))
		text, err := EncodeClaim(&member)
		if err != nil || len(member.Foreign) > 0 {
			t.Fatalf("%v, foreign %v", err, member.Foreign)
		}
		g := &v1alpha1.TaskGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "chat"}}
		g.Status.Kept = &v1alpha1.TaskGroupKept{From: ten, Members: []v1alpha1.TaskGroupMember{{UID: "7d9c", Node: string(member.Node), Allocation: text}}}
		got, err := Service(g)
		if err != nil {
			t.Fatalf("%v", err)
		}
		want := member
		want.Name, want.CPU, want.Memory = "", 0, 0 // a promise of cards alone
		if diff := cmp.Diff([]gpu.Placement{want}, got.Kept); diff != "" {
			t.Errorf("kept (-held +kept):\n%s", diff)
		}
	})
}
