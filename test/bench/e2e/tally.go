package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// patience is how long a round goes on in which no pod is bound: well over
// kube-scheduler's longest back-off of 10 s.
const patience = time.Minute

// tally is who was bound where, and when.
type tally struct {
	node  map[types.UID]string
	times []time.Time // in order, one for each pod
	twice []string    // pods that were bound again
}

func newTally() *tally { return &tally{node: map[types.UID]string{}} }

// follow takes down what a watch of bound pods tells, until so many are bound or
// none has been for long.
func (t *tally) follow(ctx context.Context, w watch.Interface, pods int) error {
	idle := time.NewTimer(patience)
	defer idle.Stop()
	for len(t.times) < pods {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-idle.C:
			return nil
		case e, open := <-w.ResultChan():
			if !open {
				return errors.New("the watch of pods has ended")
			}
			before := len(t.times)
			if err := t.see(e, time.Now()); err != nil {
				return err
			}
			if len(t.times) > before {
				idle.Reset(patience)
			}
		}
	}
	return nil
}

// see takes down one event: a pod comes into sight when it has been bound.
func (t *tally) see(e watch.Event, at time.Time) error {
	pod, ok := e.Object.(*corev1.Pod)
	if !ok || e.Type == watch.Deleted {
		return fmt.Errorf("the watch of pods tells of %s %T", e.Type, e.Object)
	}
	node, known := t.node[pod.UID]
	switch {
	case !known:
		t.node[pod.UID] = pod.Spec.NodeName
		t.times = append(t.times, at)
	case e.Type == watch.Added || node != pod.Spec.NodeName:
		t.twice = append(t.twice, fmt.Sprintf("pod %s/%s: bound to %s, then to %s", pod.Namespace, pod.Name, node, pod.Spec.NodeName))
	}
	return nil
}

// judge compares with the pods as they are in the end, of which there were to be
// so many, and says which of them are not bound, or not as was seen.
func (t *tally) judge(pods []corev1.Pod, wanted int) []string {
	wrong := t.twice
	for i := range pods {
		pod := &pods[i]
		switch seen, known := t.node[pod.UID]; {
		case pod.Spec.NodeName == "":
			wrong = append(wrong, fmt.Sprintf("pod %s/%s: has no node", pod.Namespace, pod.Name))
		case known && seen != pod.Spec.NodeName:
			wrong = append(wrong, fmt.Sprintf("pod %s/%s: seen on %s, and is on %s", pod.Namespace, pod.Name, seen, pod.Spec.NodeName))
		}
	}
	for range wanted - len(pods) {
		wrong = append(wrong, "a pod is gone")
	}
	return wrong
}
