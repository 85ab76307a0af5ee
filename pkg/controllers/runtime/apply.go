package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/metrics"
)

// apply does as much as a round may.
func (c *Controller) apply(ctx context.Context, deeds []deed) {
	for i := range deeds[:min(len(deeds), mostDeeds)] {
		d := &deeds[i]
		switch d.act {
		case warn:
			c.warn(&d.run)
		case report:
			c.report(&d.run)
		case end:
			err := c.end(ctx, &d.run)
			if ctx.Err() != nil {
				return
			}
			if err == nil {
				continue
			}
			c.Meter.RuntimeExceeded(metrics.RuntimeFailed)
			klog.FromContext(ctx).Error(err, "pod is not ended though its time is over", "pod", klog.KObj(d.pod), "podUID", d.pod.UID, "node", d.pod.Spec.NodeName)
			if !kube.Answered(err) {
				return // it would be the same for the others
			}
		}
	}
}

// end reads the pod anew, and ends it if its time is over by what it says now.
func (c *Controller) end(ctx context.Context, seen *run) error {
	known := c.memory.of(seen.pod.UID)
	known.tried = c.Now()
	pod, err := c.Pods.Get(ctx, seen.pod.Namespace, seen.pod.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the pod: %w", err)
	}
	r, limited := c.run(pod)
	if pod.UID != seen.pod.UID || !limited || !r.hard || c.Now().Before(r.end) {
		return nil
	}
	if r.ending {
		err = c.hasten(ctx, &r)
	} else if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "Job" && strings.HasPrefix(owner.APIVersion, "batch/") {
		err = c.suspend(ctx, &r, owner)
	} else {
		err = c.stop(ctx, &r)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // it has changed since: the next round sees how
		known.tried = time.Time{}
		return nil
	}
	return err
}

// mostTries bounds how often a Job is read that changes meanwhile: its own controller
// writes its status with every pod that comes or goes.
const mostTries = 3

// suspend suspends the Job of the pod, if it goes on. Nobody ends the pods of one that
// says it is managed by others, nor those that only say that they are of it.
func (c *Controller) suspend(ctx context.Context, r *run, owner *metav1.OwnerReference) (err error) {
	known := c.memory.of(r.pod.UID)
	if known.inVain(c.Now()) {
		return c.stop(ctx, r)
	}
	if _, done := c.memory.jobs[owner.UID]; done {
		c.announce(r, owner)
		known.leave(c.Now())
		return nil
	}
	for range mostTries {
		if err = c.suspendOnce(ctx, r, owner); !apierrors.IsConflict(err) {
			break
		}
	}
	if refused(err) {
		c.block(r, err)
		return nil
	}
	return err
}

// suspendOnce suspends the Job as it is read. An owner is what a pod's author writes: where
// there is no such Job that goes on, the pod is ended as one without.
func (c *Controller) suspendOnce(ctx context.Context, r *run, owner *metav1.OwnerReference) error {
	j, err := c.Jobs.Get(ctx, r.pod.Namespace, owner.Name)
	if apierrors.IsNotFound(err) || err == nil && (j.UID != owner.UID || kube.JobOver(j)) {
		return c.stop(ctx, r) // who ends Jobs ends its pods, unless one only says that it is of it
	}
	if err != nil {
		return fmt.Errorf("read Job %s: %w", owner.Name, err)
	}
	c.announce(r, owner)
	if j.Spec.Suspend == nil || !*j.Spec.Suspend {
		if err := c.Jobs.Suspend(ctx, j, true, nil); err != nil {
			return fmt.Errorf("suspend Job %s: %w", owner.Name, err)
		}
		c.Meter.RuntimeExceeded(metrics.RuntimeSuspended)
		klog.FromContext(ctx).Info("suspended a Job whose pod has run for as long as it may", "job", klog.KObj(j), "pod", klog.KObj(r.pod), "podUID", r.pod.UID, "limit", r.limit)
		c.tellJob(j, r)
	}
	c.memory.jobs[owner.UID] = struct{}{}
	c.memory.of(r.pod.UID).leave(c.Now())
	return nil
}

// announce tells the pod that its Job is suspended, before it is.
func (c *Controller) announce(r *run, owner *metav1.OwnerReference) {
	c.warn(r)
	c.exceed(r, fmt.Sprintf("its Job %s is suspended", owner.Name))
}

// stop has the kubelet end the pod, as by a deadline of its author's.
func (c *Controller) stop(ctx context.Context, r *run) error {
	seconds := min(max(int64(r.limit/time.Second), 1), math.MaxInt32)
	if s := r.pod.Spec.ActiveDeadlineSeconds; s != nil && *s <= seconds {
		return nil // the kubelet knows
	}
	c.warn(r)
	c.exceed(r, "it is stopped")
	err := c.Pods.SetDeadline(ctx, r.pod, seconds)
	switch {
	case err == nil:
		c.Meter.RuntimeExceeded(metrics.RuntimeStopped)
		klog.FromContext(ctx).Info("stopped a pod that has run for as long as it may", "pod", klog.KObj(r.pod), "podUID", r.pod.UID, "node", r.pod.Spec.NodeName, "limit", r.limit)
		return nil
	case refused(err):
		return c.evict(ctx, r)
	}
	return fmt.Errorf("set the deadline: %w", err)
}

// hasten has a pod that is being deleted end with its own grace.
func (c *Controller) hasten(ctx context.Context, r *run) error {
	c.warn(r)
	c.exceed(r, "it is deleted with its own grace, and not with a longer one")
	if err := c.Pods.Hasten(ctx, r.pod, grace(r.pod)); err != nil {
		return fmt.Errorf("shorten the grace of its deletion: %w", err)
	}
	c.Meter.RuntimeExceeded(metrics.RuntimeHastened)
	klog.FromContext(ctx).Info("shortened the deletion of a pod that has run for as long as it may", "pod", klog.KObj(r.pod), "podUID", r.pod.UID, "node", r.pod.Spec.NodeName, "limit", r.limit)
	return nil
}

// evict evicts a pod that is given no deadline.
func (c *Controller) evict(ctx context.Context, r *run) error {
	err := c.Pods.Evict(ctx, r.pod, false)
	switch {
	case err == nil:
		c.Meter.RuntimeExceeded(metrics.RuntimeEvicted)
		klog.FromContext(ctx).Info("evicted a pod that has run for as long as it may", "pod", klog.KObj(r.pod), "podUID", r.pod.UID, "node", r.pod.Spec.NodeName, "limit", r.limit)
		return nil
	case errors.Is(err, kube.ErrBlocked):
		c.block(r, err)
		return nil
	}
	return fmt.Errorf("evict: %w", err)
}

// refused reports whether just that is not to be, whoever asks again.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}
