package window

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
)

// goes runs the leader in the bubble until the test ends.
func (w *world) goes(t *testing.T, c *Controller) {
	t.Helper()
	c.Now = time.Now
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want context.Canceled", err)
		}
	})
}

// autoscaler is an HPA whose demand goes up and down by day, and which looks every 15 s.
func (w *world) autoscaler(ctx context.Context) {
	for hour := 0; ; hour++ {
		for range 240 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(15 * time.Second):
			}
			w.autoscale()
		}
		w.mu.Lock()
		for _, o := range w.targets {
			o.demand = int32(2 + hour*5%11) // within the bounds and past them
		}
		w.mu.Unlock()
	}
}

// A week of a service that is awake on weekdays from 08:00 to 20:00, with an HPA at work:
// within three seconds of the moment it is asleep, and as it was. By night nothing is
// written.
func TestWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.feeds["chat"] = "chat"
		w.target("chat", withHPA(7, 3, 10))
		w.group("chat", of("chat"), func(g *v1alpha1.TaskGroup) {
			g.Spec.WindowAction = v1alpha1.TaskGroupPause
			g.Spec.Windows = []v1alpha1.TaskGroupWindow{{Days: []string{"Mon", "Tue", "Wed", "Thu", "Fri"}, From: "08:00", To: "20:00"}}
		})
		w.goes(t, w.leader())
		go w.autoscaler(t.Context())
		nights := 0
		midnight := time.Date(2000, 1, 3, 0, 0, 0, 0, time.UTC) // the Monday after bubbles begin
		for day := range 7 {
			morning, evening := midnight.AddDate(0, 0, day).Add(8*time.Hour), midnight.AddDate(0, 0, day).Add(20*time.Hour)
			if day >= 5 {
				time.Sleep(time.Until(evening))
				if n := w.is("chat").Replicas; n != 0 {
					t.Errorf("%s: %d replicas at the weekend", evening, n)
				}
				continue
			}
			time.Sleep(time.Until(morning.Add(3 * time.Second)))
			synctest.Wait()
			if n := w.is("chat").Replicas; n == 0 {
				t.Errorf("%s: it sleeps", morning)
			}
			time.Sleep(time.Until(evening.Add(-time.Second)))
			synctest.Wait()
			before := w.is("chat")
			time.Sleep(4 * time.Second)
			synctest.Wait()
			if n := w.is("chat").Replicas; n != 0 {
				t.Errorf("%s: %d replicas", evening, n)
			}
			if image := decodeState(&w.status("chat").Action.Before); cmp.Diff(before, image) != "" {
				t.Errorf("%s: the image is %+v, want %+v", evening, image, before)
			}
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			writes := len(w.written())
			time.Sleep(11 * time.Hour)
			synctest.Wait()
			if all := w.written(); len(all) != writes {
				t.Errorf("by night it writes %v", all[writes:])
			}
			nights++
		}
		if nights != 5 {
			t.Errorf("%d nights", nights)
		}
	})
}

// An edit has effect at once, and not with the next minute.
func TestEditAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.target("chat", scaled(7))
		w.group("chat", of("chat"), always)
		w.goes(t, w.leader())
		time.Sleep(10 * time.Second)
		w.group("chat", func(g *v1alpha1.TaskGroup) {
			g.Spec.WindowAction = v1alpha1.TaskGroupPause
			g.Spec.Windows = []v1alpha1.TaskGroupWindow{{From: "08:00", To: "20:00"}} // it is midnight
		})
		time.Sleep(pace)
		synctest.Wait()
		if n := w.is("chat").Replicas; n != 0 {
			t.Errorf("%d replicas", n)
		}
	})
}

// Rounds of many groups of which none is due cost next to nothing: nobody is asked. Those
// that are due at once are looked at some in each round.
func TestManyGroups(t *testing.T) {
	w := newWorld()
	for i := range 2 * mostGroups {
		name := fmt.Sprintf("g%04d", i)
		w.target(name, scaled(3))
		w.mu.Lock()
		g := &v1alpha1.TaskGroup{}
		g.Namespace, g.Name, g.UID, g.Generation = "ns", name, types.UID(name), 1
		of(name)(g)
		dayNight(v1alpha1.TaskGroupPause)(g)
		w.store(g)
		w.mu.Unlock()
	}
	c := w.leader()
	asked := 0
	c.Client = counted{c.Client, &asked}
	for range 2 {
		before := asked
		w.at(c, w.now().Add(time.Second))
		if asked-before != mostGroups {
			t.Errorf("a round looks at %d groups", asked-before)
		}
	}
	w.at(c, w.now().Add(time.Second))
	if asked != 2*mostGroups {
		t.Errorf("%d looks at groups of which none is due", asked-2*mostGroups)
	}
	for range 2 {
		w.at(c, closed())
	}
	for name := range w.targets {
		if n := w.is(name).Replicas; n != 0 {
			t.Errorf("%s has %d replicas", name, n)
		}
	}
}

// counted counts how often groups are read.
type counted struct {
	Groups
	n *int
}

func (c counted) Get(ctx context.Context, namespace, name string) (*v1alpha1.TaskGroup, error) {
	*c.n++
	return c.Groups.Get(ctx, namespace, name)
}

// Where the API server does not answer, a round does not ask it for each group.
func TestNoAnswer(t *testing.T) {
	w := newWorld()
	for _, name := range []string{"a", "b", "c", "d"} {
		w.target(name, scaled(3))
		w.group(name, of(name), dayNight(v1alpha1.TaskGroupPause))
	}
	c := w.leader()
	asked := 0
	c.Client = counted{c.Client, &asked}
	w.refuse = func(string) error { return errors.New("no answer") }
	w.at(c, start())
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	w.refuse = func(string) error { return nil }
	for range 8 {
		w.at(c, w.now().Add(time.Second))
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		if s := w.status(name); s.State != "InWindow" {
			t.Errorf("%s: %q", name, s.State)
		}
	}
}
