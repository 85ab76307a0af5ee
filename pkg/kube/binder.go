package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
)

var _ engine.Binder = (*Binder)(nil)

// Binder writes Bindings.
type Binder struct {
	Client kubernetes.Interface
	Lister corelisters.PodLister
	Now    func() time.Time
	// Term is what a Binding may rely on; its error means that there must be none.
	// Nil: this scheduler runs alone, and there is no epoch.
	Term func() (Term, error)
	// Sending is told of a Binding before it is sent, FenceRefused of one that was
	// refused as one of another epoch. Both may be nil.
	Sending      func(gpu.PodID)
	FenceRefused func()
}

// Bind binds the pod to its node and gives it its cards, in one request: the API
// server copies a Binding's annotations and labels onto the pod in the update
// that sets spec.nodeName, so a pod is never seen bound without its cards. The
// UID makes it that very pod, not another of its name, and the resource version
// makes it impossible once the pod has been touched. One whose author wishes something
// else than was said when it was placed, as to stay for longer, is refused.
func (b *Binder) Bind(ctx context.Context, p gpu.Placement, said map[string]string) error {
	err := b.bind(ctx, &p, said, b.seen)
	for try := 1; outdated(err) && try < mostTries; try++ {
		err = b.bind(ctx, &p, said, b.live)
	}
	if err != nil {
		return fmt.Errorf("bind pod %s/%s to %s: %w", p.Namespace, p.Name, p.Node, err)
	}
	return nil
}

// outdated reports whether the Binding was refused for a version of the pod that
// is not the newest: another change was faster, or the cache is behind.
func outdated(err error) bool {
	return errors.Is(err, engine.ErrRefused) && strings.Contains(err.Error(), "ResourceVersion in precondition")
}

// bind sends one Binding for the pod as find has it.
func (b *Binder) bind(ctx context.Context, p *gpu.Placement, said map[string]string, find func(context.Context, *gpu.Placement) (*corev1.Pod, error)) error {
	binding, term, err := b.prepare(ctx, p, said, find)
	if err != nil { // nothing has been sent
		return fmt.Errorf("%w: %w", engine.ErrRefused, err)
	}
	if !term.Until.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, term.Until)
		defer stop()
	}
	if b.Sending != nil {
		b.Sending(p.Pod)
	}
	err = b.send(ctx, binding)
	if FenceRefused(err) && b.FenceRefused != nil {
		b.FenceRefused()
	}
	return err
}

// prepare makes the Binding, in the term of the moment.
func (b *Binder) prepare(ctx context.Context, p *gpu.Placement, said map[string]string, find func(context.Context, *gpu.Placement) (*corev1.Pod, error)) (*corev1.Binding, Term, error) {
	pod, err := find(ctx, p)
	if err != nil {
		return nil, Term{}, err
	}
	if keys := codec.Reworded(said, pod.Annotations); len(keys) > 0 {
		return nil, Term{}, fmt.Errorf("annotations of the pod have changed since it was placed: %s", strings.Join(keys, ", "))
	}
	term, err := b.term() // not before: finding the pod may have taken long
	if err != nil {
		return nil, Term{}, err
	}
	annotations, err := codec.Annotations(*p, b.Now(), term.Epoch)
	if err != nil {
		return nil, Term{}, err
	}
	if err := onto(pod, annotations); err != nil {
		return nil, Term{}, err
	}
	return binding(p, pod.ResourceVersion, annotations), term, ctx.Err()
}

func (b *Binder) term() (Term, error) {
	if b.Term == nil {
		return Term{}, nil
	}
	return b.Term()
}

// seen returns the pod from the cache, if it is there.
func (b *Binder) seen(ctx context.Context, p *gpu.Placement) (*corev1.Pod, error) {
	pod, err := b.Lister.Pods(p.Namespace).Get(p.Name)
	if err != nil || string(pod.UID) != string(p.Pod) {
		return b.live(ctx, p)
	}
	return pod, nil
}

func (b *Binder) live(ctx context.Context, p *gpu.Placement) (*corev1.Pod, error) {
	return b.Client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
}

func binding(p *gpu.Placement, version string, annotations map[string]string) *corev1.Binding {
	b := newBinding(p.Namespace, p.Name, string(p.Node))
	b.UID, b.ResourceVersion, b.Annotations = types.UID(p.Pod), version, annotations
	return b
}

// newBinding is a Binding of ours, which the fence knows by its label.
func newBinding(namespace, pod, node string) *corev1.Binding {
	return &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: pod,
			Labels: map[string]string{codec.BoundByLabel: codec.BoundByValue},
		},
		Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}
}

// mostAnnotations is what the API server lets a pod have in all, keys and
// values. It checks that at every update, but not at a Binding: a pod past it
// could never be changed again, not even its status.
const mostAnnotations = 256 << 10

// onto fits the annotations to what the pod carries already, or says why they do
// not fit.
func onto(pod *corev1.Pod, added map[string]string) error {
	codec.Supersede(added, pod.Annotations)
	merged := maps.Clone(pod.Annotations)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, added)
	size := 0
	for key, value := range merged {
		size += len(key) + len(value)
	}
	if size > mostAnnotations {
		return fmt.Errorf("annotations: %d bytes with those of the cards, more than the %d that a pod may have", size, mostAnnotations)
	}
	return nil
}

// mostTries bounds how often a Binding is sent that the API server was too busy
// to look at, or that was for an older version of its pod.
const mostTries = 4

// send posts the Binding. client-go's own repeats are switched off: it would
// send again after a 500 too, and the 409 that a second Binding gets when the
// first has happened after all looks like a refusal. A 429 comes from the
// server's queues, before anything is done, so that may be repeated.
func (b *Binder) send(ctx context.Context, binding *corev1.Binding) error {
	for try := 1; ; try++ {
		err := b.post(ctx, binding)
		if err == nil {
			return nil
		}
		if !apierrors.IsTooManyRequests(err) || try == mostTries || !waitAsAsked(ctx, err) {
			return classify(err, try)
		}
	}
}

func (b *Binder) post(ctx context.Context, binding *corev1.Binding) error {
	return b.Client.CoreV1().RESTClient().Post().
		MaxRetries(0).
		Namespace(binding.Namespace).Resource("pods").Name(binding.Name).SubResource("binding").
		Body(binding).
		Do(ctx).Error()
}

// waitAsAsked waits as long as the server asks for; false when ctx ends first.
func waitAsAsked(ctx context.Context, err error) bool {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Duration(max(1, seconds)) * time.Second):
		return true
	}
}

// classify says what an error means for the Binding: refused, which is certain,
// or unknown. One that was repeated is not judged: its answer may be about the first.
func classify(err error, try int) error {
	if try == 1 && refused(err) {
		return fmt.Errorf("%w: %w", engine.ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", engine.ErrUnknown, err)
}

func refused(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return true // no connection, so nothing was sent
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	switch code := answer.Status().Code; code {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	case http.StatusConflict:
		return certainConflict(answer.Status().Message)
	default:
		return code >= 400 && code < 500
	}
}

// certainConflict tells the conflicts that mean "not bound by this request".
// The API server answers a Binding with 409 for any error of its store that it
// does not know, an etcd time-out among them, after which the pod may be bound
// (assignPod in k8s.io/kubernetes/pkg/registry/core/pod/storage). So the text
// has to be looked at; one that is not known leaves the outcome open.
func certainConflict(message string) bool {
	for _, known := range []string{
		"is being deleted",
		"is already assigned to node",
		"has non-empty .spec.schedulingGates",
		"Precondition failed",
	} {
		if strings.Contains(message, known) {
			return true
		}
	}
	return false
}
