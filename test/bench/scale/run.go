package scale

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/oracle"
	"heteroflow.io/heteroflow/test/proc"
)

// Options says how large the cluster is, and how much it is shaken.
type Options struct {
	Nodes, Pods int
	Settle      time.Duration // from ready to the second look at the memory; an audit has to fit in
	Audit       time.Duration // between two audits
	Ask         time.Duration // how long /filter is asked, quiet and in the storm
	Rate        int           // changes a second in the storm
	Say         func(format string, args ...any)
}

// stage is what a run needs.
type stage struct {
	Options
	world
	cluster *cluster.Cluster
	dir     string // of the logs
	uids    []types.UID
}

// Run measures once on a control plane that is up and has its logs in dir. Its
// error is a fault: what has been measured is judged by who reads it.
func Run(ctx context.Context, c *cluster.Cluster, dir string, o Options) error {
	s := &stage{Options: o, world: world{o.Nodes, o.Pods}, cluster: c, dir: dir}
	for _, step := range []func(context.Context) error{s.fill, s.start, s.rest, s.shake, s.verify} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) fill(ctx context.Context) error {
	for i := range min(tenants, s.world.nodes) {
		if err := s.cluster.Namespace(ctx, s.namespace(i)); err != nil {
			return err
		}
	}
	client, err := quick(s.cluster.Config)
	if err == nil {
		s.uids, err = s.load(ctx, client, s.Say)
	}
	return err
}

// start starts the scheduler and waits until it is ready.
func (s *stage) start(ctx context.Context) error {
	began := time.Now()
	err := s.cluster.StartExtender(ctx, cluster.Extender{Audit: s.Audit})
	for try := 0; try < patience && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil; try++ {
		err = cluster.Eventually(ctx, "the extender", s.answers)
	}
	if err != nil {
		return err
	}
	took := time.Since(began)
	var after time.Duration
	if err := cluster.Eventually(ctx, "the log to say how long it took", func(context.Context) error {
		after, err = s.logged("ready: the ledger has been built", "afterCaches")
		return err
	}); err != nil {
		return err
	}
	s.Say("ready: %.1f s after caches synced, %.1f s after the start", after.Seconds(), took.Seconds())
	return s.usage("ready")
}

// patience is how many minutes more the scheduler may take to be ready: on a
// machine that does other things, the API server needs long for so many pods.
const patience = 5

// answers says whether the scheduler is ready.
func (s *stage) answers(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.cluster.ExtenderURL()+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("readyz answers %s", answer.Status)
	}
	return nil
}

// usage says what the scheduler has taken so far.
func (s *stage) usage(when string) error {
	u, err := proc.Read(s.cluster.Processes()[cluster.ExtenderName])
	if err == nil {
		s.Say("memory: %d MiB resident (peak %d), %s; processor %.1f s", u.Resident>>10, u.Peak>>10, when, u.CPU.Seconds())
	}
	return err
}

// rest leaves it alone, but for its audits.
func (s *stage) rest(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(s.Settle):
	}
	return s.usage(fmt.Sprintf("%.0f s later", s.Settle.Seconds()))
}

// shake asks for a while, and then as long again while everything changes.
func (s *stage) shake(ctx context.Context) error {
	body, err := s.question()
	if err != nil {
		return err
	}
	quiet, err := s.asked(ctx, body)
	if err != nil {
		return err
	}
	if err := s.usage("after the quiet"); err != nil {
		return err
	}
	client, err := quick(s.cluster.Config)
	if err != nil {
		return err
	}
	var stormy []time.Duration
	var g errgroup.Group
	storm, stop := context.WithCancel(ctx)
	g.Go(func() error {
		taken, took, err := s.storm(storm, client, s.Rate)
		s.Say("events: %.0f/s", float64(taken)/took.Seconds())
		return err
	})
	stormy, err = s.asked(ctx, body)
	stop()
	if err := errors.Join(err, g.Wait()); err != nil {
		return err
	}
	a, b := quantile(quiet, .99), quantile(stormy, .99)
	s.Say("filter p50: quiet %s ms, storm %s ms, of %d and %d", ms(quantile(quiet, .5)), ms(quantile(stormy, .5)), len(quiet), len(stormy))
	s.Say("filter p99: quiet %s ms, storm %s ms, ratio %.2f", ms(a), ms(b), float64(b)/float64(a))
	return s.usage("after the storm")
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }

func (s *stage) asked(ctx context.Context, body []byte) ([]time.Duration, error) {
	ctx, stop := context.WithTimeout(ctx, s.Ask)
	defer stop()
	return ask(ctx, s.cluster.ExtenderURL(), body)
}

// verify compares the books with what was written, and has the oracle look.
func (s *stage) verify(ctx context.Context) error {
	if err := s.books(ctx); err != nil {
		return err
	}
	client, err := quick(s.cluster.Config)
	if err != nil {
		return err
	}
	wrong, err := oracle.Verify(ctx, client)
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fmt.Errorf("the oracle finds %d faults, the first: %s", len(wrong), wrong[0])
	}
	s.Say("books: %d pods on their cards; the oracle finds nothing", s.world.pods)
	return nil
}
