package codec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Each case spoils a good record in one way.
func TestForeignRecords(t *testing.T) {
	pod := podWith(app("main", "nvidia.com/gpu", "2", "nvidia.com/gpumem", "3000", "nvidia.com/gpucores", "30"))
	good := bind(t, pod, placed(granted("main", 0, gpu.App, sliceOf(gpu.Nvidia, "GPU-a", 0, 3000, 30), sliceOf(gpu.Nvidia, "GPU-b", 1, 3000, 30))))
	wholePod := podWith(app("main", "nvidia.com/gpu", "1", "nvidia.com/gpumem", "3000", "nvidia.com/gpucores", "100"))
	wholeGood := bind(t, wholePod, placed(granted("main", 0, gpu.App, whole(gpu.Nvidia, "GPU-a", 0, 3000))))
	if !Ours(good) || !Ours(wholeGood) {
		t.Fatal("the good records are not ours")
	}
	replaced := func(of *corev1.Pod, old, new string) *corev1.Pod {
		t.Helper()
		p := of.DeepCopy()
		text := p.Annotations[AnnotationAllocation]
		p.Annotations[AnnotationAllocation] = strings.Replace(text, old, new, 1)
		if p.Annotations[AnnotationAllocation] == text {
			t.Fatalf("%q is not in %s", old, text)
		}
		return p
	}
	changed := func(of *corev1.Pod, f func(*corev1.Pod)) *corev1.Pod {
		p := of.DeepCopy()
		f(p)
		return p
	}
	tests := map[string]struct {
		pod  *corev1.Pod
		want string // why
	}{
		"no JSON":              {changed(good, func(p *corev1.Pod) { p.Annotations[AnnotationAllocation] = "x" }), "invalid character 'x' looking for beginning of value"},
		"empty":                {changed(good, func(p *corev1.Pod) { p.Annotations[AnnotationAllocation] = "" }), "unexpected end of JSON input"},
		"another version":      {replaced(good, `"version":1`, `"version":2`), "version: 2 is not 1"},
		"no time":              {replaced(good, "2026-03-01T12:00:00Z", "yesterday"), `boundAt: "yesterday" is not a time like 2026-01-02T15:04:05Z`},
		"another zone":         {replaced(good, "12:00:00Z", "20:00:00+08:00"), `boundAt: "2026-03-01T20:00:00+08:00" is not a time like 2026-01-02T15:04:05Z`},
		"negative epoch":       {replaced(good, `"epoch":0`, `"epoch":-1`), "epoch: -1 is negative"},
		"a field unknown":      {replaced(good, `"epoch":0`, `"epoch":0,"x":1`), `unknown field "x"`},
		"a field twice":        {replaced(good, `"epoch":0`, `"epoch":0,"epoch":1`), `duplicate field "epoch"`},
		"a field missing":      {replaced(good, `"epoch":0,`, ""), "a field is missing or null"},
		"a figure missing":     {replaced(good, `"cores":30,`, ""), "a field is missing or null"},
		"a figure null":        {replaced(good, `"cores":30,`, `"cores":null,`), "a field is missing or null"},
		"a name in upper case": {replaced(good, `"cores":30,`, `"Cores":30,`), `unknown field "containers[0].cards[0].Cores"`},
		"no container": {changed(good, func(p *corev1.Pod) {
			p.Annotations[AnnotationAllocation] = `{"version":1,"tenant":"team-a","boundAt":"2026-03-01T12:00:00Z","epoch":0,"containers":[]}`
		}), "0 containers have cards, 1 ask for some"},
		"another container":     {replaced(good, `"main"`, `"other"`), "container other has cards and asks for none"},
		"not an init container": {replaced(good, `"init":false`, `"init":true`), "container main: init is true"},
		"another vendor": {changed(good, func(p *corev1.Pod) {
			p.Annotations[AnnotationAllocation] = strings.ReplaceAll(p.Annotations[AnnotationAllocation], "nvidia", "metax")
		}), "container main: card GPU-a is of metax, not of nvidia"},
		"a card twice": {replaced(good, "GPU-b", "GPU-a"), `container main: card "GPU-a" is named twice`},
		"less memory":  {replaced(good, `"memoryMiB":3000`, `"memoryMiB":2999`), "container main: card GPU-a: 2999 MiB, asks for 3000"},
		"more memory":  {replaced(good, `"memoryMiB":3000`, `"memoryMiB":3001`), "container main: card GPU-a: 3001 MiB, asks for 3000"},
		"less compute": {replaced(good, `"cores":30`, `"cores":0`), "container main: card GPU-a: 0 percent of compute, asks for 30"},
		"negative":     {replaced(good, `"memoryMiB":3000`, `"memoryMiB":-3000`), `container main: card "GPU-a": memoryMiB: -3000 is outside 1..10485760`},
		"past int64":   {replaced(good, `"memoryMiB":3000`, `"memoryMiB":9223372036854775808`), "json: cannot unmarshal number 9223372036854775808 into Go struct field allocatedCard.containers.cards.memoryMiB of type gpu.MiB"},
		"a card too many": {changed(good, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = quantities("nvidia.com/gpu", "1", "nvidia.com/gpumem", "3000", "nvidia.com/gpucores", "30")
		}), "container main: has 2 cards, asks for 1"},
		"exclusive for less": {changed(good, func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = quantities("nvidia.com/gpu", "2") }), "container main: card GPU-a: exclusive is false"},
		"one more asks":      {changed(good, app("second", "nvidia.com/gpu", "1")), "1 containers have cards, 2 ask for some"},
		"shared for whole":   {replaced(wholeGood, `"exclusive":true,"isolation":"exclusive"`, `"exclusive":false,"isolation":"soft"`), "container main: card GPU-a: exclusive is false"},
		"too small a card":   {replaced(wholeGood, `"memoryMiB":3000`, `"memoryMiB":2999`), "container main: card GPU-a: 2999 MiB, asks for 3000"},
		"of another node":    {changed(good, boundTo("n2")), `made for node "n1"`},
		"written by hand":    {changed(good, func(p *corev1.Pod) { delete(p.Annotations, AnnotationHAMiNode) }), `made for node ""`},
		"bound by another":   {changed(good, func(p *corev1.Pod) { p.Labels = nil }), "label heteroflow.io/bound-by is missing: not bound by us"},
		"a request that is invalid by now": {changed(good, requesting("nvidia.com/gpu", "1")),
			"containers[main]: nvidia.com/gpu: requests has 1 but limits has 2; they have to be equal"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := allocated(tc.pod)
			sameFaults(t, err, tc.want)
			if Ours(tc.pod) {
				t.Error("ours")
			}
			want := placed()
			want.Tenant = ""
			want.Node = gpu.NodeID(tc.pod.Spec.NodeName)
			want.Foreign = []gpu.Foreign{{Vendor: gpu.Nvidia, Cards: gpu.AllCards}}
			if diff := cmp.Diff(want, Placement(tc.pod)); diff != "" {
				t.Errorf("placement (-want +got):\n%s", diff)
			}
		})
	}
}

func TestForeignPods(t *testing.T) {
	nvidia := func(n int) []gpu.Foreign { return []gpu.Foreign{{Vendor: gpu.Nvidia, Cards: n}} }
	anything := []gpu.Foreign{{Cards: gpu.AllCards}}
	tests := map[string]struct {
		pod  *corev1.Pod
		want []gpu.Foreign
	}{
		"no cards":                        {podWith(app("main", "cpu", "1")), nil},
		"a count of 0":                    {podWith(app("main", "nvidia.com/gpu", "0")), nil},
		"whole cards":                     {podWith(app("a", "nvidia.com/gpu", "2"), app("b", "nvidia.com/gpu", "1")), nvidia(3)},
		"shares of HAMi's":                {podWith(app("main", "nvidia.com/gpu", "2", "nvidia.com/gpumem", "100")), nvidia(2)},
		"a larger init container":         {podWith(initContainer("i", "nvidia.com/gpu", "4"), initContainer("j", "nvidia.com/gpu", "1"), app("a", "nvidia.com/gpu", "1")), nvidia(4)},
		"a smaller one":                   {podWith(initContainer("i", "nvidia.com/gpu", "1"), app("a", "nvidia.com/gpu", "2")), nvidia(2)},
		"a sidecar":                       {podWith(sidecar("s", "nvidia.com/gpu", "1"), initContainer("i", "nvidia.com/gpu", "4"), app("a", "nvidia.com/gpu", "2")), nvidia(5)},
		"memory without a count":          {podWith(app("main", "nvidia.com/gpumem", "100")), nvidia(gpu.AllCards)},
		"... beside one with":             {podWith(app("a", "nvidia.com/gpu", "1"), app("b", "nvidia.com/gpucores", "10")), nvidia(gpu.AllCards)},
		"a request that cannot be read":   {podWith(app("main", "nvidia.com/gpu", "65")), nvidia(gpu.AllCards)},
		"requests alone":                  {podWith(app("main"), requesting("nvidia.com/gpu", "1")), nvidia(gpu.AllCards)},
		"neutral":                         {podWith(app("main", "heteroflow.io/gpu", "1")), anything},
		"a plugin's whole cards":          {podWith(app("main", "metax-tech.com/gpu", "2")), []gpu.Foreign{{Vendor: gpu.Metax, Cards: 2}}},
		"shares that only HAMi counts":    {podWith(app("main", "metax-tech.com/sgpu", "2")), []gpu.Foreign{{Vendor: gpu.Metax, Cards: gpu.AllCards}}},
		"... beside whole cards":          {podWith(app("a", "metax-tech.com/sgpu", "2"), app("b", "metax-tech.com/gpu", "1")), []gpu.Foreign{{Vendor: gpu.Metax, Cards: gpu.AllCards}}},
		"a model's names":                 {podWith(app("main", "huawei.com/Ascend910B3", "1")), []gpu.Foreign{{Vendor: gpu.Ascend, Cards: gpu.AllCards}}},
		"a model's, of a stock plugin":    {podWith(app("main", "huawei.com/Ascend310P", "2")), []gpu.Foreign{{Vendor: gpu.Ascend, Cards: 2}}},
		"plain whole cards":               {podWith(app("a", "huawei.com/Ascend910", "2"), app("b", "huawei.com/npu", "1")), []gpu.Foreign{{Vendor: gpu.Ascend, Cards: 3}}},
		"... of init containers":          {podWith(sidecar("s", "hygon.com/dcu", "1"), initContainer("i", "hygon.com/dcu", "4"), app("a", "hygon.com/dcu", "2")), []gpu.Foreign{{Vendor: gpu.Hygon, Cards: 5}}},
		"... of two vendors":              {podWith(app("a", "cambricon.com/mlu", "2", "mthreads.com/gpu", "1")), []gpu.Foreign{{Vendor: gpu.Cambricon, Cards: 2}, {Vendor: gpu.Musa, Cards: 1}}},
		"plain parts":                     {podWith(app("main", "nvidia.com/mig-1g.5gb", "1")), nvidia(gpu.AllCards)},
		"... beside whole cards, plain":   {podWith(app("a", "iluvatar.com/gpu", "1"), app("b", "iluvatar.ai/gpu", "1")), []gpu.Foreign{{Vendor: gpu.Iluvatar, Cards: gpu.AllCards}}},
		"plain beside ours":               {podWith(app("a", "nvidia.com/gpu", "1"), app("b", "huawei.com/Ascend910", "1")), []gpu.Foreign{{Vendor: gpu.Ascend, Cards: gpu.AllCards}, {Vendor: gpu.Nvidia, Cards: gpu.AllCards}}},
		"plain beside the neutral":        {podWith(app("a", "heteroflow.io/gpu", "1"), app("b", "huawei.com/Ascend910", "1")), anything},
		"plain, in requests alone":        {podWith(app("main"), requesting("iluvatar.com/gpu", "1")), []gpu.Foreign{{Vendor: gpu.Iluvatar, Cards: gpu.AllCards}}},
		"plain, past any number":          {podWith(app("main", "iluvatar.com/gpu", "65")), []gpu.Foreign{{Vendor: gpu.Iluvatar, Cards: gpu.AllCards}}},
		"plain, none of the parts":        {podWith(app("main", "iluvatar.com/gpu", "1", "iluvatar.ai/gpu", "0")), []gpu.Foreign{{Vendor: gpu.Iluvatar, Cards: 1}}},
		"plain, none":                     {podWith(app("main", "iluvatar.com/gpu", "0")), nil},
		"plain, with a record":            {podWith(app("main", "iluvatar.com/gpu", "1"), annotated(AnnotationAllocation, "{}")), []gpu.Foreign{{Vendor: gpu.Iluvatar, Cards: gpu.AllCards}}},
		"neutral and a vendor's":          {podWith(app("a", "heteroflow.io/gpu-memory", "100"), app("b", "nvidia.com/gpu", "1")), anything},
		"an unknown name of ours":         {podWith(app("main", "heteroflow.io/gpus", "1")), anything},
		"a record on one that asks for 0": {podWith(app("main"), annotated(AnnotationAllocation, "{}")), anything},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			boundTo("n1")(tc.pod)
			if Ours(tc.pod) {
				t.Error("ours")
			}
			if diff := cmp.Diff(tc.want, Placement(tc.pod).Foreign); diff != "" {
				t.Errorf("foreign (-want +got):\n%s", diff)
			}
		})
	}
}

// The tenant of the record is for people: whatever it says, by our hand at another
// time or by somebody else's, the cards count, and whose the pod is stays open. Who
// may sit beside whom is never taken from what a pod's author can write.
func TestTenantOfPlacement(t *testing.T) {
	p := placed(granted("main", 0, gpu.App, whole(gpu.Nvidia, "GPU-a", 0, 100)))
	for _, recorded := range []gpu.TenantID{"team-a", "namespace/team-a", "blue", ""} {
		p.Tenant = recorded
		bound := bind(t, podWith(app("main", "nvidia.com/gpu", "1")), p)
		if !Ours(bound) {
			t.Errorf("recorded for tenant %q: not ours", recorded)
		}
		got := Placement(bound)
		if got.Tenant != "" || len(got.Grants) != 1 || len(got.Foreign) != 0 {
			t.Errorf("recorded for tenant %q: placement %+v", recorded, got)
		}
	}
}

// What an author writes onto a running pod does not change what it holds.
func TestLaterAnnotationsDoNotMatter(t *testing.T) {
	p := placed(granted("main", 0, gpu.App, whole(gpu.Nvidia, "GPU-a", 0, 100)))
	bound := bind(t, podWith(app("main", "nvidia.com/gpu", "1")), p)
	annotated("heteroflow.io/numa", "x", "heteroflow.io/nonsense", "1", "heteroflow.io/gpu-type", "ascend")(bound)
	if !Ours(bound) {
		t.Error("not ours any more")
	}
}

// Nor does what is written into the record of numbers: a pod's own author could
// close the whole node by it.
func TestPlacementDoesNotDependOnNumbers(t *testing.T) {
	p := placed(granted("main", 0, gpu.App, whole(gpu.Nvidia, "GPU-a", 0, 100)))
	for _, record := range []string{"garbage", "{}", `{"main":-1}`, `{"main":7}`, ""} {
		pod := podWith(app("main", "nvidia.com/gpu", "1"))
		bound := bind(t, pod, p)
		annotated(AnnotationContainers, record)(bound)
		if diff := cmp.Diff(reread(t, pod, p), Placement(bound)); diff != "" || !Ours(bound) {
			t.Errorf("%q: ours %t, placement (-want +got):\n%s", record, Ours(bound), diff)
		}
		foreign := podWith(app("main", "nvidia.com/gpu", "2"), boundTo("n1"), annotated(AnnotationContainers, record))
		if diff := cmp.Diff([]gpu.Foreign{{Vendor: gpu.Nvidia, Cards: 2}}, Placement(foreign).Foreign); diff != "" {
			t.Errorf("%q, of another scheduler (-want +got):\n%s", record, diff)
		}
	}
}

func TestOursNeedsANode(t *testing.T) {
	bound := bind(t, podWith(app("main", "nvidia.com/gpu", "1")), placed(granted("main", 0, gpu.App, whole(gpu.Nvidia, "GPU-a", 0, 100))))
	bound.Spec.NodeName = ""
	delete(bound.Annotations, AnnotationHAMiNode)
	if Ours(bound) {
		t.Error("a pod that is not bound is ours")
	}
}

func TestEndedAndActive(t *testing.T) {
	running := []corev1.ContainerStatus{
		{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
		{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}
	tests := map[string]struct {
		node          string
		status        corev1.PodStatus
		ended, active bool
	}{
		"unbound":                    {"", corev1.PodStatus{Phase: corev1.PodPending}, false, false},
		"bound, not started":         {"n1", corev1.PodStatus{Phase: corev1.PodPending}, false, true},
		"no phase yet":               {"n1", corev1.PodStatus{}, false, true},
		"running":                    {"n1", corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: running}, false, true},
		"node lost":                  {"n1", corev1.PodStatus{Phase: corev1.PodUnknown}, false, true},
		"succeeded":                  {"n1", corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: running[:1]}, true, false},
		"failed":                     {"n1", corev1.PodStatus{Phase: corev1.PodFailed}, true, false},
		"failed before it was bound": {"", corev1.PodStatus{Phase: corev1.PodFailed}, true, false},
		"marked by pod collection":   {"n1", corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: running}, false, true},
		"... while a sidecar runs":   {"n1", corev1.PodStatus{Phase: corev1.PodFailed, InitContainerStatuses: running}, false, true},
		"... while somebody debugs":  {"n1", corev1.PodStatus{Phase: corev1.PodFailed, EphemeralContainerStatuses: running}, false, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := podWith(boundTo(tc.node))
			pod.Status = tc.status
			if Ended(pod) != tc.ended || Active(pod) != tc.active {
				t.Errorf("ended %t, active %t; want %t, %t", Ended(pod), Active(pod), tc.ended, tc.active)
			}
		})
	}
}
