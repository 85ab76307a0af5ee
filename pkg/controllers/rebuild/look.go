package rebuild

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/codec"
)

// seen is what a round goes by.
type seen struct {
	now      time.Time
	groups   []*group        // of type inference, in order of their names
	nodes    int             // that there are
	notReady int             // of those
	lost     map[string]loss // node -> since when and how; only nodes with members

	// Of pods, by UID.
	evicted map[types.UID]eviction  // by us, a moment ago
	tried   map[types.UID]time.Time // when it was last looked at anew
	rests   map[types.UID]time.Time // until when it is not
}

// group is a TaskGroup with its members.
type group struct {
	*v1alpha1.TaskGroup
	members []*corev1.Pod // that have not finished
}

// loss is how a node is lost.
type loss struct {
	since time.Time
	gone  bool // else it is there and not ready
}

// look sees what is cached, and what is remembered.
func (c *Controller) look() (seen, error) {
	s := seen{now: c.Now(), lost: map[string]loss{}}
	if err := c.lookAtGroups(&s); err != nil {
		return s, err
	}
	if len(s.groups) == 0 {
		c.memory = memory{}
		return s, nil
	}
	nodes, err := c.NodeLister.List(labels.Everything())
	if err != nil {
		return s, err
	}
	there := make(map[string]*corev1.Node, len(nodes))
	for _, n := range nodes {
		there[n.Name] = n
		if ready, _ := readiness(n); !ready {
			s.notReady++
		}
	}
	s.nodes = len(nodes)
	for _, g := range s.groups {
		for _, pod := range g.members {
			if name := pod.Spec.NodeName; name != "" {
				c.judge(&s, name, there[name])
			}
		}
	}
	c.memory.forget(&s)
	s.evicted, s.tried, s.rests = c.memory.evicted, c.memory.tried, c.memory.rests
	return s, nil
}

// judge notes whether the node is lost; nil: it is gone. A node that is not ready says
// since when; of one that is gone, since it was first seen to be lost counts.
func (c *Controller) judge(s *seen, name string, n *corev1.Node) {
	if _, known := s.lost[name]; known {
		return
	}
	if n == nil {
		s.lost[name] = loss{c.memory.since(name, s.now), true}
		return
	}
	if ready, since := readiness(n); !ready {
		if since.IsZero() {
			since = c.memory.since(name, s.now)
		} else {
			put(&c.memory.missed, name, since)
		}
		s.lost[name] = loss{since, false}
	}
}

// readiness returns whether the node is ready, and if not since when: the zero time
// where it has never said.
func readiness(n *corev1.Node) (ready bool, since time.Time) {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return false, time.Time{}
}

// lookAtGroups finds the services and their members.
func (c *Controller) lookAtGroups(s *seen) error {
	all, err := c.Groups.List(labels.Everything())
	if err != nil {
		return err
	}
	byName := map[string]*group{}
	for _, g := range all {
		if g.Spec.Type == v1alpha1.TaskGroupInference {
			byName[g.Namespace+"/"+g.Name] = &group{TaskGroup: g}
		}
	}
	if len(byName) == 0 {
		return nil
	}
	pods, err := c.PodLister.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if g := byName[groupOf(pod)]; g != nil && !codec.Terminal(pod) {
			g.members = append(g.members, pod)
		}
	}
	for _, g := range byName {
		s.groups = append(s.groups, g)
	}
	slices.SortFunc(s.groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// groupOf names the TaskGroup that the pod is to be a member of; "" for none.
func groupOf(pod *corev1.Pod) string {
	name := codec.TaskGroup(pod)
	if name == "" {
		return ""
	}
	return pod.Namespace + "/" + name
}
