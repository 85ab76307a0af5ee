package kube

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"heteroflow.io/heteroflow/pkg/codec"
)

// marked keeps one copy of what says with whom a bound pod works: thousands of pods
// may be of one job. Nothing of it is ever edited. The zero value is ready for use,
// by many at once.
type marked struct {
	mu    sync.Mutex
	byJob map[string]map[string]string          // guarded by mu; job-id -> the labels of its pods
	byUID map[types.UID][]metav1.OwnerReference // guarded by mu; owner -> the list of it alone
}

// mostMarked bounds what is kept, at some 2 MiB. Then it begins anew: what is in use
// stays with who uses it.
const mostMarked = 4096

// labels returns those of a pod of ours that is part of the job.
func (m *marked) labels(job string) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kept, ok := m.byJob[job]; ok {
		return kept
	}
	if m.byJob == nil || len(m.byJob) >= mostMarked {
		m.byJob = map[string]map[string]string{}
	}
	job = one(job)
	m.byJob[job] = map[string]string{codec.BoundByLabel: codec.BoundByValue, codec.LabelJobID: job}
	return m.byJob[job]
}

// owners returns the list of this owner alone; none of nil.
func (m *marked) owners(job *metav1.OwnerReference) []metav1.OwnerReference {
	if job == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if kept, ok := m.byUID[job.UID]; ok {
		return kept
	}
	if m.byUID == nil || len(m.byUID) >= mostMarked {
		m.byUID = map[types.UID][]metav1.OwnerReference{}
	}
	controls := true
	uid := types.UID(one(string(job.UID)))
	m.byUID[uid] = []metav1.OwnerReference{{Kind: one(job.Kind), UID: uid, Controller: &controls}}
	return m.byUID[uid]
}
