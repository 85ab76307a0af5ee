package chaos

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"heteroflow.io/heteroflow/test/faults"
)

// thingsGoWrong does something bad every second or two.
func (r *run) thingsGoWrong(until, ctx context.Context, random *rand.Rand) error {
	return tick(until, 1500*time.Millisecond, func() error {
		what := random.IntN(12)
		for ; what >= 10; what = random.IntN(12) { // a kill takes longest, and comes less often
			if random.IntN(3) == 0 {
				return r.kill(ctx)
			}
		}
		r.fault(what, 1+random.IntN(4))
		return nil
	})
}

// fault lets the next few Bindings, or the watches, meet with something.
func (r *run) fault(what, times int) {
	anyBinding := faults.Binding("")
	switch what {
	case 0:
		r.Proxy.On(anyBinding, times, faults.Drop)
	case 1, 2:
		r.Proxy.On(anyBinding, times, faults.LoseAnswer)
	case 3:
		r.Proxy.On(anyBinding, times, faults.Delay(3*time.Second))
	case 4: // longer than a bind may take: it arrives when everybody has given it up
		r.Proxy.On(anyBinding, 1, faults.Delay(17*time.Second))
	case 5:
		r.Proxy.On(anyBinding, times, faults.Answer(http.StatusInternalServerError, "etcdserver: leader changed"))
	case 6:
		r.Proxy.On(anyBinding, times, faults.Answer(http.StatusTooManyRequests, "busy"))
	case 7:
		r.Proxy.On(anyBinding, times, faults.Answer(http.StatusConflict, "the object has been modified"))
	case 8:
		r.Proxy.CutWatches()
		r.Proxy.On(faults.Watch, times, faults.Drop)
	case 9:
		r.Proxy.Replay("chaos-")
	}
}

// kill ends the scheduler as a crash would, and starts it again.
func (r *run) kill(ctx context.Context) error {
	r.Cluster.KillExtender()
	return r.Cluster.StartExtender(ctx, r.Extender())
}
