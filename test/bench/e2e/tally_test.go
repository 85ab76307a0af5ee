package e2e

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func on(node, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func TestTallySees(t *testing.T) {
	added := func(p *corev1.Pod) watch.Event { return watch.Event{Type: watch.Added, Object: p} }
	changed := func(p *corev1.Pod) watch.Event { return watch.Event{Type: watch.Modified, Object: p} }
	tests := map[string]struct {
		events  []watch.Event
		bound   int
		twice   []string
		wantErr bool
	}{
		"nothing":                    {},
		"two pods":                   {events: []watch.Event{added(on("n1", "a")), added(on("n1", "b"))}, bound: 2},
		"a bound pod that changes":   {events: []watch.Event{added(on("n1", "a")), changed(on("n1", "a"))}, bound: 1},
		"bound again":                {events: []watch.Event{added(on("n1", "a")), added(on("n1", "a"))}, bound: 1, twice: []string{"pod ns/a: bound to n1, then to n1"}},
		"bound to another node":      {events: []watch.Event{added(on("n1", "a")), changed(on("n2", "a"))}, bound: 1, twice: []string{"pod ns/a: bound to n1, then to n2"}},
		"a pod that goes":            {events: []watch.Event{added(on("n1", "a")), {Type: watch.Deleted, Object: on("n1", "a")}}, bound: 1, wantErr: true},
		"the watch is out of date":   {events: []watch.Event{{Type: watch.Error, Object: &metav1.Status{Reason: metav1.StatusReasonExpired}}}, wantErr: true},
		"first seen when it changes": {events: []watch.Event{changed(on("n1", "a"))}, bound: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tally := newTally()
			var err error
			for _, e := range tc.events {
				err = errors.Join(err, tally.see(e, time.UnixMilli(1)))
			}
			if (err != nil) != tc.wantErr {
				t.Errorf("error %v, want one: %t", err, tc.wantErr)
			}
			if len(tally.times) != tc.bound {
				t.Errorf("%d times, want %d", len(tally.times), tc.bound)
			}
			if diff := cmp.Diff(tc.twice, tally.twice); diff != "" {
				t.Errorf("twice (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTallyFollowsToTheLastPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, tally, start := watch.NewFake(), newTally(), time.Now()
		go func() {
			for _, name := range []string{"a", "b", "c"} {
				time.Sleep(patience - time.Second) // idle time begins anew with each pod
				w.Add(on("n1", name))
			}
		}()
		if err := tally.follow(t.Context(), w, 3); err != nil {
			t.Fatal(err)
		}
		each := patience - time.Second
		if diff := cmp.Diff([]time.Time{start.Add(each), start.Add(2 * each), start.Add(3 * each)}, tally.times); diff != "" {
			t.Errorf("times (-want +got):\n%s", diff)
		}
	})
}

// TestTallyGivesUp: news of pods that are bound already is no progress.
func TestTallyGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w, tally, start, done := watch.NewFake(), newTally(), time.Now(), make(chan struct{})
		go func() {
			defer close(done)
			w.Add(on("n1", "a"))
			time.Sleep(patience / 2)
			w.Modify(on("n1", "a"))
		}()
		if err := tally.follow(ctx, w, 2); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != patience {
			t.Errorf("gave up after %s, want %s", took, patience)
		}
		<-done
		stop()
		if err := tally.follow(ctx, w, 2); !errors.Is(err, context.Canceled) {
			t.Errorf("follow = %v, want context.Canceled", err)
		}
		w.Stop()
		if err := tally.follow(t.Context(), w, 2); err == nil {
			t.Error("a watch that has ended is no error")
		}
	})
}

func TestTallyJudges(t *testing.T) {
	tests := map[string]struct {
		seen []*corev1.Pod
		are  []corev1.Pod
		want []string
	}{
		"as seen":                 {seen: []*corev1.Pod{on("n1", "a"), on("n2", "b")}, are: []corev1.Pod{*on("n1", "a"), *on("n2", "b")}},
		"one waits":               {seen: []*corev1.Pod{on("n1", "a")}, are: []corev1.Pod{*on("n1", "a"), *on("", "b")}, want: []string{"pod ns/b: has no node"}},
		"one moved":               {seen: []*corev1.Pod{on("n1", "a"), on("n2", "b")}, are: []corev1.Pod{*on("n2", "a"), *on("n2", "b")}, want: []string{"pod ns/a: seen on n1, and is on n2"}},
		"one is gone":             {seen: []*corev1.Pod{on("n1", "a"), on("n2", "b")}, are: []corev1.Pod{*on("n1", "a")}, want: []string{"a pod is gone"}},
		"bound since nobody came": {are: []corev1.Pod{*on("n1", "a"), *on("n2", "b")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tally := newTally()
			for _, p := range tc.seen {
				if err := tally.see(watch.Event{Type: watch.Added, Object: p}, time.UnixMilli(1)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, tally.judge(tc.are, 2)); diff != "" {
				t.Errorf("wrong (-want +got):\n%s", diff)
			}
		})
	}
}
