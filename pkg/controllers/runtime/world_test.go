package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// start is when tests begin.
func start() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// world is a little API server, with kubelets that end pods by their deadlines and a
// controller of Jobs that ends the pods of those that are suspended.
type world struct {
	now     time.Time
	version int
	saw     int // the version that was seen last
	made    int
	pods    map[string]*corev1.Pod
	jobs    map[string]*batchv1.Job

	fail      error  // what every request ends with
	refuse    error  // what every deadline is refused with
	keep      error  // what every eviction is refused with
	holdsJobs error  // what every suspension is refused with
	meddle    func() // before each change
	managed   bool   // nobody ends the pods of Jobs that are suspended
	crash     bool   // the process dies right after the next change

	done   []string // what was done, of requests
	reads  int      // of Jobs
	told   []string
	counts map[metrics.RuntimeAction]int

	store cache.Indexer
	c     *Controller
}

func newWorld() *world {
	w := &world{now: start(), pods: map[string]*corev1.Pod{}, jobs: map[string]*batchv1.Job{}, counts: map[metrics.RuntimeAction]int{},
		store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	w.lead()
	return w
}

// lead has a new leader begin, which remembers nothing.
func (w *world) lead() {
	old := w.c
	w.c = &Controller{
		PodLister: corelisters.NewPodLister(w.store), Pods: podServer{w}, Jobs: jobServer{w},
		Max: func(p *corev1.Pod) (time.Duration, bool) {
			d, err := time.ParseDuration(p.Annotations[codec.AnnotationMaxRuntime])
			return d, err == nil
		},
		Default: 2 * time.Hour,
		Inference: func(p *corev1.Pod) bool {
			return p.Annotations[codec.AnnotationTaskType] == "inference"
		},
		Ours: func(p *corev1.Pod) bool { return p.Labels[codec.BoundByLabel] == codec.BoundByValue },
		Tell: func(n kube.Notice) {
			w.told = append(w.told, fmt.Sprintf("%s %s/%s %s: %s", n.About.Kind, n.About.Namespace, n.About.Name, n.Reason, n.Text))
		},
		Meter: w, Now: func() time.Time { return w.now },
	}
	if old != nil {
		w.c.Default, w.c.Enforced = old.Default, old.Enforced
	}
}

// RuntimeExceeded implements Meter.
func (w *world) RuntimeExceeded(a metrics.RuntimeAction) { w.counts[a]++ }

func (w *world) write(o metav1.Object) {
	w.version++
	o.SetResourceVersion(fmt.Sprint(w.version))
}

// pod makes a pod that begins now.
func (w *world) pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	w.made++
	began := metav1.NewTime(w.now)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(fmt.Sprintf("uid-%s-%d", name, w.made)),
			Annotations: map[string]string{}, Labels: map[string]string{codec.BoundByLabel: codec.BoundByValue}},
		Spec:   corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &began},
	}
	for _, c := range change {
		c(p)
	}
	w.write(p)
	w.pods["ns/"+name] = p
	return p
}

// may says for how long the pod may run.
func may(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[codec.AnnotationMaxRuntime] = text }
}

func noted(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

// ownedBy has the pod be controlled.
func ownedBy(apiVersion, kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: &yes}}
	}
}

// ofJob has the pod be of the Job.
func ofJob(name string) func(*corev1.Pod) { return ownedBy("batch/v1", "Job", name) }

// job makes a Job.
func (w *world) job(name string) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{"of": "its user"}}}
	w.write(j)
	w.jobs["ns/"+name] = j
	return j
}

// see has the controller see what there is, as slim as it is kept.
func (w *world) see() {
	if w.saw == w.version {
		return
	}
	w.saw = w.version
	var all []any
	for _, p := range w.pods {
		q := p.DeepCopy()
		q.OwnerReferences, q.Spec.ActiveDeadlineSeconds, q.Status.Conditions = nil, nil, nil
		all = append(all, q)
	}
	_ = w.store.Replace(all, "")
}

// quiet is a context of which nothing is logged.
func quiet() context.Context { return klog.NewContext(context.Background(), klog.Logger{}) }

// round has the controller see all and take a round, some time later.
func (w *world) round(later time.Duration) {
	w.now = w.now.Add(later)
	w.see()
	w.take()
}

// take takes a round, which the process may not survive.
func (w *world) take() {
	defer func() {
		if dead := recover(); dead != nil && dead != died {
			panic(dead)
		}
	}()
	w.c.round(quiet())
}

// died is what a process that is killed ends with.
const died = "killed"

// changed is called after each change.
func (w *world) changed(what string) {
	w.done = append(w.done, what)
	if w.crash {
		w.crash = false
		w.lead()
		panic(died)
	}
}

// lives has what is not the controller do its work: kubelets and the controller of Jobs.
func (w *world) lives() {
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		p := w.pods[name]
		if s := p.Spec.ActiveDeadlineSeconds; s != nil && p.Status.StartTime != nil && !w.now.Before(p.Status.StartTime.Add(time.Duration(*s)*time.Second)) {
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "DeadlineExceeded"
			w.write(p)
		}
		if p.DeletionTimestamp != nil {
			if w.now.Before(p.DeletionTimestamp.Time) {
				continue
			}
			delete(w.pods, name)
			w.version++
			continue
		}
		if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "Job" && !w.managed {
			if j := w.jobs["ns/"+owner.Name]; j != nil && j.Spec.Suspend != nil && *j.Spec.Suspend {
				now := metav1.NewTime(w.now)
				p.DeletionTimestamp = &now
				w.write(p)
			}
		}
	}
}

// rounds has it take so many, one each period, with the world going on between.
func (w *world) rounds(n int) {
	for range n {
		w.round(period)
		w.lives()
	}
}

// want compares what was done.
func (w *world) want(t *testing.T, when string, done ...string) {
	t.Helper()
	if got := strings.Join(w.done, ", "); got != strings.Join(done, ", ") {
		t.Errorf("%s: done %q, want %q; told:\n%s", when, got, strings.Join(done, ", "), strings.Join(w.told, "\n"))
	}
}

// reasons are those for which something was told, in order: kind and reason.
func (w *world) reasons() (all []string) {
	for _, line := range w.told {
		words := strings.Fields(line)
		all = append(all, words[0]+" "+strings.TrimSuffix(words[2], ":"))
	}
	return all
}

func resource(name string) schema.GroupResource { return schema.GroupResource{Resource: name} }

type podServer struct{ *world }

func (s podServer) Get(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	if p := s.pods[namespace+"/"+name]; p != nil {
		return p.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource("pods"), name)
}

// same returns the pod of that version.
func (s podServer) same(pod *corev1.Pod) (*corev1.Pod, error) {
	if s.meddle != nil {
		s.meddle()
	}
	p := s.pods[pod.Namespace+"/"+pod.Name]
	switch {
	case s.fail != nil:
		return nil, s.fail
	case p == nil:
		return nil, apierrors.NewNotFound(resource("pods"), pod.Name)
	case p.UID != pod.UID || p.ResourceVersion != pod.ResourceVersion:
		return nil, apierrors.NewConflict(resource("pods"), pod.Name, errors.New("it has changed"))
	}
	return p, nil
}

func (s podServer) SetDeadline(_ context.Context, pod *corev1.Pod, seconds int64) error {
	p, err := s.same(pod)
	if err != nil || s.refuse != nil {
		return errors.Join(err, s.refuse)
	}
	if old := p.Spec.ActiveDeadlineSeconds; seconds < 1 || old != nil && *old < seconds {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, p.Name, nil)
	}
	p.Spec.ActiveDeadlineSeconds = &seconds
	s.write(p)
	s.changed(fmt.Sprintf("deadline %s %d", p.Name, seconds))
	return nil
}

func (s podServer) Hasten(_ context.Context, pod *corev1.Pod, seconds int64) error {
	p, err := s.same(pod)
	if err != nil {
		return err
	}
	if old := p.DeletionGracePeriodSeconds; p.DeletionTimestamp == nil || old == nil || seconds < 1 || seconds >= *old {
		return errors.New("nobody asked for that")
	}
	ends := metav1.NewTime(p.DeletionTimestamp.Add(time.Duration(seconds-*p.DeletionGracePeriodSeconds) * time.Second))
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &ends, &seconds
	s.write(p)
	s.changed("hasten " + p.Name)
	return nil
}

// deleted has the pod be asked to end, with that grace.
func (w *world) deleted(p *corev1.Pod, grace time.Duration) {
	ends, seconds := metav1.NewTime(w.now.Add(grace)), int64(grace/time.Second)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &ends, &seconds
	w.write(p)
}

func (s podServer) Evict(_ context.Context, pod *corev1.Pod, _ bool) error {
	p, err := s.same(pod)
	if err != nil || s.keep != nil {
		return errors.Join(err, s.keep)
	}
	now := metav1.NewTime(s.now)
	p.DeletionTimestamp = &now
	s.write(p)
	s.changed("evict " + p.Name)
	return nil
}

type jobServer struct{ *world }

func (s jobServer) Get(_ context.Context, namespace, name string) (*batchv1.Job, error) {
	s.reads++
	if s.fail != nil {
		return nil, s.fail
	}
	if j := s.jobs[namespace+"/"+name]; j != nil {
		return j.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource("jobs"), name)
}

func (s jobServer) Suspend(_ context.Context, job *batchv1.Job, suspend bool, annotations map[string]any) error {
	if s.meddle != nil {
		s.meddle()
	}
	j := s.jobs[job.Namespace+"/"+job.Name]
	switch {
	case !suspend || len(annotations) > 0:
		return errors.New("nobody asked for that")
	case s.fail != nil:
		return s.fail
	case s.holdsJobs != nil:
		return s.holdsJobs
	case j == nil:
		return apierrors.NewNotFound(resource("jobs"), job.Name)
	case j.UID != job.UID || j.ResourceVersion != job.ResourceVersion:
		return apierrors.NewConflict(resource("jobs"), job.Name, errors.New("it has changed"))
	}
	j.Spec.Suspend = &suspend
	s.write(j)
	s.changed("suspend " + j.Name)
	return nil
}
