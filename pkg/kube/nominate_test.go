package kube

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// nodeLister has these nodes.
func nodeLister(t testing.TB, nodes ...*corev1.Node) corelisters.NodeLister {
	t.Helper()
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, n := range nodes {
		if err := index.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	return corelisters.NewNodeLister(index)
}

func targetOn(node gpu.NodeID) engine.Target {
	return engine.Target{Pod: "uid-p", Namespace: "ns", Name: "p", Node: node}
}

// labelled is a node with zone a, four processors and these taints.
func labelled(name string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "a", "cores": "4"}},
		Spec:       corev1.NodeSpec{Taints: taints},
	}
}

func affinity(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
}

func expression(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

func TestSuits(t *testing.T) {
	taint := func(effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: "team", Value: "red", Effect: effect}
	}
	tolerates := func(tolerations ...corev1.Toleration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Tolerations = tolerations }
	}
	selects := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
	}
	requires := func(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Affinity = affinity(terms...) }
	}
	plain := func(*corev1.Pod) {}
	cordoned := labelled("n1")
	cordoned.Spec.Unschedulable = true
	byName := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}

	tests := map[string]struct {
		node *corev1.Node
		pod  func(*corev1.Pod)
		want bool
	}{
		"nothing against it":         {labelled("n1"), plain, true},
		"cordoned":                   {cordoned, plain, false},
		"cordoned, and tolerated":    {cordoned, tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists}), false},
		"NoSchedule":                 {labelled("n1", taint(corev1.TaintEffectNoSchedule)), plain, false},
		"NoExecute":                  {labelled("n1", taint(corev1.TaintEffectNoExecute)), plain, false},
		"PreferNoSchedule":           {labelled("n1", taint(corev1.TaintEffectPreferNoSchedule)), plain, true},
		"a taint that is tolerated":  {labelled("n1", taint(corev1.TaintEffectNoSchedule)), tolerates(corev1.Toleration{Key: "team", Value: "red"}), true},
		"one that tolerates another": {labelled("n1", taint(corev1.TaintEffectNoSchedule)), tolerates(corev1.Toleration{Key: "team", Value: "blue"}), false},
		"one of two is tolerated": {
			labelled("n1", taint(corev1.TaintEffectNoSchedule), corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoExecute}),
			tolerates(corev1.Toleration{Key: "team", Value: "red"}), false},
		"selected":                   {labelled("n1"), selects("zone", "a"), true},
		"not selected":               {labelled("n1"), selects("zone", "b"), false},
		"selected by what is not":    {labelled("n1"), selects("rack", "a"), false},
		"required":                   {labelled("n1"), requires(expression("zone", corev1.NodeSelectorOpIn, "b", "a")), true},
		"required otherwise":         {labelled("n1"), requires(expression("zone", corev1.NodeSelectorOpNotIn, "a")), false},
		"one of two terms":           {labelled("n1"), requires(expression("zone", corev1.NodeSelectorOpIn, "b"), expression("cores", corev1.NodeSelectorOpGt, "3")), true},
		"by name":                    {labelled("n1"), requires(byName), true},
		"by another name":            {labelled("n2"), requires(byName), false},
		"a term that cannot be read": {labelled("n1"), requires(expression("cores", corev1.NodeSelectorOpGt, "many")), false},
		"a pod that is bound":        {labelled("n1"), func(p *corev1.Pod) { p.Spec.NodeName = "n2" }, false},
		"a pod that is going":        {labelled("n1"), terminating(30), false},
		"another pod of its name":    {labelled("n1"), func(p *corev1.Pod) { p.UID = "other" }, false},
		"a pod that is not seen":     {labelled("n1"), func(p *corev1.Pod) { p.Name = "other" }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := unbound("p")
			tc.pod(pod)
			pods := &Pods{Lister: lister(t, pod), Nodes: nodeLister(t, tc.node)}
			if got := pods.Suits(targetOn(gpu.NodeID(tc.node.Name))); got != tc.want {
				t.Errorf("suits: %t, want %t", got, tc.want)
			}
			if pods.Suits(targetOn("n3")) {
				t.Error("a node that is not there suits")
			}
		})
	}
}

// written is one request to the API server.
type written struct{ Type, Body string }

// records answers PATCH of the pod's status as how says, and GET with the pod.
func records(t *testing.T, pod *corev1.Pod, how func(http.ResponseWriter), into *[]written) func(*apiServer) {
	return func(s *apiServer) {
		s.other = func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			switch r.Method + " " + r.URL.Path {
			case "PATCH /api/v1/namespaces/ns/pods/p/status":
				*into = append(*into, written{r.Header.Get("Content-Type"), string(body)})
				how(w)
			case "GET /api/v1/namespaces/ns/pods/p":
				answer(w, pod)
			default:
				refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no such pod")
			}
		}
	}
}

func invalid(w http.ResponseWriter) {
	refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "status.nominatedNodeName: Forbidden")
}

func unreachable(w http.ResponseWriter) {
	refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcd")
}

func nominatedTo(node string) *corev1.Pod {
	pod := unbound("p")
	pod.Status.NominatedNodeName = node
	return pod
}

// A nomination is one request for that very pod. What somebody else nominates is
// left alone, and a pod that has been bound meanwhile is no fault.
func TestNominate(t *testing.T) {
	accepts := func(w http.ResponseWriter) { answer(w, nominatedTo("n1")) }
	tests := map[string]struct {
		cached, live      *corev1.Pod
		how               func(http.ResponseWriter)
		told              int // nominations counted
		sets              bool
		wantErr           bool
		wantNode          gpu.NodeID
		touched, requests int
	}{
		"waits":              {cached: unbound("p"), how: accepts, told: 1, sets: true, requests: 1},
		"not seen yet":       {how: accepts, told: 1, sets: true, requests: 1},
		"is there already":   {cached: nominatedTo("n1"), how: accepts, told: 1, sets: true, requests: 1},
		"another's":          {cached: nominatedTo("n2"), how: accepts, touched: 1, requests: 1},
		"bound meanwhile":    {cached: unbound("p"), live: boundPod(t, "p"), how: invalid, sets: true, wantNode: "n1", requests: 1},
		"refused, not bound": {cached: unbound("p"), live: unbound("p"), how: invalid, sets: true, wantErr: true, requests: 1},
		"a fault":            {cached: unbound("p"), live: boundPod(t, "p"), how: unreachable, sets: true, wantErr: true, requests: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var cached []*corev1.Pod
			if tc.cached != nil {
				cached = append(cached, tc.cached)
			}
			var wrote []written
			told, touched := 0, 0
			pods := &Pods{Client: newAPIServer(t, records(t, tc.live, tc.how, &wrote)).client(t), Lister: lister(t, cached...), Settings: policy.Default(),
				Now: start, Touched: func() { touched++ }, Nominated: func() { told++ }}
			got, err := pods.Nominate(t.Context(), targetOn("n1"), "room")
			if (err != nil) != tc.wantErr || got.Node != tc.wantNode || told != tc.told || touched != tc.touched {
				t.Errorf("Nominate = %+v, %v; %d nominations and %d touches counted", got, err, told, touched)
			}
			if len(wrote) != tc.requests {
				t.Fatalf("%d requests: %v", len(wrote), wrote)
			}
			body := wrote[0].Body
			if !strings.Contains(body, `"metadata":{"uid":"uid-p"}`) || !strings.Contains(body, string(Touched)) ||
				strings.Contains(body, `"nominatedNodeName":"n1"`) != tc.sets {
				t.Errorf("patch %s", body)
			}
		})
	}
	gone := &Pods{Client: newAPIServer(t, serves(nil)).client(t), Lister: lister(t), Now: start}
	if _, err := gone.Nominate(t.Context(), targetOn("n1"), "room"); !errors.Is(err, engine.ErrNoPod) {
		t.Errorf("a pod that is gone: %v, want ErrNoPod", err)
	}
}

// A withdrawal ends that very nomination or none.
func TestWithdraw(t *testing.T) {
	accepts := func(w http.ResponseWriter) { answer(w, unbound("p")) }
	bound := boundPod(t, "p")
	bound.Status.NominatedNodeName = "n1"
	tests := map[string]struct {
		cached   *corev1.Pod
		how      func(http.ResponseWriter)
		requests int
		wantErr  bool
	}{
		"stands":             {nominatedTo("n1"), accepts, 1, false},
		"has ended":          {nominatedTo(""), accepts, 0, false},
		"another's":          {nominatedTo("n2"), accepts, 0, false},
		"bound":              {bound, accepts, 0, false},
		"changed meanwhile":  {nominatedTo("n1"), invalid, 1, false},
		"a fault":            {nominatedTo("n1"), unreachable, 1, true},
		"no pod of the name": {boundPod(t, "other"), accepts, 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var wrote []written
			pods := &Pods{Client: newAPIServer(t, records(t, nil, tc.how, &wrote)).client(t), Lister: lister(t, tc.cached)}
			if err := pods.Withdraw(t.Context(), targetOn("n1")); (err != nil) != tc.wantErr {
				t.Errorf("Withdraw: %v", err)
			}
			if len(wrote) != tc.requests {
				t.Fatalf("%d requests: %v", len(wrote), wrote)
			}
			const want = `[{"op":"test","path":"/metadata/uid","value":"uid-p"},` +
				`{"op":"test","path":"/status/nominatedNodeName","value":"n1"},{"op":"remove","path":"/status/nominatedNodeName"}]`
			if len(wrote) > 0 && wrote[0] != (written{"application/json-patch+json", want}) {
				t.Errorf("wrote %v", wrote[0])
			}
		})
	}
}

// Suits is asked for each node whose cards fit, while filters wait.
func BenchmarkSuits(b *testing.B) {
	pod := unbound("p")
	pod.Spec.NodeSelector = map[string]string{"zone": "a"}
	pod.Spec.Affinity = affinity(expression("cores", corev1.NodeSelectorOpIn, "2", "4"))
	pods := &Pods{Lister: lister(b, pod), Nodes: nodeLister(b, labelled("n1"))}
	for b.Loop() {
		if !pods.Suits(targetOn("n1")) {
			b.Fatal("it does not suit")
		}
	}
}
