package kube

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// LeaseName is the name of the Lease that the leader holds.
const LeaseName = "heteroflow-scheduler"

// Holder is one process that holds the Lease or would like to. It leads once at
// most, so it stands for its term too.
type Holder struct {
	Host    string // the pod's name
	Address string // host:port at which other replicas reach it; "" if they do not
	Process string // no two processes have the same
}

// NewHolder returns the holder that this process is.
func NewHolder(host, address string) Holder {
	return Holder{Host: strings.ReplaceAll(host, "_", "-"), Address: address, Process: string(uuid.NewUUID())}
}

// String is the holder as the Lease and the Epoch have it.
func (h Holder) String() string { return h.Host + "_" + h.Address + "_" + h.Process }

// ParseHolder reads what String has written; of anything else only the host is
// known, which is the text.
func ParseHolder(text string) Holder {
	parts := strings.Split(text, "_")
	if len(parts) != 3 {
		return Holder{Host: text}
	}
	return Holder{Host: parts[0], Address: parts[1], Process: parts[2]}
}

// NewLease returns the Lease in that namespace, to be held by h.
func NewLease(client kubernetes.Interface, namespace string, h Holder) resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: LeaseName},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: h.String()},
	}
}

// leaseTime bounds how long it takes to find out which Lease an event is about.
const leaseTime = 2 * time.Second

// LeaseReference names the Lease in that namespace for an event. Without its UID,
// when it cannot be read, kubectl describe does not show the event; kubectl get
// events does.
func LeaseReference(ctx context.Context, client kubernetes.Interface, namespace string) corev1.ObjectReference {
	ctx, stop := context.WithTimeout(ctx, leaseTime)
	defer stop()
	ref := corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: namespace, Name: LeaseName}
	if lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, LeaseName, metav1.GetOptions{}); err == nil {
		ref.UID = lease.UID
	}
	return ref
}

// tenure is told what becomes of the Lease. client-go tells its user less, and
// later: that another holds the Lease it tells when the renewal has been given up.
type tenure interface {
	// seen: the Lease is held by that holder; "" by nobody: it has been given up,
	// or is not there.
	seen(holder string, there bool)
	// kept: we have taken the Lease, or keep it, as of then.
	kept(since time.Time)
}

// watchedLock is the Lease as client-go's elector uses it, under observation.
type watchedLock struct {
	resourcelock.Interface
	now    func() time.Time
	tenure tenure
}

func (w *watchedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := w.Interface.Get(ctx)
	switch {
	case err == nil:
		w.tenure.seen(record.HolderIdentity, true)
	case apierrors.IsNotFound(err):
		w.tenure.seen("", false)
	}
	return record, raw, err
}

func (w *watchedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return w.keep(func() error { return w.Interface.Create(ctx, record) })
}

func (w *watchedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return w.keep(func() error { return w.Interface.Update(ctx, record) })
}

// keep counts the time from before the request: it may have been on its way.
func (w *watchedLock) keep(write func() error) error {
	began := w.now()
	err := write()
	if err == nil {
		w.tenure.kept(began)
	}
	return err
}

// release gives the Lease up, if it is ours: whoever finds it without a holder
// knows that nothing of ours is on its way.
func release(ctx context.Context, lock resourcelock.Interface, now time.Time) (released bool, err error) {
	record, _, err := lock.Get(ctx)
	if err != nil || record.HolderIdentity != lock.Identity() {
		return false, err
	}
	stamp := metav1.NewTime(now)
	err = lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions:    record.LeaderTransitions,
		LeaseDurationSeconds: 1,
		RenewTime:            stamp,
		AcquireTime:          stamp,
	})
	return err == nil, err
}
