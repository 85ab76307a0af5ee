package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
)

func TestBind(t *testing.T) {
	c := newCluster(2)
	c.server.create(pod("a", whole(1)))
	r := pod("a", whole(1))
	c.Filter(&r, []gpu.NodeID{"n1"})
	got, err := c.Bind(t.Context(), target("a", "n1"))
	if err != nil {
		t.Fatal(err)
	}
	want := gpu.Placement{
		Pod: "a", Namespace: "ns", Name: "a", Node: "n1", Tenant: "ns",
		Grants: []gpu.Grant{{Container: "c0", Shares: []gpu.Share{{
			Card: "n1-d0", Vendor: gpu.Nvidia, Memory: 1000, Cores: 100, Exclusive: true, Isolation: gpu.IsolationExclusive,
		}}}},
	}
	if diff := cmp.Diff(Bound{Placement: want, Decision: Decision{Feasible: 1, Asked: 1}}, got); diff != "" {
		t.Errorf("bound (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[gpu.PodID]gpu.Placement{"a": want}, c.server.bound()); diff != "" {
		t.Errorf("at the API server (-want +got):\n%s", diff)
	}
	if h, _ := c.ledger.Hold("a"); h.State != ledger.Held {
		t.Errorf("the hold is %s before the informer has seen the pod", h.State)
	}
	c.server.mustAgree(t, c.ledger)
	c.mustLeaveNoGate(t)
}

// The Binder is told what the pod said when its cards were chosen, and not what it says
// once they are.
func TestBinderIsToldWhatThePodSaid(t *testing.T) {
	c := newCluster(2)
	c.server.create(pod("a", whole(1)))
	at := c.server.pods[key("ns", "a")]
	at.Says = map[string]string{"max-runtime": "1h"}
	c.server.freeze()
	at.Says = map[string]string{"max-runtime": "1000h"}
	if _, err := c.Bind(t.Context(), target("a", "n1")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"max-runtime": "1h"}, c.server.said); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}

// Each way in which a single bind can end.
func TestBindEnds(t *testing.T) {
	tests := map[string]struct {
		before  func(cluster)
		target  Target
		reason  gpu.Reason // "" for a success
		cause   error
		already bool
		held    []gpu.PodID // in the ledger, in the end
		binds   int         // that the API server has seen
	}{
		"works":       {target: target("a", "n1"), held: []gpu.PodID{"a"}, binds: 1},
		"no such pod": {target: target("x", "n1"), reason: gpu.BindConflict, cause: ErrNoPod},
		"another by that name": {
			target: Target{Pod: "old", Namespace: "ns", Name: "a", Node: "n1"}, reason: gpu.BindConflict,
		},
		"made anew, and not seen here yet": {
			before: func(c cluster) {
				c.server.freeze()
				c.server.change("a", func(p *Pod) { p.Request.Pod = "new" })
			},
			target: Target{Pod: "new", Namespace: "ns", Name: "a", Node: "n1"}, held: []gpu.PodID{"new"}, binds: 1,
		},
		"bound there by us": {
			before: func(c cluster) { c.server.change("a", func(p *Pod) { p.Node, p.Ours = "n1", true }) },
			target: target("a", "n1"), already: true,
		},
		"bound there by us, and being deleted": {
			before: func(c cluster) { c.server.change("a", func(p *Pod) { p.Node, p.Ours, p.Gone = "n1", true, true }) },
			target: target("a", "n1"), already: true,
		},
		"bound there, not by us": {
			before: func(c cluster) { c.server.change("a", func(p *Pod) { p.Node = "n1" }) },
			target: target("a", "n1"), reason: gpu.BindConflict,
		},
		"bound elsewhere": {
			before: func(c cluster) { c.server.change("a", func(p *Pod) { p.Node, p.Ours = "n2", true }) },
			target: target("a", "n1"), reason: gpu.BindConflict,
		},
		"being deleted": {
			before: func(c cluster) { c.server.change("a", func(p *Pod) { p.Gone = true }) },
			target: target("a", "n1"), reason: gpu.BindConflict,
		},
		"asks for nonsense": {
			before: func(c cluster) {
				c.server.change("a", func(p *Pod) { p.Invalid = errors.New("gpu-cores: is negative") })
			},
			target: target("a", "n1"), reason: gpu.InvalidRequest,
		},
		"bound elsewhere, which the cache has not seen": {
			before: func(c cluster) {
				c.server.freeze()
				c.server.change("a", func(p *Pod) { p.Node = "n2" })
			},
			target: target("a", "n1"), reason: gpu.BindConflict, cause: ErrRefused, binds: 1,
		},
		"deleted, which the cache has not seen": {
			before: func(c cluster) { c.server.freeze(); c.server.remove("a") },
			target: target("a", "n1"), reason: gpu.BindConflict, cause: ErrRefused, binds: 1,
		},
		"unknown node": {target: target("a", "n9"), reason: gpu.NodeNotRegistered},
		"full by now": {
			before: func(c cluster) { mustReserve(c, "b", "n1-d0") },
			target: target("a", "n1"), reason: gpu.InsufficientGPUCount, held: []gpu.PodID{"b"},
		},
		"the node has gone away": {
			before: func(c cluster) { c.ledger.SetNode(ledger.Facts{ID: "n1", Cards: cards("n1", 1), Unavailable: true}) },
			target: target("a", "n1"), reason: gpu.NodeUnavailable,
		},
		"counts elsewhere already, as the informer has seen": {
			before: func(c cluster) { c.ledger.Confirm(gpu.Placement{Pod: "a", Node: "n2"}) },
			target: target("a", "n1"), reason: gpu.BindConflict, cause: ledger.ErrHeldElsewhere, held: []gpu.PodID{"a"},
		},
		"the API server refuses": {
			before: func(c cluster) { c.server.next = []behaviour{refuses} },
			target: target("a", "n1"), reason: gpu.BindConflict, cause: ErrRefused, binds: 1,
		},
		"the answer is lost, it happened": {
			before: func(c cluster) { c.server.next = []behaviour{losesAnswer} },
			target: target("a", "n1"), held: []gpu.PodID{"a"}, binds: 1,
		},
		"the request is lost, it did not happen": {
			before: func(c cluster) { c.server.next = []behaviour{losesRequest} },
			target: target("a", "n1"), reason: gpu.BindConflict, cause: ErrUnknown, binds: 1,
		},
		"an error that says neither, it happened": {
			before: func(c cluster) { c.server.next = []behaviour{saysNeither} },
			target: target("a", "n1"), held: []gpu.PodID{"a"}, binds: 1,
		},
		"the request is lost, and the pod is deleted before anybody looks": {
			before: func(c cluster) { c.server.freeze(); c.server.remove("a"); c.server.next = []behaviour{losesRequest} },
			target: target("a", "n1"), reason: gpu.BindConflict, cause: ErrUnknown, binds: 1, held: []gpu.PodID{"a"},
		},
		"the request is lost, and another pod has the name": {
			before: func(c cluster) {
				c.server.freeze()
				c.server.change("a", func(p *Pod) { p.Request.Pod = "new" })
				c.server.next = []behaviour{losesRequest}
			},
			target: target("a", "n1"), reason: gpu.BindConflict, cause: ErrUnknown, binds: 1, held: []gpu.PodID{"a"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(1, 1)
			c.server.create(pod("a", whole(1)))
			if tc.before != nil {
				tc.before(c)
			}
			got, err := c.Bind(t.Context(), tc.target)
			var refusal *Refusal
			switch {
			case tc.reason == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.reason != "" && (!errors.As(err, &refusal) || refusal.Reason != tc.reason || !errors.Is(err, tc.cause) && tc.cause != nil):
				t.Errorf("error %v, want %s with cause %v", err, tc.reason, tc.cause)
			case tc.cause == nil && errors.Is(err, ErrUnknown):
				t.Errorf("error %v: the outcome is known", err)
			}
			if got.Already != tc.already {
				t.Errorf("already %v, want %v", got.Already, tc.already)
			}
			if diff := cmp.Diff(tc.held, c.ledger.Pods()); diff != "" && len(tc.held)+len(c.ledger.Pods()) > 0 {
				t.Errorf("the ledger holds (-want +got):\n%s", diff)
			}
			if c.server.binds != tc.binds {
				t.Errorf("%d Bindings sent, want %d", c.server.binds, tc.binds)
			}
			c.mustLeaveNoGate(t)
		})
	}
}

// mustReserve gives a whole card, which is named after its node, to a pod.
func mustReserve(c cluster, pod gpu.PodID, card gpu.CardID) {
	node, _, _ := strings.Cut(string(card), "-")
	err := c.ledger.Reserve(gpu.Placement{Pod: pod, Node: gpu.NodeID(node), Namespace: "ns", Grants: []gpu.Grant{{
		Shares: []gpu.Share{{Card: card, Memory: 1000, Cores: 100, Exclusive: true}},
	}}})
	if err != nil {
		panic(err)
	}
}

// A pod that asks for no card is bound anywhere, even where there are none: its
// containers may name a resource of ours with a count of 0.
func TestBindWithoutCards(t *testing.T) {
	c := newCluster(0)
	c.server.create(pod("a"))
	if _, err := c.Bind(t.Context(), target("a", "n1")); err != nil {
		t.Error(err)
	}
	c.server.mustAgree(t, c.ledger)
}

// Repeating a bind is a success, whether or not the cache has seen the first.
func TestBindAgain(t *testing.T) {
	for name, prepare := range map[string]func(cluster){
		"seen":                      func(cluster) {},
		"seen and confirmed":        cluster.confirm,
		"not seen":                  func(c cluster) { c.server.freeze() },
		"not seen, answer was lost": func(c cluster) { c.server.freeze(); c.server.next = []behaviour{losesAnswer} },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(2)
			c.server.create(pod("a", whole(1)))
			if name == "not seen" || name == "not seen, answer was lost" {
				prepare(c)
			}
			if _, err := c.Bind(t.Context(), target("a", "n1")); err != nil {
				t.Fatal(err)
			}
			prepare(c)
			for range 2 {
				if got, err := c.Bind(t.Context(), target("a", "n1")); err != nil || !got.Already {
					t.Errorf("bound again: %+v, %v", got, err)
				}
			}
			if c.server.binds != 1 {
				t.Errorf("%d Bindings sent", c.server.binds)
			}
			c.server.mustAgree(t, c.ledger)
		})
	}
}

// An outcome that cannot be found out keeps the hold, and the next bind settles
// it, wherever that wants to go.
func TestBindSettlesAnEarlierOne(t *testing.T) {
	tests := map[string]struct {
		first   behaviour
		between func(cluster)
		node    gpu.NodeID // of the second bind
		already bool
		fails   bool
		bound   gpu.NodeID
	}{
		"it had happened, same node":      {losesAnswer, nil, "n1", true, false, "n1"},
		"it had happened, other node":     {losesAnswer, nil, "n2", false, true, "n1"},
		"it had not, same node":           {losesRequest, nil, "n1", false, false, "n1"},
		"it had not, other node":          {losesRequest, nil, "n2", false, false, "n2"},
		"it happened when nobody waited":  {hangsThenDone, nil, "n1", true, false, "n1"},
		"nothing happened, in long":       {hangs, nil, "n2", false, false, "n2"},
		"the informer has seen it":        {losesAnswer, cluster.confirm, "n1", true, false, "n1"},
		"the pod is gone":                 {losesRequest, func(c cluster) { c.server.remove("a") }, "n1", false, true, ""},
		"the pod is gone from cache too":  {losesRequest, func(c cluster) { c.server.cache = map[string]Pod{}; c.server.remove("a") }, "n1", false, true, ""},
		"another pod has the name by now": {losesRequest, func(c cluster) { c.server.change("a", func(p *Pod) { p.Request.Pod = "new" }) }, "n1", false, true, ""},
		"another pod has the name, on a node": {losesRequest, func(c cluster) {
			c.server.change("a", func(p *Pod) { p.Request.Pod, p.Node = "new", "n1" })
		}, "n1", false, true, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(1, 1)
				c.server.create(pod("a", whole(1)))
				c.server.freeze()
				c.server.next = []behaviour{tc.first}
				c.server.set(true)
				ctx, stop := context.WithTimeout(t.Context(), 10e9)
				defer stop()
				_, err := c.Bind(ctx, target("a", "n1"))
				if !errors.Is(err, ErrUnknown) {
					t.Fatalf("error %v, want ErrUnknown", err)
				}
				if h, _ := c.ledger.Hold("a"); h.State != ledger.Held || h.Node != "n1" {
					t.Errorf("the hold is %s on %q, though the pod may be bound", h.State, h.Node)
				}
				c.server.set(false)
				if tc.between != nil {
					tc.between(c)
				}
				got, err := c.Bind(t.Context(), target("a", tc.node))
				if (err != nil) != tc.fails || got.Already != tc.already {
					t.Errorf("second bind: %+v, %v", got, err)
				}
				if errors.Is(err, ErrUnknown) {
					t.Errorf("error %v: the outcome is known", err)
				}
				if p, ok := c.server.bound()["a"]; p.Node != tc.bound || ok != (tc.bound != "") {
					t.Errorf("bound to %q, want %q", p.Node, tc.bound)
				}
				c.ledger.Expire(time.Now()) // what lingers in case the pod was bound before it went
				c.server.mustAgree(t, c.ledger)
				c.mustLeaveNoGate(t)
			})
		})
	}
}

// As long as the API server cannot be asked, nothing is given back and nothing
// is sent.
func TestBindWhileOutcomeStaysUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(1)
		c.server.create(pod("a", whole(1)))
		c.server.create(pod("b", whole(1)))
		c.server.next = []behaviour{losesRequest}
		c.server.set(true)
		for range 3 {
			if _, err := c.Bind(t.Context(), target("a", "n1")); !errors.Is(err, ErrUnknown) {
				t.Errorf("error %v, want ErrUnknown", err)
			}
		}
		if _, err := c.Bind(t.Context(), target("b", "n1")); err == nil {
			t.Error("the card that may be in use was given to another pod")
		}
		if c.server.binds != 1 {
			t.Errorf("%d Bindings sent", c.server.binds)
		}
		if h, _ := c.ledger.Hold("a"); h.State != ledger.Held {
			t.Errorf("the hold is %s", h.State)
		}
	})
}

// A pod that was bound, and deleted by force before anybody here has seen that, may
// have containers that run: it keeps its cards for as long as those may.
func TestGoneAfterItWasBound(t *testing.T) {
	for name, first := range map[string]behaviour{"the answer was lost": losesAnswer, "the informer is behind": works} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(1)
			c.Engine.cfg.Linger = time.Minute
			c.server.create(pod("a", whole(1)))
			c.server.freeze()
			c.server.next = []behaviour{first}
			if _, err := c.Bind(t.Context(), target("a", "n1")); err != nil {
				t.Fatal(err)
			}
			c.server.remove("a")
			if _, err := c.Bind(t.Context(), target("a", "n1")); !errors.Is(err, ErrNoPod) {
				t.Errorf("bound once more: %v, want %v", err, ErrNoPod)
			}
			if h, ok := c.ledger.Hold("a"); !ok || h.State != ledger.Lingering || time.Until(h.Until) < 50*time.Second {
				t.Errorf("held: %t, %s until %s", ok, h.State, h.Until)
			}
			c.server.create(pod("b", whole(1)))
			if _, err := c.Bind(t.Context(), target("b", "n1")); err == nil {
				t.Error("its card has been given away")
			}
			c.ledger.Expire(time.Now().Add(time.Minute))
			c.server.mustAgree(t, c.ledger)
		})
	}
}
