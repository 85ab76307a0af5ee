package window

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/window"
)

// struck is what a leader dies of.
type struck struct{ at string }

// lead lets the controller have a round, and reports whether it has outlived it.
func (w *world) lead(c *Controller) (outlived bool) {
	defer func() {
		if why := recover(); why != nil {
			if _, dead := why.(struck); !dead {
				panic(why)
			}
		}
	}()
	c.round(klog.NewContext(context.Background(), klog.Logger{})) // which tells nobody
	return true
}

// at goes on to that time of the clock, and has a round there.
func (w *world) at(c *Controller, at time.Time) {
	w.mu.Lock()
	w.clock = at
	w.see()
	w.mu.Unlock()
	w.lead(c)
}

// run goes on for so long, with a round each second that has something to do.
func (w *world) run(c *Controller, d time.Duration) {
	for until := w.now().Add(d); w.now().Before(until); {
		w.at(c, w.now().Add(time.Second))
	}
}

// The groups.

// dayNight is awake from 08:00 to 22:00 in Berlin.
func dayNight(action v1alpha1.TaskGroupAction) func(*v1alpha1.TaskGroup) {
	return func(g *v1alpha1.TaskGroup) {
		g.Spec.Windows, g.Spec.WindowAction, g.Spec.Replicas = []v1alpha1.TaskGroupWindow{{From: "08:00", To: "22:00", TimeZone: "Europe/Berlin"}}, action, nil
	}
}

func scaledTo(n int32) func(*v1alpha1.TaskGroup) {
	return func(g *v1alpha1.TaskGroup) {
		dayNight(v1alpha1.TaskGroupScale)(g)
		g.Spec.Replicas = &n
	}
}

func of(deployment string) func(*v1alpha1.TaskGroup) {
	return func(g *v1alpha1.TaskGroup) {
		g.Spec.ScaleTargetRef = &v1alpha1.TaskGroupTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment}
	}
}

// withReplicas is an edit by hand.
func withReplicas(n int32) func(*window.State) {
	return func(s *window.State) { s.Replicas = n }
}

func scaled(n int32) window.State { return window.State{Replicas: n} }

func withHPA(n, least, most int32) window.State {
	return window.State{Replicas: n, HPA: &window.Bounds{Min: least, Max: most}}
}

func withKEDA(n int32, paused string) window.State { return window.State{Replicas: n, KEDA: &paused} }

// closed and opened are when the windows close and open next, in Berlin.
func closed() time.Time { return time.Date(2026, 11, 30, 21, 0, 0, 0, time.UTC) }
func opened() time.Time { return time.Date(2026, 12, 1, 7, 0, 0, 0, time.UTC) }
