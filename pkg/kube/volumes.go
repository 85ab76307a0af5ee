package kube

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Volumes tells of PersistentVolumeClaims whether they bind their pods to nodes. It
// asks the API server and remembers the answer for a while: nobody here follows
// claims, and few pods need to know. It is safe for concurrent use.
type Volumes struct {
	Client kubernetes.Interface
	Now    func() time.Time

	mu      sync.Mutex
	answers map[string]volumeAnswer // guarded by mu; namespace/claim -> what was found
	since   time.Time               // guarded by mu; of the second that asked counts in
	asked   int                     // guarded by mu
}

type volumeAnswer struct {
	anywhere bool
	at       time.Time
}

const (
	// volumesKnown is how long an answer is good for, and mostVolumes how many are
	// remembered.
	volumesKnown = time.Minute
	mostVolumes  = 4096
	// volumesAsked bounds the claims that are asked about in a second: of more it is
	// not known yet, which is a no.
	volumesAsked = 20
	volumesTime  = time.Second
)

// Anywhere reports whether the claim is bound to a volume that any node can have, as
// far as kube-scheduler looks at it. What is not known is a no.
func (v *Volumes) Anywhere(namespace, claim string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, key := v.Now(), namespace+"/"+claim
	if known, ok := v.answers[key]; ok && now.Sub(known.at) < volumesKnown {
		return known.anywhere
	}
	if now.Sub(v.since) >= time.Second {
		v.since, v.asked = now, 0
	}
	if v.asked++; v.asked > volumesAsked {
		return false
	}
	if v.answers == nil || len(v.answers) >= mostVolumes {
		v.answers = map[string]volumeAnswer{}
	}
	found := v.ask(namespace, claim)
	v.answers[key] = volumeAnswer{found, now}
	return found
}

func (v *Volumes) ask(namespace, name string) bool {
	ctx, stop := context.WithTimeout(context.Background(), volumesTime)
	defer stop()
	claim, err := v.Client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || claim.DeletionTimestamp != nil || claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" ||
		slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) { // one pod at a time, and which one is not known
		return false
	}
	volume, err := v.Client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	return err == nil && anywhere(volume)
}

// anywhere reports whether neither where the volume is nor who else has it makes
// kube-scheduler refuse a node.
func anywhere(v *corev1.PersistentVolume) bool {
	for _, label := range [...]string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion} {
		if v.Labels[label] != "" {
			return false
		}
	}
	s := &v.Spec.PersistentVolumeSource
	return v.Spec.NodeAffinity == nil && (s.CSI != nil || s.NFS != nil || s.CephFS != nil || s.HostPath != nil)
}
