package scenario

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func plan() Plan {
	return Plan{Floor: Floor{Nodes: 128}, Load: 0.9, Fill: 30 * time.Second, Length: 3 * time.Minute, Wait: 15 * time.Second}
}

func TestTheSameSeedDrawsTheSame(t *testing.T) {
	a, b := Draw(plan(), 7), Draw(plan(), 7)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("seed 7 (-once +again):\n%s", diff)
	}
	if cmp.Equal(a, Draw(plan(), 8)) {
		t.Error("seed 8 draws what seed 7 does")
	}
}

// What a reader of docs/placement.md is told of the tasks.
func TestDraw(t *testing.T) {
	p := plan()
	for seed := range uint64(20) {
		tasks := Draw(p, seed)
		names, groups := map[string]bool{}, map[string][]Task{}
		for i, task := range tasks {
			if names[task.Name] {
				t.Fatalf("seed %d: two tasks are called %s", seed, task.Name)
			}
			names[task.Name] = true
			if i > 0 && task.At < tasks[i-1].At {
				t.Fatalf("seed %d: %s comes before the one before it", seed, task.Name)
			}
			if task.At < 0 || task.At >= p.Length-p.Wait || task.Takes < shortest || task.Busy < 0.6 || task.Busy > 1 {
				t.Errorf("seed %d: %+v", seed, task)
			}
			if task.Whole() == (task.Memory > 0) || task.Whole() == (task.Cores > 0) {
				t.Errorf("seed %d: %+v asks for whole cards and for a slice, or for neither", seed, task)
			}
			if task.Group != "" {
				groups[task.Group] = append(groups[task.Group], task)
			}
		}
		for name, members := range groups {
			if len(members) != 8 {
				t.Errorf("seed %d: group %s has %d pods, want 8", seed, name, len(members))
			}
			for _, m := range members {
				m.Name = members[0].Name
				if m != members[0] {
					t.Errorf("seed %d: group %s has pods that differ: %+v, %+v", seed, name, members[0], m)
				}
			}
		}
		if len(groups) == 0 {
			t.Errorf("seed %d: there is no group", seed)
		}
	}
}

// If nobody waited, the tasks would hold the load at every time after filling, in
// the shares of the kinds.
func TestLoad(t *testing.T) {
	p := plan()
	const seeds = 60
	held := map[string]float64{} // kind -> cards, on average over times and seeds
	times := []time.Duration{30 * time.Second, 60 * time.Second, 100 * time.Second, 160 * time.Second}
	for seed := range uint64(seeds) {
		for _, task := range Draw(p, seed) {
			amount := ask{cards: task.Cards, cores: task.Cores}.amount()
			for _, at := range times {
				if task.At <= at && at < task.At+task.Takes {
					held[task.Kind] += amount / float64(seeds*len(times))
				}
			}
		}
	}
	for _, k := range kinds() {
		want := k.share * p.Load * float64(p.Floor.Cards())
		if got := held[k.name]; math.Abs(got-want) > 0.08*want {
			t.Errorf("%s hold %.0f cards, want %.0f", k.name, got, want)
		}
	}
}

func TestKindsAreShares(t *testing.T) {
	sum := 0.0
	for _, k := range kinds() {
		sum += k.share
		percent := 0
		for _, a := range k.asks {
			percent += a.percent
		}
		if percent != 100 {
			t.Errorf("%s: its asks are %d of a hundred", k.name, percent)
		}
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the kinds' shares come to %v, want 1", sum)
	}
}

func TestPlanRefuses(t *testing.T) {
	tests := map[string]func(*Plan){
		"no load":          func(p *Plan) { p.Load = 0 },
		"too much of it":   func(p *Plan) { p.Load = 2.1 },
		"no patience":      func(p *Plan) { p.Wait = 0 },
		"nothing left":     func(p *Plan) { p.Length = 45 * time.Second },
		"negative filling": func(p *Plan) { p.Fill = -time.Second },
		"part of a rack":   func(p *Plan) { p.Floor.Nodes = 12 },
	}
	if err := plan().Validate(); err != nil {
		t.Errorf("a good plan: %v", err)
	}
	for name, spoil := range tests {
		p := plan()
		spoil(&p)
		if p.Validate() == nil {
			t.Errorf("%s: no complaint", name)
		}
	}
}

func TestPods(t *testing.T) {
	tests := map[string]struct {
		task Task
		want map[corev1.ResourceName]string
		job  string
	}{
		"a slice": {
			Task{Name: "s", Memory: 8000, Cores: 10, Takes: time.Minute},
			map[corev1.ResourceName]string{"cpu": "2", "memory": "16Gi", "heteroflow.io/gpu-memory": "8k", "heteroflow.io/gpu-cores": "10"}, ""},
		"one of a group": {
			Task{Name: "g-0", Group: "g", Cards: 2, Takes: time.Minute},
			map[corev1.ResourceName]string{"cpu": "24", "memory": "256Gi", "heteroflow.io/gpu": "2"}, "g"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := tc.task.pod()
			got := map[corev1.ResourceName]string{}
			for name, q := range pod.Spec.Containers[0].Resources.Limits {
				got[name] = q.String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
			if got := pod.Labels[labelJob]; got != tc.job {
				t.Errorf("job %q, want %q", got, tc.job)
			}
			if got := pod.Annotations["simnode.test/run-for"]; got != "1m0s" {
				t.Errorf("runs for %q, want 1m0s", got)
			}
		})
	}
}

// Only cards may be short: whatever fits a node's cards fits its processors and
// its memory.
func TestProcessorsAndMemoryAreAmple(t *testing.T) {
	node := Floor{Nodes: 8}.specs()[0]
	var worst []Task // the most that eight cards hold, of each kind of ask
	for range cardsPerNode {
		worst = append(worst, Task{Cards: 1})
	}
	var slices8 []Task
	for range cardsPerNode * 9 { // 9 slices of 8,000 MiB are what is usable of a card
		slices8 = append(slices8, Task{Memory: 8000, Cores: 10})
	}
	for _, tasks := range [][]Task{worst, slices8, {{Cards: 8}}} {
		cpu, memory := total(tasks, "cpu"), total(tasks, "memory")
		if cpu > 192 || memory > 2<<40 {
			t.Errorf("%d pods of %+v take %d processors and %d bytes of %s and %s", len(tasks), tasks[0], cpu, memory, node.CPU, node.Memory)
		}
	}
}

func total(tasks []Task, of corev1.ResourceName) (sum int64) {
	for i := range tasks {
		q := tasks[i].asks()[of]
		sum += q.Value()
	}
	return sum
}

func TestKindsDrawByThemselves(t *testing.T) {
	p := plan()
	of := func(tasks []Task, kind string) []Task {
		return slices.DeleteFunc(slices.Clone(tasks), func(t Task) bool { return t.Kind != kind })
	}
	k := kinds()[1]
	alone := drawer{Plan: p, kind: k, random: source(3, 1)}
	got := alone.tasks()
	slices.SortStableFunc(got, byTime)
	if diff := cmp.Diff(of(Draw(p, 3), k.name), got); diff != "" {
		t.Errorf("%s alone (-among others +alone):\n%s", k.name, diff)
	}
}
