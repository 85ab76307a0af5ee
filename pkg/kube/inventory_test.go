package kube

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/gpu"
)

const (
	nvidiaRegister = "hami.io/node-nvidia-register"
	dcuRegister    = "hami.io/node-dcu-register"
)

// plugins are the resources whose shares kubelet has, where a plugin runs that
// writes the register.
var plugins = map[string]corev1.ResourceName{nvidiaRegister: "nvidia.com/gpu", dcuRegister: "hygon.com/dcunum"}

// saying is node n1 with these annotations, key and value in turn.
func saying(pairs ...string) *corev1.Node {
	node := newNode("n1", devices)
	delete(node.Annotations, codec.AnnotationDevices)
	node.Status.Allocatable = corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		node.Annotations[pairs[i]] = pairs[i+1]
		node.Status.Allocatable[plugins[pairs[i]]] = *resource.NewQuantity(20, resource.DecimalSI)
	}
	return node
}

func counting(node *corev1.Node, name corev1.ResourceName, n int64) *corev1.Node {
	node.Status.Allocatable = corev1.ResourceList{name: *resource.NewQuantity(n, resource.DecimalSI)}
	return node
}

// What a node says of its cards changes while pods are on them: nothing that may
// be in use becomes free room, and what is free again is given out again.
func TestInventoriesThatChange(t *testing.T) {
	const (
		a    = "GPU-a,10,40960,100,NVIDIA-A100,0,true,0,hami-core:"
		sick = "GPU-a,10,40960,100,NVIDIA-A100,0,false,0,hami-core:"
		b    = "GPU-b,10,40960,100,NVIDIA-A100,0,true,1,hami-core:"
		c    = "GPU-c,10,40960,100,NVIDIA-A100,0,true,0,hami-core:"
		d    = "GPU-d,10,40960,100,NVIDIA-A100,0,true,1,hami-core:"
		dcu  = "DCU-1,4,65520,100,Z100,0,true:"
		dcu2 = "DCU-2,4,65520,100,Z100,0,true:"
	)
	const inJSON = `[{"id":"GPU-a","count":10,"devmem":40960,"health":true},{"id":"GPU-b","index":1,"count":10,"devmem":40960,"health":true}]`
	const sickInJSON = `[{"id":"GPU-a","count":10,"devmem":40960},{"id":"GPU-b","index":1,"count":10,"devmem":40960,"health":true}]`
	both := func() *corev1.Node { return saying(nvidiaRegister, a+b, dcuRegister, dcu) }
	tests := map[string]struct {
		nodes []*corev1.Node // one after the other; nil: it is gone. A pod runs on GPU-a
		want  map[gpu.CardID]string
	}{
		"two vendors": {[]*corev1.Node{both()}, map[gpu.CardID]string{"GPU-a": "held", "GPU-b": "free", "DCU-1": "free"}},

		"a vendor disappears":              {[]*corev1.Node{both(), saying(nvidiaRegister, a+b)}, map[gpu.CardID]string{"GPU-a": "held", "GPU-b": "free"}},
		"the vendor in use disappears":     {[]*corev1.Node{both(), saying(dcuRegister, dcu)}, map[gpu.CardID]string{"DCU-1": "free"}},
		"... and comes back":               {[]*corev1.Node{both(), saying(dcuRegister, dcu), both()}, map[gpu.CardID]string{"GPU-a": "held", "GPU-b": "free", "DCU-1": "free"}},
		"... with other cards":             {[]*corev1.Node{both(), saying(dcuRegister, dcu), saying(nvidiaRegister, c+d, dcuRegister, dcu2)}, map[gpu.CardID]string{"GPU-c": "free", "GPU-d": "closed", "DCU-2": "free"}},
		"a vendor cannot be read any more": {[]*corev1.Node{both(), saying(nvidiaRegister, a+b, dcuRegister, "DCU-1,4")}, map[gpu.CardID]string{}},
		"... and can again":                {[]*corev1.Node{both(), saying(nvidiaRegister, a+b, dcuRegister, "DCU-1,4"), both()}, map[gpu.CardID]string{"GPU-a": "held", "GPU-b": "free", "DCU-1": "free"}},

		"health goes":               {[]*corev1.Node{both(), saying(nvidiaRegister, sick+b)}, map[gpu.CardID]string{"GPU-a": "held unhealthy", "GPU-b": "free"}},
		"... which comes back":      {[]*corev1.Node{saying(nvidiaRegister, sick+b), saying(nvidiaRegister, a+b)}, map[gpu.CardID]string{"GPU-a": "held", "GPU-b": "free"}},
		"health goes from the JSON": {[]*corev1.Node{saying(nvidiaRegister, inJSON), saying(nvidiaRegister, sickInJSON)}, map[gpu.CardID]string{"GPU-a": "held unhealthy", "GPU-b": "free"}},
		"... and comes back to it":  {[]*corev1.Node{saying(nvidiaRegister, sickInJSON), saying(nvidiaRegister, inJSON)}, map[gpu.CardID]string{"GPU-a": "held", "GPU-b": "free"}},
		"the plugin learns JSON":    {[]*corev1.Node{saying(nvidiaRegister, a+b), saying(nvidiaRegister, inJSON)}, map[gpu.CardID]string{"GPU-a": "held", "GPU-b": "free"}},

		"a node comes back":              {[]*corev1.Node{both(), nil, both()}, map[gpu.CardID]string{"GPU-a": "held", "GPU-b": "free", "DCU-1": "free"}},
		"... with other cards, all told": {[]*corev1.Node{both(), nil, saying(nvidiaRegister, c+d)}, map[gpu.CardID]string{"GPU-c": "free", "GPU-d": "closed"}},
		"... with one card for two":      {[]*corev1.Node{both(), nil, saying(nvidiaRegister, c)}, map[gpu.CardID]string{"GPU-c": "closed"}},

		"a register gives way to the agent": {[]*corev1.Node{both(), newNode("n1", devices)}, map[gpu.CardID]string{"GPU-a": "held", "GPU-b": "free"}},
		"a plugin stops":                    {[]*corev1.Node{both(), counting(both(), "hygon.com/dcunum", 4)}, map[gpu.CardID]string{"GPU-a": "held unhealthy", "GPU-b": "free unhealthy", "DCU-1": "free"}},
		"... and starts again":              {[]*corev1.Node{counting(both(), "hygon.com/dcunum", 4), both()}, map[gpu.CardID]string{"GPU-a": "held", "GPU-b": "free", "DCU-1": "free"}},
		"... and back":                      {[]*corev1.Node{newNode("n1", devices), both()}, map[gpu.CardID]string{"GPU-a": "held", "GPU-b": "free", "DCU-1": "free"}},
		"a register gives way to a count":   {[]*corev1.Node{both(), counting(saying(), "nvidia.com/gpu", 2)}, map[gpu.CardID]string{"n1-nvidia-0": "free", "n1-nvidia-1": "closed"}},
		"the agent, to another vendor":      {[]*corev1.Node{newNode("n1", devices), counting(saying(), "birentech.com/gpu", 1)}, map[gpu.CardID]string{"n1-biren-0": "free"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.PodSeen(boundPod(t, "p"))
			for _, node := range tc.nodes {
				if node == nil {
					s.NodeGone(saying())
				} else {
					s.NodeSeen(node)
				}
			}
			if diff := cmp.Diff(tc.want, cardsOf(s)); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
			s.PodSeen(boundPod(t, "p", ended(corev1.PodSucceeded)))
			for card, state := range cardsOf(s) {
				if state != "free" && state != "free unhealthy" {
					t.Errorf("card %s is %s after the pod has ended", card, state)
				}
			}
		})
	}
}

// cardsOf says how each card of n1 stands.
func cardsOf(s *shelf) map[gpu.CardID]string {
	all := map[gpu.CardID]string{}
	n, ok := s.Ledger.Snapshot().Node("n1")
	if !ok {
		return all
	}
	for i := range n.Cards {
		c := &n.Cards[i]
		state := map[bool]string{true: "free", false: fmt.Sprintf("held by %d", len(c.Holders))}[c.Free()]
		switch {
		case c.Closed:
			state = "closed"
		case len(c.Holders) == 1:
			state = "held"
		}
		if !c.Healthy {
			state += " unhealthy"
		}
		all[c.ID] = state
	}
	return all
}
