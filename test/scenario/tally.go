package scenario

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Tally is what becomes of the tasks. It is safe for concurrent use.
type Tally struct {
	floor  Floor
	places map[string]place
	nodes  map[string]int // name -> number

	mu    sync.Mutex
	fates map[string]*fate // guarded by mu; a pod's name -> what became of it
	wrong []string         // guarded by mu
}

// fate is what became of a task.
type fate struct {
	task   *Task
	asked  time.Time // when its pod was there
	bound  time.Time // when it was seen to have a node
	node   int       // where that is
	shares []share   // of cards that it holds
	ended  bool
}

// share is how much of a card a running task can keep busy.
type share struct {
	place
	part float64
}

func newTally(f Floor) *Tally {
	t := &Tally{floor: f, places: f.places(), nodes: map[string]int{}, fates: map[string]*fate{}}
	for n := range f.Nodes {
		t.nodes[nodeName(n)] = n
	}
	return t
}

// Ask takes down that the task's pod is about to be there.
func (t *Tally) Ask(task *Task, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fates[task.Name] = &fate{task: task, asked: at, node: -1}
}

// Bound reports whether the pod has been seen to have a node.
func (t *Tally) Bound(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.fates[name]
	return f != nil && !f.bound.IsZero()
}

// See takes down how a pod that is bound is now. Pods of earlier runs are not
// known here and are passed over.
func (t *Tally) See(pod *corev1.Pod, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.fates[pod.Name]
	if f == nil || pod.Spec.NodeName == "" {
		return
	}
	if f.bound.IsZero() {
		f.bound = at
		if err := t.settle(f, pod); err != nil {
			t.wrong = append(t.wrong, fmt.Sprintf("pod %s: %v", pod.Name, err))
		}
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		f.ended = true
	}
}

// Gone takes down that the pod is no longer there.
func (t *Tally) Gone(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.fates[name]; f != nil {
		f.ended = true
	}
}

// settle notes where the pod is and which cards it holds.
func (t *Tally) settle(f *fate, pod *corev1.Pod) error {
	node, known := t.nodes[pod.Spec.NodeName]
	if !known {
		return fmt.Errorf("is on node %q, which is none of ours", pod.Spec.NodeName)
	}
	var a struct {
		Containers []struct {
			Cards []struct {
				UUID      string `json:"uuid"`
				Cores     int    `json:"cores"`
				Exclusive bool   `json:"exclusive"`
			} `json:"cards"`
		} `json:"containers"`
	}
	if err := json.Unmarshal([]byte(pod.Annotations["heteroflow.io/allocation"]), &a); err != nil {
		return fmt.Errorf("its allocation: %w", err)
	}
	f.node = node
	for _, c := range a.Containers {
		for _, card := range c.Cards {
			at, known := t.places[card.UUID]
			if !known {
				return fmt.Errorf("holds card %q, which is none of ours", card.UUID)
			}
			part := 1.0
			if !card.Exclusive {
				part = float64(card.Cores) / 100
			}
			f.shares = append(f.shares, share{at, part})
		}
	}
	return nil
}

// Use is how busy the cards are, and how many are held whole or in part.
func (t *Tally) Use() (busy use, held int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	busy = make(use, t.floor.Nodes)
	taken := make([][cardsPerNode]bool, t.floor.Nodes)
	for _, f := range t.fates {
		if f.ended {
			continue
		}
		for _, s := range f.shares {
			u := &busy[s.node][s.card]
			*u = min(1, *u+s.part*f.task.Busy)
			if !taken[s.node][s.card] {
				taken[s.node][s.card] = true
				held++
			}
		}
	}
	return busy, held
}

// Wrong says what was seen that cannot be.
func (t *Tally) Wrong() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.wrong...)
}
