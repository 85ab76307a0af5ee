package tenant

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/kube"
)

func violation(node, card, text string) kube.Notice {
	return kube.Notice{About: kube.NodeSubject(gpu.NodeID(node)), Warning: true, Reason: ReasonViolated, Key: card, Text: text}
}

func doubt(tenant, text string) kube.Notice {
	return kube.Notice{About: kube.TenantSubject(object(tenant)), Warning: true, Reason: ReasonClaimedTwice, Text: text}
}

// What holds is told once, when it changes, and before the API server forgets it.
func TestOnlyNewsIsTold(t *testing.T) {
	const told = "Node /n1 Warning TenantBoundaryViolated: "
	steps := []struct {
		name  string
		after time.Duration
		holds []kube.Notice
		want  []string
	}{
		{"first", 0, []kube.Notice{violation("n1", "a", "p and q")}, []string{told + "p and q"}},
		{"as before", time.Minute, []kube.Notice{violation("n1", "a", "p and q")}, nil},
		{"another card", time.Minute, []kube.Notice{violation("n1", "a", "p and q"), violation("n1", "b", "r and s")}, []string{told + "r and s"}},
		{"another pod", time.Minute, []kube.Notice{violation("n1", "a", "p and u"), violation("n1", "b", "r and s")}, []string{told + "p and u"}},
		{"one is over", time.Minute, []kube.Notice{violation("n1", "b", "r and s")},
			[]string{"Node /n1 Normal TenantBoundaryRestored: card a is not shared across a tenant boundary any more"}},
		{"which is told once", time.Minute, []kube.Notice{violation("n1", "b", "r and s")}, nil},
		{"half an hour later", 30 * time.Minute, []kube.Notice{violation("n1", "b", "r and s")}, []string{told + "r and s"}},
		{"back again", time.Minute, []kube.Notice{violation("n1", "a", "p and q"), violation("n1", "b", "r and s")}, []string{told + "p and q"}},
		{"a Tenant", 0, []kube.Notice{violation("n1", "a", "p and q"), violation("n1", "b", "r and s"), doubt("red", "x")},
			[]string{"Tenant /red Warning NamespaceClaimedTwice: x"}},
		{"whose doubt ends in silence", time.Minute, []kube.Notice{violation("n1", "a", "p and q"), violation("n1", "b", "r and s")}, nil},
		{"and is news when it comes back", time.Minute, []kube.Notice{violation("n1", "a", "p and q"), violation("n1", "b", "r and s"), doubt("red", "x")},
			[]string{"Tenant /red Warning NamespaceClaimedTwice: x"}},
	}
	var all teller
	now := start()
	for _, step := range steps {
		now = now.Add(step.after)
		var got []string
		for _, n := range all.news(step.holds, now, mostWrites) {
			got = append(got, notice(n))
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// What one round has no room for is told in the next, whatever else comes up.
func TestEverybodyIsToldOfInTurn(t *testing.T) {
	const holding, most = 50, 7
	var all teller
	heard := map[string]bool{}
	for round := 0; len(heard) < holding; round++ {
		if round > holding/most+1 {
			t.Fatalf("%d of %d told after %d rounds", len(heard), holding, round)
		}
		var notices []kube.Notice
		for i := range holding {
			text := "always the same"
			if i < most { // the first in order are news each time
				text = fmt.Sprint(round)
			}
			notices = append(notices, doubt(fmt.Sprintf("t%02d", i), text))
		}
		news := all.news(notices, start(), most)
		if len(news) > most {
			t.Fatalf("%d in one round, at most %d", len(news), most)
		}
		for _, n := range news {
			heard[n.About.Name] = true
		}
	}
}
