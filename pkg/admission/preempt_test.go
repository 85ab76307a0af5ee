package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const itself = "system:serviceaccount:heteroflow-system:heteroflow-scheduler"

func by(user string, q *admissionv1.AdmissionRequest) *admissionv1.AdmissionRequest {
	q.UserInfo.Username = user
	return q
}

func annotationsOf(t *testing.T, pod []byte) map[string]any {
	t.Helper()
	metadata, _ := document(t, pod).(map[string]any)["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

// What the scheduler writes on a pod that it makes in another's place stays, and only
// that, and only where it is the scheduler that writes it.
func TestSuccessorsOfTheSchedulers(t *testing.T) {
	const pod = `{metadata: {name: p, annotations: {heteroflow.io/preempt-count: "1", heteroflow.io/preempted-from: u1, heteroflow.io/preempted-by: x,
	  heteroflow.io/preemptible: "false", heteroflow.io/allocation: "{}"}}, spec: {containers: [{name: main}]}}`
	marks := map[string]any{"heteroflow.io/preempt-count": "1", "heteroflow.io/preempted-from": "u1", "heteroflow.io/preempted-by": "x", "heteroflow.io/preemptible": "false"}
	none := map[string]any{"heteroflow.io/preemptible": "false"}
	r := rules()
	r.User = itself
	for user, want := range map[string]map[string]any{
		itself: marks, "": none, "alice": none, "system:serviceaccount:other:heteroflow-scheduler": none, itself + "x": none,
	} {
		t.Run(user, func(t *testing.T) {
			after, answer := mutatedBy(t, r, by(user, creation(raw(t, pod))))
			if diff := cmp.Diff(want, annotationsOf(t, after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(answer.Warnings) != 1 {
				t.Errorf("warnings %q", answer.Warnings)
			}
		})
	}
	after, _ := mutatedBy(t, rules(), by("", creation(raw(t, pod))))
	if diff := cmp.Diff(none, annotationsOf(t, after)); diff != "" {
		t.Errorf("nobody is the scheduler where it is not said who is (-want +got):\n%s", diff)
	}
}

// A pod that its owner makes in the place of one that was ended is marked, whatever its
// author says, and however often this is asked.
func TestSuccessorsOfOwners(t *testing.T) {
	r := rules()
	r.User = itself
	r.Succeeds = func(owner types.UID) (int, bool) { return 2, owner == "owed" }
	owned := func(uid, controls, annotations string) string {
		return "{metadata: {name: p, annotations: {" + annotations + "}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: x, uid: " + uid + ", controller: " + controls +
			"}]}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: mine, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}"
	}
	numbers := map[string]any{"heteroflow.io/containers": `{"main":0}`}
	marked := map[string]any{"heteroflow.io/containers": `{"main":0}`, "heteroflow.io/preempt-count": "2"}
	for name, tc := range map[string]struct {
		pod  string
		user string
		want map[string]any
	}{
		"owed":                    {owned("owed", "true", ""), "", marked},
		"not owed":                {owned("met", "true", ""), "", numbers},
		"of who does not make it": {owned("owed", "false", ""), "", numbers},
		"marked by its author":    {owned("owed", "true", `heteroflow.io/preempt-count: "0"`), "", marked},
		"marked, and not owed":    {owned("met", "true", `heteroflow.io/preempt-count: "0"`), "", numbers},
		"made by the scheduler":   {owned("owed", "true", ""), itself, numbers},
		"owned by nobody": {"{metadata: {name: p}, spec: {schedulerName: heteroflow-scheduler, priorityClassName: mine, containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}}",
			"", numbers},
	} {
		t.Run(name, func(t *testing.T) {
			after, _ := mutatedBy(t, r, by(tc.user, creation(raw(t, tc.pod))))
			if diff := cmp.Diff(tc.want, annotationsOf(t, after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again, answer := mutatedBy(t, r, by(tc.user, creation(after)))
			if diff := cmp.Diff(document(t, after), document(t, again)); diff != "" || len(answer.Warnings) > 0 {
				t.Errorf("asked again (-first +second), with %q:\n%s", answer.Warnings, diff)
			}
		})
	}
}

// The scheduler alone marks a pod that is there.
func TestMarksAreTheSchedulers(t *testing.T) {
	r := rules()
	r.User = itself
	before := raw(t, "{metadata: {name: p}, spec: {containers: [{name: main}]}}")
	for _, mark := range []string{"preempted-by", "preempt-count", "preempted-from"} {
		after := raw(t, `{metadata: {name: p, annotations: {heteroflow.io/`+mark+`: "1"}}, spec: {containers: [{name: main}]}}`)
		for user, allowed := range map[string]bool{itself: true, "alice": false, "": false} {
			q := by(user, creation(after))
			q.Operation, q.OldObject = admissionv1.Update, runtime.RawExtension{Raw: before}
			answer, err := r.Validate(q)
			if err != nil {
				t.Fatal(err)
			}
			if answer.Allowed != allowed || !allowed && !strings.Contains(answer.Result.Message, "heteroflow.io/"+mark+": is written by the scheduler alone") {
				t.Errorf("%s by %q: allowed %t, %+v", mark, user, answer.Allowed, answer.Result)
			}
		}
	}
}
