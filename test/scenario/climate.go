package scenario

import (
	"context"
	"time"
)

// period is how often the cards' temperatures are worked out and told.
const period = 500 * time.Millisecond

// climate has the cards warm up and cool down by what runs on them.
type climate struct {
	stage       *stage
	gauges      *Gauges
	begin, last time.Time

	node, card float64 // the highest of each, after filling
	throttled  float64 // card-minutes
	held       float64 // the sum of the shares of cards held
	looks      int     // after filling
}

// run goes on for so long.
func (c *climate) run(ctx context.Context, length time.Duration) error {
	end := time.NewTimer(length)
	defer end.Stop()
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-end.C:
			return nil
		case <-tick.C:
			c.step(time.Now())
		}
	}
}

func (c *climate) step(now time.Time) {
	busy, held := c.stage.tally.Use()
	passed := inCluster(now.Sub(c.last))
	c.stage.heat.Step(busy, passed)
	c.last = now
	c.gauges.Set(c.stage.heat.cards, now)
	if now.Sub(c.begin) < c.stage.plan.Fill {
		return
	}
	node, card := c.stage.heat.Hottest()
	c.node, c.card = max(c.node, node), max(c.card, card)
	c.throttled += float64(c.stage.heat.Throttled()) * passed.Minutes()
	c.held += float64(held) / float64(c.stage.plan.Floor.Cards())
	c.looks++
}

func (c *climate) outcome() Outcome {
	return Outcome{Node: c.node, Card: c.card, Throttled: c.throttled, Held: c.held / float64(max(1, c.looks))}
}
