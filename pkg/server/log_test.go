package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
	extender "k8s.io/kube-scheduler/extender/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/tenancy"
)

// logged runs a filter of two nodes, a score and a bind at that verbosity, and
// returns the messages logged with their number of lines.
func logged(t *testing.T, verbosity int) (messages map[string]int, text string) {
	t.Helper()
	var all strings.Builder
	messages = map[string]int{}
	message := regexp.MustCompile(`"msg"="([^"]*)"`)
	logger := funcr.New(func(_, line string) {
		all.WriteString(line + "\n")
		if m := message.FindStringSubmatch(line); m != nil {
			messages[m[1]]++
		}
	}, funcr.Options{Verbosity: verbosity})

	books := ledger.New(tenancy.Separate{})
	books.SetNode(ledger.Facts{ID: "n1", Cards: []gpu.Card{{ID: "GPU-a"}, {ID: "GPU-b"}}})
	books.SetNode(ledger.Facts{ID: "n2", Cards: []gpu.Card{{ID: "GPU-c"}}})
	r := newRig(newCluster(map[gpu.NodeID]int{"n1": 1, "n2": 0}), func(c *Config) { c.Ledger = books.Snapshot })
	r.extender = withLogger(logger, r.extender)
	pod := newPod("p", 1)
	askFilter(t, r, extender.ExtenderArgs{Pod: pod, NodeNames: names("n1", "n2")})
	ask[extender.HostPriorityList](t, r.extender, "/score", extender.ExtenderArgs{Pod: pod, NodeNames: names("n1", "n2")})
	askBind(t, r, "p", "n1")
	return messages, all.String()
}

func withLogger(logger logr.Logger, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(klog.NewContext(r.Context(), logger)))
	})
}

func TestVerbosity(t *testing.T) {
	decisions := map[string]int{"filtered": 1, "scored": 1, "bound": 1}
	nodes := map[string]int{"filtered": 1, "scored": 1, "bound": 1, "node fits": 1, "node refused": 1, "node scored": 2}
	cards := map[string]int{"filtered": 1, "scored": 1, "bound": 1, "node fits": 1, "node refused": 1, "node scored": 2, "card": 3}
	for verbosity, want := range []map[string]int{{}, {}, decisions, decisions, nodes, cards} {
		t.Run(fmt.Sprint(verbosity), func(t *testing.T) {
			got, text := logged(t, verbosity)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s\n%s", diff, text)
			}
			for line := range strings.Lines(text) {
				if !strings.Contains(line, `"podUID"="uid-p"`) || !strings.Contains(line, `"pod"=`) {
					t.Errorf("a line that does not say which pod: %s", line)
				}
			}
		})
	}
}

// kube-scheduler asks about thousands of nodes at once.
func TestLoggingThatIsOffCostsNothing(t *testing.T) {
	s := New(Config{Ledger: func() ledger.Snapshot { t.Error("the ledger was looked at"); return ledger.Snapshot{} }})
	c := newCluster(map[gpu.NodeID]int{"n1": 1})
	ids := make([]gpu.NodeID, 5000)
	r, err := decodePod(newPod("p", 1))
	if err != nil {
		t.Fatal(err)
	}
	f := c.Filter(&r, ids)
	ctx := klog.NewContext(context.Background(), logr.Discard())
	if n := testing.AllocsPerRun(10, func() { s.logFiltered(ctx, &r, ids, &f) }); n > 5 {
		t.Errorf("%v allocations for a line that nobody sees", n)
	}
}

func BenchmarkFilter420Names(b *testing.B) {
	free := map[gpu.NodeID]int{}
	var asked []string
	for i := range 420 {
		asked = append(asked, fmt.Sprintf("gpu-node-%05d", i))
		free[gpu.NodeID(asked[i])] = i % 2
	}
	r := newRig(newCluster(free))
	body := jsonOf(b, extender.ExtenderArgs{Pod: newPod("p", 1), NodeNames: &asked})
	b.ReportAllocs()
	for b.Loop() {
		request := httptest.NewRequest(http.MethodPost, "/filter", strings.NewReader(body))
		request = request.WithContext(klog.NewContext(context.Background(), logr.Discard()))
		r.extender.ServeHTTP(httptest.NewRecorder(), request)
	}
}
