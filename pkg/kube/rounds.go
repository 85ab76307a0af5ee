package kube

import (
	"context"
	"time"
)

// Rounds has a controller take rounds until ctx ends: one every period, and one when
// changed is closed, which it is asked for anew before each; never two within pace. nil:
// nothing tells of changes.
func Rounds(ctx context.Context, period, pace time.Duration, changed func() <-chan struct{}, round func(context.Context)) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		var news <-chan struct{}
		if changed != nil {
			news = changed() // before the round, or what comes during it would wait
		}
		round(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pace):
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-news:
		case <-tick.C:
		}
	}
}
