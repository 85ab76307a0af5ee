package quality

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"heteroflow.io/heteroflow/pkg/simulate"
)

const (
	// longestSilence is far more than kube-scheduler takes to start, and to say anything
	// of a pod that has just come.
	longestSilence = 2 * time.Minute
	// nomination is as long as a nominated node is kept for a pod that does not come.
	nomination = 15 * time.Second
)

// pods is what the driver needs of the API server.
type pods interface {
	Create(context.Context, *corev1.Pod) (types.UID, error)
	Delete(ctx context.Context, name string) error
}

// driver has pods come one at a time, each when it is known what became of the one
// before.
type driver struct {
	pods  pods
	watch <-chan watch.Event // of all pods
	// room reports whether a pod that was refused fits a node beside those that are
	// bound.
	room  func(bound []corev1.Pod, pod *corev1.Pod) bool
	bound []corev1.Pod
	full  map[simulate.Shape]bool // there is no room for it, and never will be
	// second counts pods that were placed though refused at first, and missed those
	// that were not though there was room.
	second, missed int
}

// place has the pod come, and reports whether it was placed. One that was not is gone
// then.
func (d *driver) place(ctx context.Context, arrival int, s simulate.Shape) (bool, error) {
	p := pod(arrival, s)
	uid, err := d.pods.Create(ctx, p)
	if err != nil {
		return false, fmt.Errorf("create pod %s: %w", p.Name, err)
	}
	now, err := d.await(ctx, uid, longestSilence, func(p *corev1.Pod) bool { return isBound(p) || refused(p) })
	if err != nil {
		return false, fmt.Errorf("pod %s: neither bound nor refused: %w", p.Name, err)
	}
	if !isBound(now) && !d.full[s] {
		if now, err = d.secondTry(ctx, uid, s, now); err != nil {
			return false, fmt.Errorf("pod %s: %w", p.Name, err)
		}
	}
	if isBound(now) {
		d.bound = append(d.bound, *now)
		return true, nil
	}
	if err := d.pods.Delete(ctx, p.Name); err != nil {
		return false, fmt.Errorf("delete pod %s: %w", p.Name, err)
	}
	return false, nil
}

// secondTry leaves a pod that was refused to the nomination of a node, if one has room
// for it.
func (d *driver) secondTry(ctx context.Context, uid types.UID, s simulate.Shape, was *corev1.Pod) (*corev1.Pod, error) {
	if !d.room(d.bound, was) {
		d.full[s] = true
		return was, nil
	}
	now, err := d.await(ctx, uid, nomination, isBound)
	switch {
	case errors.Is(err, errSilence):
		d.missed++
		return was, nil
	case err != nil:
		return nil, err
	}
	d.second++
	return now, nil
}

// errSilence means that what was waited for did not come in time.
var errSilence = errors.New("nothing was seen of it in time")

// await returns the pod as soon as it is such.
func (d *driver) await(ctx context.Context, uid types.UID, longest time.Duration, such func(*corev1.Pod) bool) (*corev1.Pod, error) {
	over := time.NewTimer(longest)
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-over.C:
			return nil, errSilence
		case e, open := <-d.watch:
			if !open {
				return nil, errors.New("the watch of pods has ended")
			}
			if p, ok := e.Object.(*corev1.Pod); ok && p.UID == uid && such(p) {
				return p, nil
			}
		}
	}
}

func isBound(p *corev1.Pod) bool { return p.Spec.NodeName != "" }

// refused reports whether kube-scheduler has found no node for the pod.
func refused(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}
