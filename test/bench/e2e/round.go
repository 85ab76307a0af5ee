package e2e

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/test/oracle"
	"heteroflow.io/heteroflow/test/proc"
)

// Round is what one configuration did with one lot of pods.
type Round struct {
	Setup  string
	Load   string // the load average when it began
	Rate   float64
	Middle float64 // the same of the middle four fifths
	Use    map[string]Use
	Binds  Outcomes // ours alone counts them
	// Wrong says of each pod that was not bound exactly once what became of it,
	// and Unsound what the oracle objects to.
	Wrong, Unsound []string
}

// round has one configuration bind so many pods, all of which wait when its
// kube-scheduler starts, and removes them again.
func (b *bench) round(ctx context.Context, s setup, pods int) (r Round, err error) {
	r.Setup = s.name
	if r.Load, err = proc.Load(); err != nil {
		return r, err
	}
	if s.policed {
		if err := b.cluster.Install(ctx, chartPolicies...); err != nil {
			return r, fmt.Errorf("install the policies: %w", err)
		}
	}
	if err := create(ctx, b.client, pods); err != nil {
		return r, fmt.Errorf("create pods: %w", err)
	}
	if err := b.measure(ctx, s, pods, &r); err != nil {
		return r, err
	}
	if err := b.cluster.StopKubeScheduler(ctx); err != nil {
		return r, fmt.Errorf("stop kube-scheduler: %w", err)
	}
	b.cluster.StopExtender()
	if err := remove(ctx, b.client, pods); err != nil {
		return r, fmt.Errorf("remove pods: %w", err)
	}
	if s.policed {
		if err := b.cluster.Repeal(ctx); err != nil {
			return r, fmt.Errorf("take the policies away: %w", err)
		}
	}
	return r, nil
}

// measure starts the configuration, follows it until it has bound the pods, and
// judges what it did.
func (b *bench) measure(ctx context.Context, s setup, pods int, r *Round) error {
	w, err := watchBound(ctx, b.client)
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	defer w.Stop()
	if err := s.extender(ctx); err != nil {
		return fmt.Errorf("start the extender: %w", err)
	}
	before, err := readAll(b.cluster.Processes())
	if err != nil {
		return err
	}
	if err := b.cluster.StartKubeSchedulerWith(s.config); err != nil {
		return err
	}
	ctx, stop := b.cluster.WhileAllRun(ctx)
	defer stop()
	t := newTally()
	if err := t.follow(ctx, w, pods); err != nil {
		return err
	}
	after, err := readAll(b.cluster.Processes())
	if err != nil {
		return err
	}
	r.Use, r.Rate, r.Middle = used(before, after), rate(t.times), rate(middle(t.times))
	return b.judge(ctx, s, t, pods, r)
}

// judge says what is wrong with the pods as they are now.
func (b *bench) judge(ctx context.Context, s setup, t *tally, pods int, r *Round) error {
	list, err := b.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	r.Wrong = t.judge(list.Items, pods)
	if !s.ours {
		return nil
	}
	if r.Unsound, err = oracle.Verify(ctx, b.client); err != nil {
		return fmt.Errorf("list pods and nodes: %w", err)
	}
	r.Binds, err = outcomes(ctx, b.cluster.MetricsURL(), len(t.times))
	return err
}
