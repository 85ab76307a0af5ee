package preempt

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	kindlisters "heteroflow.io/heteroflow/pkg/generated/listers/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/preempt"
)

// world is a small true cluster: an API server with versions, what has been seen of
// it, kubelets, owners, and a scheduler that goes by the ledger. A pod needs so many
// cards of a node, by an annotation.
type world struct {
	now     time.Time
	version int
	pods    map[string]*corev1.Pod // namespace/name ->
	plans   map[string]*v1alpha1.Preemption
	jobs    map[string]*batchv1.Job
	budget  map[string]int // label "app" of pods -> how many may be evicted yet
	quota   error          // that refuses new pods, if it is not nil
	sets    map[string]int // ReplicaSet -> how many pods it is to have
	cards   map[gpu.NodeID]int
	holds   map[gpu.PodID]ledger.Hold // of pods and of claims
	lingers map[gpu.PodID]time.Time   // pods that are gone, whose containers run until then
	strike  func(op string)           // is called before and after each write
	wrong   func(format string, args ...any)

	seenPods, seenPlans cache.Indexer
	told                map[string]int
	remade              map[string]int // UID of a bare pod -> how often it was made anew
	evicted             []string
	begun               int
	disrupted           []time.Duration
	ended               map[v1alpha1.PreemptionPhase]int
}

const claimed = ledger.State(99) // as any state of its own would be

func newWorld() *world {
	return &world{
		now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), pods: map[string]*corev1.Pod{}, plans: map[string]*v1alpha1.Preemption{}, jobs: map[string]*batchv1.Job{},
		budget: map[string]int{}, sets: map[string]int{}, cards: map[gpu.NodeID]int{}, holds: map[gpu.PodID]ledger.Hold{}, lingers: map[gpu.PodID]time.Time{},
		strike: func(string) {}, wrong: func(f string, a ...any) { panic(fmt.Sprintf(f, a...)) },
		seenPods:  cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		seenPlans: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
		told:      map[string]int{}, remade: map[string]int{}, ended: map[v1alpha1.PreemptionPhase]int{},
	}
}

// leader returns a controller that knows nothing yet.
func (w *world) leader() *Controller {
	return &Controller{
		PodLister: corelisters.NewPodLister(w.seenPods), Preemptions: kindlisters.NewPreemptionLister(w.seenPlans),
		Pods: podServer{w}, Plans: planServer{w}, Jobs: jobServer{w}, Ledger: w, Planner: Planner{w.plan, func(*preempt.World, *preempt.Plan) error { return nil }},
		Codec: Codec{Bound: w.bound, Asking: asking, Manifest: manifest, Allocation: func(p *gpu.Placement) (string, error) { return strconv.Itoa(int(p.CPU)), nil }, Claim: claimOf},
		Base: func() preempt.World {
			return preempt.World{Rules: preempt.Rules{Stage: preempt.OfRunning, Bare: true}, Suits: func(_ *preempt.Asker, n gpu.NodeID) bool { return w.cards[n] > 0 }}
		},
		Nominate: w.nominate, Withdraw: w.withdraw,
		Resume: func(_ string, t *corev1.PodTemplateSpec, n int32) bool {
			return w.room(need(t.Annotations)*int(n)) != ""
		},
		Tell: func(n kube.Notice) { w.told[n.Reason+" "+n.About.Name]++ }, Meter: w, Ended: func(p v1alpha1.PreemptionPhase, _ time.Duration) { w.ended[p]++ }, Now: func() time.Time { return w.now },
	}
}

func need(annotations map[string]string) int { n, _ := strconv.Atoi(annotations["cards"]); return n }

func key(namespace, name string) string { return namespace + "/" + name }

func missing(kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}

func conflict(kind, name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: kind}, name, fmt.Errorf("another version"))
}

func (w *world) next() string { w.version++; return strconv.Itoa(w.version) }

// put stores a pod, with a UID and a version.
func (w *world) put(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ResourceVersion = w.next()
	if pod.UID == "" {
		pod.UID, pod.CreationTimestamp = types.UID("u"+pod.ResourceVersion), metav1.NewTime(w.now.Truncate(time.Second))
	}
	w.pods[key(pod.Namespace, pod.Name)] = pod
	return pod
}

// see has what is seen as it is: pods, Preemptions, and the claims by them.
func (w *world) see() {
	pods, plans := []any{}, []any{}
	for _, pod := range w.pods {
		pods = append(pods, pod)
	}
	for _, p := range w.plans {
		plans = append(plans, p)
	}
	if err := w.seenPods.Replace(pods, ""); err != nil {
		panic(err)
	}
	if err := w.seenPlans.Replace(plans, ""); err != nil {
		panic(err)
	}
	w.follow()
}

func (w *world) follow() {
	for _, name := range slices.Sorted(maps.Keys(w.plans)) {
		p := w.plans[name]
		id := gpu.PodID(p.Spec.Preemptor.UID)
		if active(p) {
			if _, has := w.holds[id]; !has && w.uid(p.Spec.Preemptor) {
				placement, _ := claimOf(p)
				w.holds[id] = ledger.Hold{Placement: placement, State: claimed}
			}
		} else if !w.claims(p.Spec.Preemptor.UID) {
			w.Unclaim(id)
		}
	}
}

func (w *world) uid(who v1alpha1.PreemptionPod) bool {
	pod := w.pods[key(who.Namespace, who.Name)]
	return pod != nil && pod.UID == who.UID
}

// claims reports whether a Preemption keeps room for the pod.
func (w *world) claims(pod types.UID) bool {
	for _, p := range w.plans {
		if p.Spec.Preemptor.UID == pod && active(p) {
			return true
		}
	}
	return false
}

// forget is what a leader that dies forgets.
func (w *world) forget() {
	maps.DeleteFunc(w.holds, func(pod gpu.PodID, _ ledger.Hold) bool { return w.lingers[pod].IsZero() })
	for _, pod := range w.pods {
		w.hold(pod)
	}
	w.see()
}

func (w *world) hold(pod *corev1.Pod) {
	if pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodSucceeded {
		w.holds[gpu.PodID(pod.UID)] = ledger.Hold{Placement: placement(pod, pod.Spec.NodeName), State: ledger.Bound}
	}
}

func placement(pod *corev1.Pod, node string) gpu.Placement {
	return gpu.Placement{Pod: gpu.PodID(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Node: gpu.NodeID(node), CPU: gpu.MilliCPU(need(pod.Annotations))}
}

// used returns what is taken of a node, but for these pods.
func (w *world) used(node gpu.NodeID, but ...gpu.PodID) (n int) {
	for id, h := range w.holds {
		if h.Node == node && !slices.Contains(but, id) {
			n += int(h.CPU)
		}
	}
	return n
}

// room returns the first node with so many cards.
func (w *world) room(cards int) gpu.NodeID {
	for _, node := range slices.Sorted(maps.Keys(w.cards)) {
		if w.used(node)+cards <= w.cards[node] {
			return node
		}
	}
	return ""
}

// The ledger.

func (w *world) Claim(p gpu.Placement, victims []gpu.PodID) error {
	if w.used(p.Node, append(victims, p.Pod)...)+int(p.CPU) > w.cards[p.Node] {
		return ledger.ErrNoRoom
	}
	w.holds[p.Pod] = ledger.Hold{Placement: p, State: claimed}
	return nil
}

func (w *world) Unclaim(pod gpu.PodID) {
	if w.holds[pod].State == claimed {
		delete(w.holds, pod)
	}
}

func (w *world) Hold(pod gpu.PodID) (ledger.Hold, bool) { h, ok := w.holds[pod]; return h, ok }
func (w *world) Snapshot() ledger.Snapshot              { return ledger.Snapshot{} }

// The meter.

func (w *world) PreemptionPlanning(time.Duration) {}
func (w *world) PreemptionPlanned(int)            { w.begun++ }
func (w *world) Disrupted(d time.Duration)        { w.disrupted = append(w.disrupted, d) }

// The codec.

func (w *world) bound(pod *corev1.Pod) preempt.Pod {
	owner := metav1.GetControllerOf(pod)
	out := preempt.Pod{
		ID: gpu.PodID(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Node: gpu.NodeID(pod.Spec.NodeName), Priority: *pod.Spec.Priority,
		Created: pod.CreationTimestamp.Time, Type: gpu.TaskType(pod.Annotations[codec.AnnotationTaskType]), Preemptible: pod.Annotations[codec.AnnotationPreemptible] == "true",
		Count: counted(pod), Ours: true, Bare: owner == nil, Lineage: string(pod.UID), Phase: preempt.Running, Grace: 30 * time.Second,
	}
	if owner != nil {
		out.Lineage = string(owner.UID)
		if job := w.jobs[key(pod.Namespace, owner.Name)]; job != nil {
			out.Mode, out.Unit = preempt.Suspend, out.Lineage
		}
	}
	if pod.DeletionTimestamp != nil {
		out.Phase = preempt.Ending
	}
	return out
}

func asking(pod *corev1.Pod) (preempt.Asker, bool) {
	a := preempt.Asker{Request: gpu.Request{Pod: gpu.PodID(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Priority: *pod.Spec.Priority, CPU: gpu.MilliCPU(need(pod.Annotations))},
		Lineage: string(pod.UID), Created: pod.CreationTimestamp.Time}
	if pod.Annotations[codec.AnnotationTaskType] == string(gpu.Training) {
		a.Never = "it trains"
	}
	return a, pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Status.Conditions) > 0
}

func manifest(pod *corev1.Pod, count int) ([]byte, error) {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, Annotations: maps.Clone(pod.Annotations)}, Spec: pod.Spec}
	out.Spec.NodeName = ""
	delete(out.Annotations, codec.AnnotationPreemptedBy)
	out.Annotations[codec.AnnotationPreemptCount], out.Annotations[codec.AnnotationPreemptible], out.Annotations[codec.AnnotationPreemptedFrom] = strconv.Itoa(count), "false", string(pod.UID)
	return json.Marshal(out)
}

func claimOf(p *v1alpha1.Preemption) (gpu.Placement, error) {
	n, err := strconv.Atoi(p.Spec.Allocation)
	who := &p.Spec.Preemptor
	return gpu.Placement{Pod: gpu.PodID(who.UID), Namespace: who.Namespace, Name: who.Name, Node: gpu.NodeID(p.Spec.Node), CPU: gpu.MilliCPU(n)}, err
}

// plan is a planner that knows no more than cards and priorities: the first node on
// which the fewest do.
func (w *world) plan(pw *preempt.World, a *preempt.Asker) (best preempt.Plan, outcome preempt.Outcome) {
	if a.Never != "" {
		return best, preempt.Exempt
	}
	if w.room(int(a.CPU)) != "" {
		return best, preempt.FitsNow
	}
	outcome = preempt.Hopeless
	var all []preempt.Pod
	for _, pods := range pw.Pods {
		all = append(all, pods...)
	}
	slices.SortFunc(all, func(a, b preempt.Pod) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Name, b.Name))
	})
	for _, node := range slices.Sorted(maps.Keys(w.cards)) {
		victims, enough := w.victims(pw, all, a, node)
		if waits := len(victims) == 0 || w.used(node, (&preempt.Plan{Victims: victims}).IDs()...)+int(a.CPU) > w.cards[node]; enough && waits {
			return best, preempt.Waits
		}
		if enough && (outcome == preempt.Hopeless || len(victims) < len(best.Victims)) {
			best = preempt.Plan{Asker: *a, Victims: victims, Placement: gpu.Placement{Pod: a.Pod, Namespace: a.Namespace, Name: a.Name, Node: node, CPU: a.CPU}}
			outcome = preempt.Planned
		}
	}
	return best, outcome
}

func (w *world) victims(pw *preempt.World, all []preempt.Pod, a *preempt.Asker, node gpu.NodeID) (chosen []preempt.Pod, enough bool) {
	var ids []gpu.PodID
	for _, v := range all {
		if v.Phase == preempt.Ending {
			ids = append(ids, v.ID)
		}
	}
	fits := func(ids []gpu.PodID) bool { return w.used(node, ids...)+int(a.CPU) <= w.cards[node] }
	for _, v := range all {
		if v.Node != node || fits(ids) || exempt(&v, a.Priority) != "" || v.Phase == preempt.Ending || pw.Now.Before(pw.Blocked[v.ID]) {
			continue
		}
		for _, o := range all {
			if !slices.Contains(ids, o.ID) && (o.ID == v.ID || v.Unit != "" && o.Unit == v.Unit) {
				chosen, ids = append(chosen, o), append(ids, o.ID)
			}
		}
	}
	for _, v := range slices.Clone(chosen) {
		rest := slices.DeleteFunc(slices.Clone(ids), func(id gpu.PodID) bool { return id == v.ID })
		if v.Unit == "" && fits(rest) {
			ids = rest
			chosen = slices.DeleteFunc(chosen, func(o preempt.Pod) bool { return o.ID == v.ID })
		}
	}
	return chosen, fits(ids)
}

func (w *world) nominate(_ context.Context, t engine.Target, _ string) (engine.Pod, error) {
	pod := w.pods[key(t.Namespace, t.Name)]
	if pod == nil || gpu.PodID(pod.UID) != t.Pod {
		return engine.Pod{}, engine.ErrNoPod
	}
	w.edit(pod, func(p *corev1.Pod) { p.Status.NominatedNodeName = string(t.Node) })
	return engine.Pod{}, nil
}

func (w *world) withdraw(_ context.Context, t engine.Target) error {
	if pod := w.pods[key(t.Namespace, t.Name)]; pod != nil && gpu.PodID(pod.UID) == t.Pod {
		w.edit(pod, func(p *corev1.Pod) { p.Status.NominatedNodeName = "" })
	}
	return nil
}

// edit changes a pod that is stored.
func (w *world) edit(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	next := w.pods[key(pod.Namespace, pod.Name)].DeepCopy()
	change(next)
	return w.put(next)
}

// podServer is the API server's pods.
type podServer struct{ *world }

func (s podServer) Get(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	if pod := s.pods[key(namespace, name)]; pod != nil {
		return pod.DeepCopy(), nil
	}
	return nil, missing("pods", name)
}

// same returns the pod that is stored if it is of that version, "" being any.
func (s podServer) same(pod *corev1.Pod, version string) error {
	now := s.pods[key(pod.Namespace, pod.Name)]
	switch {
	case now == nil:
		return missing("pods", pod.Name)
	case now.UID != pod.UID || version != "" && now.ResourceVersion != version:
		return conflict("pods", pod.Name)
	}
	return nil
}

func (s podServer) Annotate(_ context.Context, pod *corev1.Pod, annotations map[string]any) (*corev1.Pod, error) {
	s.strike("annotate")
	if err := s.same(pod, pod.ResourceVersion); err != nil {
		return nil, err
	}
	next := s.edit(pod, func(p *corev1.Pod) {
		for k, v := range annotations {
			if text, set := v.(string); set {
				metav1.SetMetaDataAnnotation(&p.ObjectMeta, k, text)
			} else {
				delete(p.Annotations, k)
			}
		}
	})
	s.strike("annotated")
	return next, nil
}

func (s podServer) Evict(_ context.Context, pod *corev1.Pod, dry bool) error {
	version := pod.ResourceVersion
	if dry {
		version = ""
	}
	if err := s.same(pod, version); err != nil {
		return err
	}
	left, guarded := s.budget[pod.Labels["app"]]
	if guarded && left == 0 {
		return kube.ErrBlocked
	}
	if dry {
		return nil
	}
	s.strike("evict")
	s.justified(pod)
	if guarded {
		s.budget[pod.Labels["app"]]--
	}
	s.evicted = append(s.evicted, pod.Name)
	s.end(pod, 30*time.Second)
	s.strike("evicted")
	return nil
}

// justified checks that nobody is evicted but by a plan that still goes on.
func (s podServer) justified(pod *corev1.Pod) {
	for _, p := range s.plans {
		for i := range p.Spec.Victims {
			if p.Spec.Victims[i].UID == pod.UID && p.Status.Phase == v1alpha1.PreemptionDraining && p.VictimState(i) == v1alpha1.VictimEvicting && marked(pod, p.Name) {
				if h, has := s.holds[gpu.PodID(p.Spec.Preemptor.UID)]; !has || string(h.Node) != p.Spec.Node {
					s.wrong("pod %s is evicted, and no room is kept for %s", pod.Name, p.Spec.Preemptor.Name)
				}
				return
			}
		}
	}
	s.wrong("pod %s is evicted for nobody", pod.Name)
}

// end has a pod being deleted.
func (w *world) end(pod *corev1.Pod, grace time.Duration) {
	w.edit(pod, func(p *corev1.Pod) {
		if p.DeletionTimestamp == nil {
			t := metav1.NewTime(w.now.Add(grace).Truncate(time.Second))
			p.DeletionTimestamp = &t
		}
	})
}

func (s podServer) Kill(_ context.Context, pod *corev1.Pod) error {
	s.strike("kill")
	if err := s.same(pod, ""); err != nil {
		return err
	}
	s.drop(s.pods[key(pod.Namespace, pod.Name)], s.now.Add(20*time.Second))
	s.strike("killed")
	return nil
}

// drop removes a pod, whose containers run until then.
func (w *world) drop(pod *corev1.Pod, until time.Time) {
	delete(w.pods, key(pod.Namespace, pod.Name))
	if _, has := w.holds[gpu.PodID(pod.UID)]; has {
		w.lingers[gpu.PodID(pod.UID)] = until
	}
}

func (s podServer) Create(_ context.Context, namespace string, text []byte) (*corev1.Pod, error) {
	s.strike("create")
	var pod corev1.Pod
	if err := json.Unmarshal(text, &pod); err != nil {
		return nil, err
	}
	if s.pods[key(namespace, pod.Name)] != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, pod.Name)
	}
	if s.quota != nil {
		return nil, s.quota
	}
	from := pod.Annotations[codec.AnnotationPreemptedFrom]
	if s.remade[from]++; s.remade[from] > 1 {
		s.wrong("pod %s is made anew a second time", pod.Name)
	}
	made := s.put(&pod)
	s.strike("created")
	return made, nil
}

// planServer is the API server's Preemptions.
type planServer struct{ *world }

func (s planServer) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1alpha1.Preemption, error) {
	if p := s.plans[name]; p != nil {
		return p.DeepCopy(), nil
	}
	return nil, missing("preemptions", name)
}

func (s planServer) Create(_ context.Context, p *v1alpha1.Preemption, _ metav1.CreateOptions) (*v1alpha1.Preemption, error) {
	s.strike("plan")
	if s.plans[p.Name] != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "preemptions"}, p.Name)
	}
	p = p.DeepCopy()
	p.ResourceVersion, p.CreationTimestamp = s.next(), metav1.NewTime(s.now.Truncate(time.Second))
	p.UID = types.UID("p" + p.ResourceVersion)
	s.plans[p.Name] = p
	s.strike("planned")
	return p.DeepCopy(), nil
}

func (s planServer) UpdateStatus(_ context.Context, p *v1alpha1.Preemption, _ metav1.UpdateOptions) (*v1alpha1.Preemption, error) {
	s.strike("write")
	switch now := s.plans[p.Name]; {
	case now == nil:
		return nil, missing("preemptions", p.Name)
	case now.ResourceVersion != p.ResourceVersion:
		return nil, conflict("preemptions", p.Name)
	}
	next := s.plans[p.Name].DeepCopy()
	next.Status, next.ResourceVersion = *p.Status.DeepCopy(), s.next()
	s.plans[p.Name] = next
	s.strike("written")
	return next.DeepCopy(), nil
}

func (s planServer) Delete(_ context.Context, name string, _ metav1.DeleteOptions) error {
	s.strike("delete")
	if !settled(s.plans[name]) {
		s.wrong("Preemption %s is deleted, and something is owed", name)
	}
	delete(s.plans, name)
	return nil
}

// jobServer is the API server's Jobs.
type jobServer struct{ *world }

func (s jobServer) Get(_ context.Context, namespace, name string) (*batchv1.Job, error) {
	if j := s.jobs[key(namespace, name)]; j != nil {
		return j.DeepCopy(), nil
	}
	return nil, missing("jobs", name)
}

func (s jobServer) Suspend(_ context.Context, j *batchv1.Job, suspend bool, annotations map[string]any) error {
	s.strike("suspend")
	now := s.jobs[key(j.Namespace, j.Name)]
	if now == nil {
		return missing("jobs", j.Name)
	}
	if now.ResourceVersion != j.ResourceVersion {
		return conflict("jobs", j.Name)
	}
	if !suspend && now.Annotations[codec.AnnotationSuspendedBy] == "" {
		s.wrong("Job %s is resumed, which is its user's", j.Name)
	}
	next := now.DeepCopy()
	next.ResourceVersion, next.Spec.Suspend = s.next(), &suspend
	for k, v := range annotations {
		if text, set := v.(string); set {
			metav1.SetMetaDataAnnotation(&next.ObjectMeta, k, text)
		} else {
			delete(next.Annotations, k)
		}
	}
	s.jobs[key(j.Namespace, j.Name)] = next
	s.strike("suspended")
	return nil
}

// tooMany is what a quota says to new pods.
func tooMany() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", fmt.Errorf("exceeded quota"))
}
