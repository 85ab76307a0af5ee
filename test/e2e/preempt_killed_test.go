package e2e

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/test/faults"
)

// TestLeaderIsKilledInAPreemption kills the leader at each step of a preemption,
// before and after what it asks of the API server has been done. The next one goes on:
// the high pod runs, and the bare pod that was ended for it is there once, made
// anew from what it was.
func TestLeaderIsKilledInAPreemption(t *testing.T) {
	f := beginFleet(t)
	f.must("priority classes", f.Install(f.ctx, "priorityclasses.yaml"))
	f.schedules()
	leader := f.start("first", f.behind(electing(quick)))
	f.leads(leader)
	for _, tc := range []struct {
		name string
		at   faults.Match
		stop func(*faults.Step) faults.Action
	}{
		{"written-asked", asks(http.MethodPost, "/preemptions"), before},
		{"written", asks(http.MethodPost, "/preemptions"), after},
		{"evict-asked", evicting, before},
		{"evicted", evicting, after},
		{"made-asked", asks(http.MethodPost, "/pods"), before},
		{"made", asks(http.MethodPost, "/pods"), after},
		{"noted", advancing, after},
	} {
		f.add(cards(tc.name, 1))
		f.create(classed(on(tc.name, low(tc.name+"-low", 10, amount{wholeCards, 1}))))
		was := f.runs(tc.name + "-low")
		step := faults.NewStep()
		f.proxy.On(tc.at, 1, tc.stop(step))
		f.create(classed(on(tc.name, high(tc.name+"-high", 90, amount{wholeCards, 1}))))
		await(f.scene, "the step "+tc.name, step.Reached)
		leader.Kill()
		step.Release()
		leader = f.start("after-"+tc.name, f.behind(electing(quick)))
		f.leads(leader)
		f.runs(tc.name + "-high")
		again := f.successor(was)
		f.remove(tc.name+"-high", false)
		if f.runs(tc.name+"-low").UID != again.UID {
			f.Errorf("%s: there was another successor", tc.name)
		}
		f.verify()
	}
}

// classed gives the pod what admission would: a class, and our kube-scheduler.
func classed(p *corev1.Pod) *corev1.Pod {
	p.Spec.SchedulerName = "heteroflow-scheduler"
	p.Spec.PriorityClassName = "heteroflow-" + p.Annotations[priorityKey]
	return p
}

// asks matches what is asked of a path that ends so.
func asks(method, end string) faults.Match {
	return func(r *http.Request) bool { return r.Method == method && strings.HasSuffix(r.URL.Path, end) }
}

// evicting matches an eviction that is meant, and no trial.
func evicting(r *http.Request) bool {
	if !asks(http.MethodPost, "/eviction")(r) || r.URL.Query().Has("dryRun") {
		return false
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && !bytes.Contains(body, []byte(metav1.DryRunAll))
}

// advancing matches a change of how far a preemption has come.
func advancing(r *http.Request) bool {
	return r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/preemptions/") && strings.HasSuffix(r.URL.Path, "/status")
}
