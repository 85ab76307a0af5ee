package kube

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// listed is an API server that lists these pods and keeps what it was asked.
func listed(t *testing.T, meanwhile func(), pods ...*corev1.Pod) (s *apiServer, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	s = newAPIServer(t)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.RequestURI())
		l := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "100"}}
		for _, p := range pods {
			l.Items = append(l.Items, *p)
		}
		meanwhile()
		answer(w, l)
	})
	return s, asked
}

// What the leader before has bound counts, though the watch has not told of it.
func TestCatchUpFindsWhatTheWatchHasNotTold(t *testing.T) {
	s := newShelf()
	s.NodeSeen(newNode("n1", devices))
	server, asked := listed(t, func() {}, boundPod(t, "p"), boundPod(t, "over", ended(corev1.PodSucceeded)))
	if err := s.CatchUp(t.Context(), server.client(t)); err != nil {
		t.Fatal(err)
	}
	for pod, want := range map[gpu.PodID]string{"uid-p": "bound", "uid-over": "none"} {
		if got := standing(s.Ledger, pod); got != want {
			t.Errorf("%s is %s, want %s", pod, got, want)
		}
	}
	if len(*asked) != 1 || !strings.Contains((*asked)[0], "labelSelector=heteroflow.io%2Fbound-by%3Dheteroflow") || strings.Contains((*asked)[0], "resourceVersion") {
		t.Errorf("asked %q: want one read of ours, of the newest state", *asked)
	}
	server, _ = listed(t, func() {}, boundPod(t, "p", onCard(t, "GPU-b", 1)))
	if err := s.CatchUp(t.Context(), server.client(t)); err != nil {
		t.Fatal(err)
	}
	if h, _ := s.Ledger.Hold("uid-p"); h.Uses()[0].Card != "GPU-a" {
		t.Errorf("a record that was edited since is believed: %v", h.Uses())
	}
}

// What the watch tells while the list is on its way is newer.
func TestCatchUpBringsNobodyBack(t *testing.T) {
	s := newShelf()
	now := start()
	s.Now = func() time.Time { return now }
	s.NodeSeen(newNode("n1", devices))
	pod := boundPod(t, "p")
	s.PodSeen(pod)
	server, _ := listed(t, func() {
		now = now.Add(time.Second)
		s.PodSeen(boundPod(t, "p", ended(corev1.PodSucceeded)))
	}, pod)
	if err := s.CatchUp(t.Context(), server.client(t)); err != nil {
		t.Fatal(err)
	}
	if got := standing(s.Ledger, "uid-p"); got != "none" {
		t.Errorf("a pod that has ended is %s", got)
	}
}

// A list that does not come is said: nothing may be decided.
func TestCatchUpFails(t *testing.T) {
	s := newShelf()
	server := newAPIServer(t)
	server.Config.Handler = says(http.StatusInternalServerError, "etcd")
	if err := s.CatchUp(t.Context(), server.client(t)); err == nil || !strings.HasPrefix(err.Error(), "read what is bound: ") {
		t.Errorf("error %v", err)
	}
}
