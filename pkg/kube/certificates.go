package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/certs"
)

// Certificates keeps the certificates that all replicas share in a Secret. Any
// replica makes and renews them, whichever comes first: a write that was overtaken
// is refused by the API server, and what the other wrote is read.
//
// The order of each round is what makes a change safe: first the Secret, then the
// bundle by which the API server trusts the webhooks, and what it is to trust is
// shown only when the bundle has been found right twice.
type Certificates struct {
	Client          kubernetes.Interface
	Namespace, Name string   // of the Secret
	Webhooks        []string // names of webhook configurations, of either kind
	Hosts           []string // under which the API server calls the webhooks
	Now             func() time.Time
	Logger          klog.Logger
	// Expires is told when what is shown, and its authority, do so.
	Expires func(leaf, authority time.Time)

	mu   sync.Mutex
	leaf *tls.Certificate // guarded by mu; nil before the first round
	pool *x509.CertPool   // guarded by mu

	shown  certs.Set // of Run alone: the leaf is its
	former certs.Set // of Run alone: its leaf was shown before that
	right  certs.Set // of Run alone: the bundles were right for it in the last round
	ailing string    // of Run alone: the last round's error, which was logged
}

const (
	// certificateRound is how often the Secret is looked at. It is read, not
	// watched: one more request in ten seconds, and no other way to miss a change.
	certificateRound = 10 * time.Second
	// certificateSoon is the next look while something is on its way.
	certificateSoon = 2 * time.Second
	// certificateTries is how often a round writes the Secret against others.
	certificateTries = 3
)

// ErrNoCertificate: the Secret has not been read yet.
var ErrNoCertificate = errors.New("the replicas' certificate has not been read yet")

// Current is what to show.
func (c *Certificates) Current() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaf == nil {
		return nil, ErrNoCertificate
	}
	return c.leaf, nil
}

// Authorities are those to trust.
func (c *Certificates) Authorities() *x509.CertPool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pool == nil {
		return x509.NewCertPool()
	}
	return c.pool
}

// Run keeps them until ctx ends. It reports ctx's error.
func (c *Certificates) Run(ctx context.Context) error {
	for {
		current, err := c.round(ctx)
		c.tell(err)
		pause := certificateRound
		if err != nil || !current {
			pause = certificateSoon
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait.Jitter(pause, 0.2)): // so that replicas do not write at once
		}
	}
}

// tell logs an error once, and that it is over.
func (c *Certificates) tell(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == c.ailing:
	case err != nil:
		c.Logger.Error(err, "the replicas' certificates could not be looked after")
	default:
		c.Logger.Info("the replicas' certificates are in order again")
	}
	c.ailing = text
}

// round brings the Secret, the bundles and what is shown up to date, in this
// order. current: what is shown is what the Secret has.
func (c *Certificates) round(ctx context.Context) (current bool, err error) {
	set, err := c.agree(ctx)
	if err != nil {
		return false, fmt.Errorf("secret %s/%s: %w", c.Namespace, c.Name, err)
	}
	right, err := c.announce(ctx, set)
	if !c.shown.Equal(set) && c.showable(set, right, err) {
		c.show(set)
	}
	c.trust(set)
	c.right = certs.Set{}
	if right {
		c.right = set
	}
	return c.shown.Equal(set), err
}

// showable reports whether the API server trusts the set's leaf by now. What it
// has just been told reaches all API servers a moment later: hence a round later,
// and two where there is something else to show. Where it cannot be told, the
// leaf is shown if there is nothing else.
func (c *Certificates) showable(set certs.Set, right bool, untold error) bool {
	if !c.shown.Usable(c.Now()) {
		return right || untold != nil
	}
	return c.shown.SameIssuer(set) || right && c.right.Equal(set)
}

// agree returns what the Secret has, after what is to be renewed has been. What
// is lost or broken is put back from memory: it is what the API server trusts.
func (c *Certificates) agree(ctx context.Context) (certs.Set, error) {
	var err error
	for range certificateTries {
		var set certs.Set
		set, err = c.stored(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return set, err
		}
	}
	return certs.Set{}, err
}

func (c *Certificates) stored(ctx context.Context) (certs.Set, error) {
	secret, err := c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	lost := apierrors.IsNotFound(err)
	if err != nil && !lost {
		return certs.Set{}, err
	}
	var found certs.Set
	if !lost {
		found = c.parse(secret)
	}
	set := found
	if now := c.Now(); !found.Usable(now) && c.shown.Usable(now) {
		set = c.shown
	}
	set, _, err = certs.Renew(set, c.Hosts, c.Now())
	if err != nil || set.Equal(found) {
		return set, err
	}
	files, err := set.Files()
	if err != nil {
		return certs.Set{}, err
	}
	if lost {
		return set, c.create(ctx, files)
	}
	return set, c.update(ctx, secret, files)
}

func (c *Certificates) parse(secret *corev1.Secret) certs.Set {
	if len(secret.Data) == 0 {
		return certs.Set{} // made by others, for us to fill
	}
	found, err := certs.Parse(secret.Data)
	if err != nil {
		c.Logger.Error(err, "the Secret is broken and is written anew", "secret", klog.KObj(secret))
	}
	return found
}

func (c *Certificates) create(ctx context.Context, files map[string][]byte) error {
	_, err := c.Client.CoreV1().Secrets(c.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: c.Name, Namespace: c.Namespace},
		Type:       corev1.SecretTypeTLS,
		Data:       files,
	}, metav1.CreateOptions{})
	if err == nil {
		c.Logger.Info("certificates made", "secret", klog.KRef(c.Namespace, c.Name))
	}
	return err
}

// update carries the version that was read: it is refused if there is a newer.
func (c *Certificates) update(ctx context.Context, secret *corev1.Secret, files map[string][]byte) error {
	secret = secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	maps.Copy(secret.Data, files)
	_, err := c.Client.CoreV1().Secrets(c.Namespace).Update(ctx, secret, metav1.UpdateOptions{})
	if err == nil {
		c.Logger.Info("certificates renewed", "secret", klog.KObj(secret))
	}
	return err
}

// show has the set's leaf shown from now on.
func (c *Certificates) show(set certs.Set) {
	c.shown, c.former = set, c.shown
	leaf, authority := set.Expiry()
	c.Expires(leaf, authority)
	c.Logger.Info("certificate in use", "secret", klog.KRef(c.Namespace, c.Name), "expires", leaf, "authorityExpires", authority)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaf = set.Leaf()
}

// trust believes those who show a leaf of the set, or still of an earlier one.
func (c *Certificates) trust(set certs.Set) {
	pool := certs.Pool(c.Now(), set, c.shown, c.former)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pool = pool
}
