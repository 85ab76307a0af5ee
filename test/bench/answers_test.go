package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/engine"
	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/policy"
)

var errUnasked = errors.New("nobody asks for that")

// passing is an API server that has a pod of each kind, and forgets a bound one at once.
type passing struct{ books *ledger.Ledger }

func (passing) Pod(_ context.Context, _, name string) (engine.Pod, error) {
	if _, known := pods[name]; !known {
		return engine.Pod{}, engine.ErrNoPod
	}
	r, err := codec.Request(podOf(name), policy.Default())
	return engine.Pod{Request: r, Invalid: err}, nil
}

func (p passing) Live(ctx context.Context, namespace, name string) (engine.Pod, error) {
	return p.Pod(ctx, namespace, name)
}

func (passing) Touch(context.Context, engine.Target, string) (engine.Pod, error) {
	return engine.Pod{}, errUnasked
}

func (passing) Nominate(context.Context, engine.Target, string) (engine.Pod, error) {
	return engine.Pod{}, errUnasked
}

func (passing) Withdraw(context.Context, engine.Target) error { return errUnasked }

func (passing) Suits(engine.Target) bool { return true }

func (p passing) Bind(_ context.Context, placed gpu.Placement, _ map[string]string) error {
	p.books.Unreserve(placed.Pod)
	return nil
}

// BenchmarkScoreHTTP rates what kube-scheduler asks about after a shortlist, and
// every node, as it does where it has soft preferences.
func BenchmarkScoreHTTP(b *testing.B) {
	each(b, func(b *testing.B, books *ledger.Ledger, kind string, nodes int) {
		h := extenderOf(books)
		for asked, names := range map[string][]string{
			"shortlist": *ask(b, h, question(b, kind, nodes)).NodeNames, "all": allNames(nodes),
		} {
			b.Run(fmt.Sprint("asked=", asked), func(b *testing.B) {
				measure(b, h, "/score", encoded(b, extender.ExtenderArgs{Pod: podOf(kind), NodeNames: &names}))
			})
		}
	})
}

// BenchmarkBindHTTP binds to one node over and over: the check of the node, the
// choice of cards and the reservation, but no API server. It must not grow with
// the cluster by more than the copy of a list of pointers.
func BenchmarkBindHTTP(b *testing.B) {
	each(b, func(b *testing.B, books *ledger.Ledger, kind string, nodes int) {
		h := extenderOf(books)
		body := encoded(b, extender.ExtenderBindingArgs{PodName: kind, PodNamespace: "bench", PodUID: "asks", Node: nodeName(0)})
		var result extender.ExtenderBindingResult
		if err := json.Unmarshal(answer(b, h, "/bind", body), &result); err != nil || result.Error != "" {
			b.Fatalf("bind: %v %s", err, result.Error)
		}
		measure(b, h, "/bind", body)
	})
}

func allNames(nodes int) []string {
	names := make([]string, nodes)
	for i := range names {
		names[i] = nodeName(i)
	}
	return names
}

func encoded(b *testing.B, body any) []byte {
	b.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.Fatal(err)
	}
	return text
}
