package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/oracle"
)

// workers is how many requests are under way at once.
const workers = 16

// stage is one run of one setup.
type stage struct {
	cluster *cluster.Cluster
	client  kubernetes.Interface
	plan    Plan
	setup   Setup
	tasks   []Task
	tally   *Tally
	heat    *Heat
	say     func(format string, args ...any)
}

// run starts the setup, has the tasks come and go, and judges what is left.
func (s *stage) run(ctx context.Context) (o Outcome, err error) {
	gauges, err := NewGauges(s.plan.Floor)
	if err != nil {
		return o, err
	}
	defer gauges.Close()
	gauges.Set(s.heat.cards, time.Now())
	if err := s.start(ctx, gauges); err != nil {
		return o, err
	}
	if o, err = s.perform(ctx, gauges); err != nil {
		return o, err
	}
	unsound, err := oracle.Verify(ctx, s.client)
	if err != nil {
		return o, fmt.Errorf("list pods and nodes: %w", err)
	}
	o.Wrong = append(s.tally.Wrong(), unsound...)
	return o, s.clear(ctx)
}

func (s *stage) start(ctx context.Context, gauges *Gauges) error {
	e := cluster.Extender{Policy: s.setup.policy}
	if !s.setup.blind {
		e.Telemetry = gauges.config()
	}
	if err := s.cluster.StartExtender(ctx, e); err != nil {
		return fmt.Errorf("start the extender: %w", err)
	}
	example, err := s.cluster.KubeSchedulerConfig(s.cluster.ExtenderURL())
	if err != nil {
		return err
	}
	config, err := s.setup.schedulerConfig(example)
	if err != nil {
		return err
	}
	return s.cluster.StartKubeSchedulerWith(config)
}

// perform has the tasks come, and withdraws those that wait for too long, while
// the cards warm up and somebody watches.
func (s *stage) perform(ctx context.Context, gauges *Gauges) (Outcome, error) {
	ctx, stop := s.cluster.WhileAllRun(ctx)
	defer stop()
	watching, unwatch := context.WithCancel(ctx)
	done, err := s.watch(watching)
	defer func() { unwatch(); done() }()
	if err != nil {
		return Outcome{}, err
	}
	begin := time.Now()
	climate := climate{stage: s, gauges: gauges, begin: begin, last: begin}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.each(ctx, begin, s.create) })
	g.Go(func() error { return s.each(ctx, begin.Add(s.plan.Wait), s.withdraw) })
	g.Go(func() error { return climate.run(ctx, s.plan.Length) })
	if err := g.Wait(); err != nil {
		return Outcome{}, err
	}
	o := climate.outcome()
	o.Setup = s.setup.Name
	s.tally.Count(s.plan, &o)
	return o, nil
}

// each does something for every task at its time after begin.
func (s *stage) each(ctx context.Context, begin time.Time, do func(context.Context, *Task) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range s.tasks {
		timer.Reset(time.Until(begin.Add(s.tasks[i].At)))
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), g.Wait())
		case <-timer.C:
		}
		g.Go(func() error { return do(ctx, &s.tasks[i]) })
	}
	return g.Wait()
}

func (s *stage) create(ctx context.Context, t *Task) error {
	s.tally.Ask(t, time.Now())
	_, err := s.client.CoreV1().Pods(namespace).Create(ctx, t.pod(), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod %s: %w", t.Name, err)
	}
	return nil
}

// withdraw deletes the pod of a task that still waits: its author gives up.
func (s *stage) withdraw(ctx context.Context, t *Task) error {
	if s.tally.Bound(t.Name) {
		return nil
	}
	return s.remove(ctx, t.Name)
}

func (s *stage) remove(ctx context.Context, name string) error {
	err := s.client.CoreV1().Pods(namespace).Delete(ctx, name, *metav1.NewDeleteOptions(0))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return nil
}

// watch tells the tally of bound pods until ctx ends, and done returns.
func (s *stage) watch(ctx context.Context) (done func(), err error) {
	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}))
	informer := factory.Core().V1().Pods().Informer()
	see := func(o any) {
		if pod, ok := o.(*corev1.Pod); ok {
			s.tally.See(pod, time.Now())
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    see,
		UpdateFunc: func(_, o any) { see(o) },
		DeleteFunc: func(o any) {
			if key, err := cache.DeletionHandlingObjectToName(o); err == nil {
				s.tally.Gone(key.Name)
			}
		},
	})
	if err != nil {
		return func() {}, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return factory.Shutdown, fmt.Errorf("watch pods: %w", context.Cause(ctx))
	}
	return factory.Shutdown, nil
}

// clear stops both schedulers and removes all pods.
func (s *stage) clear(ctx context.Context) error {
	if err := s.cluster.StopKubeScheduler(ctx); err != nil {
		return fmt.Errorf("stop kube-scheduler: %w", err)
	}
	s.cluster.StopExtender()
	g, remaining := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for i := range s.tasks {
		g.Go(func() error { return s.remove(remaining, s.tasks[i].Name) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return cluster.Eventually(ctx, "the pods to go", func(ctx context.Context) error {
		left, err := s.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%s is left", left.Items[0].Name)
		}
		return err
	})
}
