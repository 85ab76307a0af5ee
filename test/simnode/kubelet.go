package simnode

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// workers is how many pods are worked on at once; their order is free, as it is
// between the kubelets of different nodes.
const workers = 8

// Nodes are simulated nodes and the kubelet of them all. It is safe for
// concurrent use.
type Nodes struct {
	client kubernetes.Interface
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	pods   corelisters.PodLister

	mu    sync.Mutex
	owned map[string]bool            // guarded by mu; names of our nodes -> whether the kubelet there works
	runs  map[cache.ObjectName]*life // guarded by mu; each pod that was started, its latest life
}

// life is one run of a pod: from the start of its containers.
type life struct {
	pod     types.UID
	started time.Time
	env     map[string]map[string]string // container -> variable -> value
}

// New returns a cluster's simulated nodes, none yet. Run has to run for pods to
// get anywhere.
func New(client kubernetes.Interface) *Nodes {
	return &Nodes{
		client: client,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](20*time.Millisecond, time.Second)),
		owned: map[string]bool{},
		runs:  map[cache.ObjectName]*life{},
	}
}

// Run is the kubelet. It returns when ctx ends.
func (n *Nodes) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(n.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	}))
	n.pods = factory.Core().V1().Pods().Lister()
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    n.enqueue,
		UpdateFunc: func(_, o any) { n.enqueue(o) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	factory.WaitForCacheSync(ctx.Done())

	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { n.work(ctx) })
	}
	<-ctx.Done()
	n.queue.ShutDown()
	wg.Wait()
	return context.Cause(ctx)
}

func (n *Nodes) enqueue(o any) {
	if pod, ok := o.(*corev1.Pod); ok {
		n.queue.Add(cache.MetaObjectToName(pod))
	}
}

func (n *Nodes) work(ctx context.Context) {
	for {
		name, end := n.queue.Get()
		if end {
			return
		}
		again, err := n.sync(ctx, name)
		switch {
		case err == nil:
			n.queue.Forget(name)
			if again > 0 {
				n.queue.AddAfter(name, again)
			}
		case ctx.Err() == nil:
			if !apierrors.IsConflict(err) { // a newer pod is on its way
				klog.FromContext(ctx).Error(err, "simulated kubelet", "pod", name)
			}
			n.queue.AddRateLimited(name)
		}
		n.queue.Done(name)
	}
}

// sync does the next step with one pod and says when to look again.
func (n *Nodes) sync(ctx context.Context, name cache.ObjectName) (again time.Duration, err error) {
	pod, err := n.pods.Pods(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) || err == nil && !n.owns(pod.Spec.NodeName) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	now := time.Now()
	s, err := next(pod, n.started(pod), now)
	if err != nil {
		return 0, err
	}
	if err := n.report(ctx, pod, s.status, now); err != nil {
		return 0, err
	}
	if s.remove {
		return 0, n.remove(ctx, pod)
	}
	return s.wait, nil
}

// report writes the pod's new status, if there is one. A pod that starts to run
// has its environment fixed first, as it is for real containers.
func (n *Nodes) report(ctx context.Context, pod *corev1.Pod, status *corev1.PodStatus, now time.Time) error {
	if status == nil {
		return nil
	}
	run := &life{pod: pod.UID, started: now, env: map[string]map[string]string{}}
	starts := status.Phase == corev1.PodRunning
	if starts {
		if err := run.resolve(pod); err != nil {
			return err
		}
	}
	changed := pod.DeepCopy()
	changed.Status = *status
	_, err := n.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil // removed by force meanwhile
	}
	if err == nil && starts {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.runs[cache.MetaObjectToName(pod)] = run
	}
	return err
}

func (l *life) resolve(pod *corev1.Pod) error {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			env, err := Environment(pod, &list[i])
			if err != nil {
				return err
			}
			l.env[list[i].Name] = env
		}
	}
	return nil
}

// remove deletes the pod's object and no later one of the same name.
func (n *Nodes) remove(ctx context.Context, pod *corev1.Pod) error {
	err := n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64),
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Env returns the environment that the container of the named pod was started
// with. It stays known after the pod has ended.
func (n *Nodes) Env(namespace, pod, container string) (map[string]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	run, found := n.runs[cache.NewObjectName(namespace, pod)]
	if !found {
		return nil, fmt.Errorf("pod %s/%s was never started here", namespace, pod)
	}
	env, found := run.env[container]
	if !found {
		return nil, fmt.Errorf("pod %s/%s has no container %s", namespace, pod, container)
	}
	return maps.Clone(env), nil
}

// started says when the pod's containers were started; zero: not yet.
func (n *Nodes) started(pod *corev1.Pod) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	run := n.runs[cache.MetaObjectToName(pod)]
	if run == nil || run.pod != pod.UID {
		return time.Time{}
	}
	return run.started
}

func (n *Nodes) own(node string, ours bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ours {
		n.owned[node] = true
		return
	}
	delete(n.owned, node)
}

// silence has the kubelet of a node of ours work, or not.
func (n *Nodes) silence(node string, silent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owned[node] = !silent
}

func (n *Nodes) owns(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.owned[node]
}

func (n *Nodes) names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.owned))
}
