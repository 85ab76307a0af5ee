package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// Of the pods that have a node those are learned from that ask for cards, in the order
// in which they came; one that cannot be understood is in nobody's way.
func TestAsked(t *testing.T) {
	pod := func(name, node, name2, quantity string, minute int) *corev1.Pod {
		limits := corev1.ResourceList{corev1.ResourceName(name2): resource.MustParse(quantity)}
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Unix(int64(60*minute), 0))},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
				Name: "main", Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits},
			}}},
		}
	}
	pods := []*corev1.Pod{
		pod("late", "n1", "heteroflow.io/gpu", "2", 9),
		pod("early", "n1", "heteroflow.io/gpu", "8", 1),
		pod("waits", "", "heteroflow.io/gpu", "1", 2),
		pod("no-cards", "n1", "cpu", "4", 3),
		pod("nonsense", "n1", "heteroflow.io/gpu", "0", 4),
		pod("middle", "n2", "heteroflow.io/gpu-memory", "1000", 5),
	}
	var got []gpu.PodID
	for _, r := range asked(pods, policy.Default()) {
		got = append(got, r.Pod)
	}
	if diff := cmp.Diff([]gpu.PodID{"early", "middle", "late"}, got); diff != "" {
		t.Errorf("learned from (-want +got):\n%s", diff)
	}
	if pods[0].Name != "late" {
		t.Error("the cache's list was put in another order")
	}
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		soon := func() bool { return time.Since(began) >= time.Second }
		if err := until(t.Context(), soon); err != nil || time.Since(began) > 1100*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := until(ctx, func() bool { return false }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("of what never is: %v", err)
		}
	})
}
