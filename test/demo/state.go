package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/test/cluster"
	"heteroflow.io/heteroflow/test/oracle"
)

// reporter is how our scheduler signs its events.
const reporter = "heteroflow-scheduler"

// quiet is how long nothing may have changed for the pods to count as settled:
// longer than the first backoffs of a pod whose bind met another, and than the
// time in which what a Tenant holds is written into its status.
const quiet = 7 * time.Second

// longest is how long settling may take in all.
const longest = 3 * time.Minute

// state is what the API server says at one moment.
type state struct {
	oracle.World
	reasons     map[types.UID]string // pod -> our latest word on why it waits
	preemptions []v1alpha1.Preemption
}

// settled waits until every pod is placed or has been told why not, and
// nothing changes any more.
func settled(ctx context.Context, c *cluster.Cluster) (*state, error) {
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var last string
	var since time.Time
	for {
		s, err := look(ctx, c)
		if err != nil {
			return nil, err
		}
		if now := s.fingerprint(); now != last {
			last, since = now, time.Now()
		}
		if s.untold() == "" && time.Since(since) >= quiet {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("pods do not settle: %w (%s)", ctx.Err(), s.untold())
		case <-tick.C:
		}
	}
}

func look(ctx context.Context, c *cluster.Cluster) (*state, error) {
	world, err := oracle.Read(ctx, c.Client)
	if err != nil {
		return nil, err
	}
	events, err := c.Client.CoreV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all, err := preemptions(ctx, c)
	if err != nil {
		return nil, err
	}
	return &state{World: world, reasons: words(events.Items), preemptions: all}, nil
}

// words picks, for each pod, the latest warning of our scheduler.
func words(events []corev1.Event) map[types.UID]string {
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	reasons := map[types.UID]string{}
	for _, e := range events {
		if cmp.Or(e.ReportingController, e.Source.Component) == reporter && e.Type == corev1.EventTypeWarning {
			reasons[e.InvolvedObject.UID] = e.Message
		}
	}
	return reasons
}

// fingerprint changes whenever a pod is placed or told something new.
func (s *state) fingerprint() string {
	var b strings.Builder
	for _, pod := range s.Pods {
		fmt.Fprintln(&b, pod.UID, pod.Spec.NodeName, s.reasons[pod.UID])
	}
	return b.String()
}

// untold names a pod that is neither placed nor told why, or for which others are
// being ended; "" when there is none.
func (s *state) untold() string {
	if pod := goingOn(s.preemptions); pod != "" {
		return fmt.Sprintf("pods are still being ended for pod %s", pod)
	}
	for _, pod := range s.Pods {
		if pod.Spec.NodeName == "" && s.reasons[pod.UID] == "" {
			return fmt.Sprintf("pod %s waits and nobody says why", nameOf(&pod))
		}
	}
	return ""
}

// print shows the named pods, those that wait last, and the sums of all.
func (s *state) print(w io.Writer, names []string) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nPOD\tASKS\tNODE\tCARDS, OR WHY IT WAITS\n")
	pods := slices.Clone(s.Pods)
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Compare(min(1, len(b.Spec.NodeName)), min(1, len(a.Spec.NodeName)))
	})
	placed := 0
	for _, pod := range pods {
		placed += min(1, len(pod.Spec.NodeName))
		if name := nameOf(&pod); slices.Contains(names, name) {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", name, asks(pod), cmp.Or(pod.Spec.NodeName, "-"), s.fate(pod))
		}
	}
	table.Flush()
	fmt.Fprintf(w, "\n%d of %d pods are placed, %d wait.\n\n", placed, len(pods), len(pods)-placed)
}

// nameOf names a pod, by its namespace too if that is not the demo's.
func nameOf(pod *corev1.Pod) string {
	if pod.Namespace == namespace {
		return pod.Name
	}
	return pod.Namespace + "/" + pod.Name
}

func asks(pod corev1.Pod) string {
	var parts []string
	for _, c := range pod.Spec.Containers {
		for name, amount := range c.Resources.Limits {
			parts = append(parts, fmt.Sprintf("%s=%d", name[strings.Index(string(name), "/")+1:], amount.Value()))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// fate is the pod's cards, or the reason why it has none.
func (s *state) fate(pod corev1.Pod) string {
	if pod.Spec.NodeName == "" {
		return s.reasons[pod.UID]
	}
	var allocation struct {
		Containers []struct {
			Cards []struct {
				UUID      string `json:"uuid"`
				MemoryMiB int64  `json:"memoryMiB"`
				Cores     int    `json:"cores"`
				Exclusive bool   `json:"exclusive"`
			} `json:"cards"`
		} `json:"containers"`
	}
	if err := json.Unmarshal([]byte(pod.Annotations["heteroflow.io/allocation"]), &allocation); err != nil {
		return "no allocation that can be read: " + err.Error()
	}
	var cards []string
	for _, c := range allocation.Containers {
		for _, card := range c.Cards {
			text := card.UUID + " whole"
			if !card.Exclusive {
				text = fmt.Sprintf("%s %d MiB %d %%", card.UUID, card.MemoryMiB, card.Cores)
			}
			cards = append(cards, text)
		}
	}
	return strings.Join(cards, ", ")
}

// judge asks the oracle, which shares no code with the scheduler.
func (s *state) judge() error {
	violations := s.Check()
	if len(violations) == 0 {
		fmt.Printf("Checked from outside: no card is oversold, none is shared by tenants that may not, no quota is passed.\n\n")
		return nil
	}
	return errors.New("the oracle found:\n  " + strings.Join(violations, "\n  "))
}
