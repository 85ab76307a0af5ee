package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/test/cluster"
)

// settle ends all trouble and waits until nothing changes any more: when there is
// room for everybody, everybody has a node, and when all pods are gone nothing is
// held.
func (r *run) settle(ctx context.Context) error {
	r.Proxy.Clear()
	if err := r.makeRoom(ctx); err != nil {
		return err
	}
	lost, err := remain(ctx, "all pods to have a node", func(ctx context.Context) ([]string, error) {
		_, waiting, err := r.pods(ctx)
		return waiting, err
	})
	if err != nil {
		return err
	}
	r.result.Lost = len(lost)
	r.say("there is room, and they wait", lost)
	if err := r.judge(ctx); err != nil {
		return err
	}
	if err := r.removeAll(ctx); err != nil {
		return err
	}
	leaked, err := remain(ctx, "all cards to be given back", r.Cluster.Holders)
	r.result.Leaked = len(leaked)
	r.say("held by pods that are gone", leaked)
	return err
}

// surelyFit is how many cards pods may be on so that each fits wherever the
// others are: the largest wants two cards of one node, and a node has them as
// long as the others do not leave at most one on each.
const surelyFit = machines * (each - 1)

// makeRoom deletes pods, any, until all others are sure to fit.
func (r *run) makeRoom(ctx context.Context) error {
	pods, _, err := r.pods(ctx)
	if err != nil {
		return err
	}
	r.random.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	cards := 0
	for i := range pods {
		if cards += cardsOf(&pods[i]); cards <= surelyFit {
			continue
		}
		if err := r.remove(ctx, pods[i].Name, false); err != nil {
			return err
		}
	}
	return nil
}

// removeAll deletes all pods and waits until they are gone.
func (r *run) removeAll(ctx context.Context) error {
	pods := r.Cluster.Client.CoreV1().Pods(r.Namespace)
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	return cluster.Eventually(ctx, "all pods to go", func(ctx context.Context) error {
		left, err := pods.List(ctx, metav1.ListOptions{})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d are left", len(left.Items))
		}
		return err
	})
}

// remain waits until find finds nothing, and returns what it still finds when
// patience ends.
func remain(ctx context.Context, what string, find func(context.Context) ([]string, error)) (left []string, err error) {
	err = cluster.Eventually(ctx, what, func(ctx context.Context) error {
		found, err := find(ctx)
		if err != nil {
			return err
		}
		if left = found; len(left) > 0 {
			return errors.New(strings.Join(left, ", "))
		}
		return nil
	})
	if len(left) > 0 && ctx.Err() == nil {
		err = nil // this is what was asked for
	}
	return left, err
}

// say notes what is wrong with the first few of these.
func (r *run) say(what string, these []string) {
	const few = 5
	if n := len(these); n > 0 {
		r.result.Wrong = append(r.result.Wrong, fmt.Sprintf("%d %s: %s", n, what, strings.Join(these[:min(few, n)], ", ")))
	}
}
