package kube

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"pgregory.net/rapid"

	"heteroflow.io/heteroflow/pkg/certs"
)

const (
	secretPath     = "/api/v1/namespaces/ns/secrets/certs"
	mutatingPath   = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/heteroflow"
	validatingPath = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/heteroflow"
)

// store is an API server for one Secret and two webhook configurations: it keeps
// versions, and refuses what is not for the present one.
type store struct {
	mu      sync.Mutex
	version int               // guarded by mu
	objects map[string]string // guarded by mu; path -> JSON
	writes  []string          // guarded by mu
	before  func(*http.Request) (code int)
}

func newStore() *store {
	s := &store{objects: map[string]string{}}
	s.put(mutatingPath, hooks("MutatingWebhookConfiguration", "a", "b"))
	s.put(validatingPath, hooks("ValidatingWebhookConfiguration", "c"))
	return s
}

// hooks is a configuration as the chart has it: nobody is trusted yet.
func hooks(kind string, names ...string) string {
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf(`{"name":%q,"timeoutSeconds":5,"clientConfig":{"service":{"namespace":"ns","name":"hf","path":"/webhook/%s"}}}`, name, name))
	}
	return fmt.Sprintf(`{"kind":%q,"apiVersion":"admissionregistration.k8s.io/v1","metadata":{"name":"heteroflow"},"webhooks":[%s]}`, kind, strings.Join(list, ","))
}

// RoundTrip is the server, without a network.
func (s *store) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	s.serve(w, r)
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

func (s *store) serve(w http.ResponseWriter, r *http.Request) {
	if s.before != nil {
		if code := s.before(r); code != 0 {
			refuse(w, code, metav1.StatusReasonForbidden, "not now")
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	path := r.URL.Path
	if r.Method == http.MethodPost {
		path += "/" + metaOf(body).Name
	}
	now, exists := s.objects[path]
	version := metaOf(body).ResourceVersion
	switch {
	case r.Method == http.MethodPost && exists:
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "already exists")
		return
	case r.Method != http.MethodPost && !exists:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
		return
	case version != "" && version != metaOf([]byte(now)).ResourceVersion:
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
		return
	case r.Method == http.MethodPatch:
		body = merged(path, []byte(now), body)
	}
	if r.Method != http.MethodGet {
		s.writes = append(s.writes, r.Method+" "+r.URL.Path)
		s.keep(path, string(body))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, s.objects[path])
}

func merged(path string, now, patch []byte) []byte {
	var of any = admissionregistrationv1.MutatingWebhookConfiguration{}
	if path == validatingPath {
		of = admissionregistrationv1.ValidatingWebhookConfiguration{}
	}
	out, err := strategicpatch.StrategicMergePatch(now, patch, of)
	if err != nil {
		panic(err)
	}
	return out
}

func metaOf(object []byte) metav1.ObjectMeta {
	var o metav1.PartialObjectMetadata
	_ = json.Unmarshal(object, &o)
	return o.ObjectMeta
}

// keep stores the object under a new version; mu is held.
func (s *store) keep(path, object string) {
	var o map[string]any
	if err := json.Unmarshal([]byte(object), &o); err != nil {
		panic(err)
	}
	s.version++
	meta, _ := o["metadata"].(map[string]any)
	meta["resourceVersion"] = strconv.Itoa(s.version)
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	s.objects[path] = string(text)
}

func (s *store) put(path, object string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(path, object)
}

func (s *store) remove(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, path)
}

func (s *store) get(path string, into any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = json.Unmarshal([]byte(s.objects[path]), into)
}

func (s *store) secret() (o corev1.Secret) {
	s.get(secretPath, &o)
	return o
}

// spoil changes one file of the Secret.
func (s *store) spoil(file, text string) {
	o := s.secret()
	o.Data[file] = []byte(text)
	raw, _ := json.Marshal(o)
	s.put(secretPath, string(raw))
}

// bundles are what the API server trusts, each webhook's.
func (s *store) bundles() (all []string) {
	for _, path := range []string{mutatingPath, validatingPath} {
		var c callers
		s.get(path, &c)
		for _, w := range c.Webhooks {
			all = append(all, string(w.ClientConfig.CABundle))
		}
	}
	return all
}

func (s *store) wrote() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	writes := s.writes
	s.writes = nil
	return writes
}

// replica is one of the replicas, at that time of day.
func (s *store) replica(now *time.Time) *Certificates {
	client, err := newClient("http://store", s)
	if err != nil {
		panic(err)
	}
	return &Certificates{
		Client: client, Namespace: "ns", Name: "certs", Webhooks: []string{"heteroflow"}, Hosts: []string{"hf.ns.svc"},
		Now: func() time.Time { return *now }, Logger: logr.Discard(), Expires: func(time.Time, time.Time) {},
	}
}

// settled is a replica that has gone through what there is to do.
func settled(t testing.TB, s *store, now *time.Time) *Certificates {
	t.Helper()
	c := s.replica(now)
	for range 2 {
		if _, err := c.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// trusted returns nil if a client with that bundle accepts what the replica shows.
func trusted(c *Certificates, bundle string, now time.Time) error {
	leaf, err := c.Current()
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(bundle))
	_, err = leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: "hf.ns.svc"})
	return err
}

func accepts(c, peer *Certificates, now time.Time) error {
	leaf, err := peer.Current()
	if err != nil {
		return err
	}
	_, err = leaf.Leaf.Verify(x509.VerifyOptions{Roots: c.Authorities(), CurrentTime: now, DNSName: certs.Subject})
	return err
}

var day1 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestCertificatesAreMade(t *testing.T) {
	s, now := newStore(), day1
	c := s.replica(&now)
	if _, err := c.Current(); !errors.Is(err, ErrNoCertificate) {
		t.Errorf("Current = %v before the first round", err)
	}
	if !c.Authorities().Equal(x509.NewCertPool()) {
		t.Error("somebody is trusted before the first round")
	}
	if current, err := c.round(t.Context()); err != nil || current {
		t.Fatalf("round = %t, %v", current, err)
	}
	if _, err := c.Current(); err == nil {
		t.Error("shown before the API server has had time to learn whom to trust")
	}
	if current, err := c.round(t.Context()); err != nil || !current {
		t.Fatalf("second round = %t, %v", current, err)
	}
	want := []string{"POST /api/v1/namespaces/ns/secrets", "PATCH " + mutatingPath, "PATCH " + validatingPath}
	if diff := cmp.Diff(want, s.wrote()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if kind := s.secret().Type; kind != corev1.SecretTypeTLS {
		t.Errorf("the Secret is of type %q", kind)
	}
	for _, bundle := range s.bundles() {
		if err := trusted(c, bundle, now); err != nil {
			t.Error(err)
		}
	}
	// What else the configuration says is as it was.
	var config admissionregistrationv1.MutatingWebhookConfiguration
	s.get(mutatingPath, &config)
	if w := config.Webhooks[1]; len(config.Webhooks) != 2 || w.Name != "b" || *w.TimeoutSeconds != 5 || *w.ClientConfig.Service.Path != "/webhook/b" {
		t.Errorf("second webhook %+v", w)
	}
	// A second replica, and further rounds, write nothing.
	second := s.replica(&now)
	for _, c := range []*Certificates{second, c, second, c} {
		if current, err := c.round(t.Context()); err != nil || !current {
			t.Errorf("round = %t, %v", current, err)
		}
	}
	if writes := s.wrote(); len(writes) > 0 {
		t.Errorf("written again: %v", writes)
	}
	if err := errors.Join(accepts(c, second, now), accepts(second, c, now)); err != nil {
		t.Errorf("the replicas do not trust each other: %v", err)
	}
}

// Many replicas start at once: one of them makes the Secret, all use that.
func TestReplicasAgree(t *testing.T) {
	s, now := newStore(), day1
	replicas := make([]*Certificates, 8)
	var group sync.WaitGroup
	for i := range replicas {
		replicas[i] = s.replica(&now)
		group.Go(func() { _, _ = replicas[i].round(t.Context()) })
	}
	group.Wait()
	for range 2 { // a patch may have been overtaken
		for i, c := range replicas {
			if _, err := c.round(t.Context()); err != nil {
				t.Fatalf("replica %d: %v", i, err)
			}
		}
	}
	for i, c := range replicas {
		if err := accepts(c, replicas[0], now); err != nil {
			t.Errorf("replica %d does not trust the first: %v", i, err)
		}
		for _, bundle := range s.bundles() {
			if err := trusted(c, bundle, now); err != nil {
				t.Errorf("replica %d: %v", i, err)
			}
		}
	}
	made := 0
	for _, w := range s.wrote() {
		if w == "POST /api/v1/namespaces/ns/secrets" {
			made++
		}
	}
	if made != 1 {
		t.Errorf("made %d times, want once", made)
	}
}

// What is lost or broken is put back as it was: whoever trusted the replicas does
// so still.
func TestSecretIsPutBack(t *testing.T) {
	for name, harm := range map[string]func(*store){
		"deleted": func(s *store) { s.remove(secretPath) },
		"emptied": func(s *store) {
			o := s.secret()
			o.Data = nil
			raw, _ := json.Marshal(o)
			s.put(secretPath, string(raw))
		},
		"a file is gone":       func(s *store) { s.spoil("tls.crt", "") },
		"rubbish in a file":    func(s *store) { s.spoil("ca.key", "hello") },
		"the authority's gone": func(s *store) { s.spoil("ca.crt", "") },
		"a stranger's leaf": func(s *store) {
			other, _, _ := certs.Renew(certs.Set{}, nil, day1)
			files, _ := other.Files()
			s.spoil("tls.crt", string(files["tls.crt"]))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, now := newStore(), day1
			c := settled(t, s, &now)
			want, bundles := s.secret().Data, s.bundles()
			harm(s)
			if current, err := c.round(t.Context()); err != nil || !current {
				t.Fatalf("round = %t, %v", current, err)
			}
			if diff := cmp.Diff(want, s.secret().Data); diff != "" {
				t.Errorf("the Secret is another one (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(bundles, s.bundles()); diff != "" {
				t.Errorf("the bundles are others (-want +got):\n%s", diff)
			}
		})
	}
}

// A Secret that others have made, to be filled, or that has files of others.
func TestSecretOfOthers(t *testing.T) {
	s, now := newStore(), day1
	s.put(secretPath, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"certs","namespace":"ns","labels":{"of":"others"}},"type":"Opaque"}`)
	c := settled(t, s, &now)
	s.spoil("note", "hello")
	now = now.Add(61 * 24 * time.Hour)
	if current, err := c.round(t.Context()); err != nil || !current {
		t.Fatalf("round = %t, %v", current, err)
	}
	if o := s.secret(); string(o.Data["note"]) != "hello" || o.Labels["of"] != "others" || o.Type != corev1.SecretTypeOpaque {
		t.Errorf("the Secret has lost what is others': %v %v %v", o.Data["note"], o.Labels, o.Type)
	}
}

// The API server keeps trusting what is shown, whatever happens to the Secret, to
// replicas and to the calendar. It sees a new bundle a moment late: the one before
// counts too.
func TestTheAPIServerAlwaysTrusts(t *testing.T) {
	fine := map[string]bool{} // leaf and bundle that are known to fit; looking takes long
	rapid.Check(t, func(t *rapid.T) {
		s, now := newStore(), day1
		replicas := []*Certificates{s.replica(&now), s.replica(&now), s.replica(&now)}
		round := func(i int) {
			before := s.bundles()
			if _, err := replicas[i].round(context.Background()); err != nil {
				t.Fatalf("round of %d: %v", i, err)
			}
			for j, c := range replicas {
				leaf, err := c.Current()
				if err != nil || now.After(leaf.Leaf.NotAfter) {
					continue
				}
				for _, bundle := range append(s.bundles(), before...) {
					key := string(leaf.Leaf.Raw) + bundle
					if fine[key] {
						continue
					}
					if err := trusted(c, bundle, now); err != nil {
						t.Fatalf("replica %d: %v", j, err)
					}
					fine[key] = true
				}
			}
		}
		everyone := func() {
			for range 2 {
				for i := range replicas {
					round(i)
				}
			}
		}
		everyone()
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			i := rapid.IntRange(0, 2).Draw(t, "replica")
			switch rapid.SampledFrom([]string{"round", "wait", "sleep", "restart", "delete", "break"}).Draw(t, "what") {
			case "round":
				round(i)
			case "wait":
				everyone()
				now = now.Add(time.Duration(rapid.IntRange(1, 23*60).Draw(t, "minutes")) * time.Minute)
				everyone()
			case "sleep":
				everyone()
				now = now.Add(time.Duration(rapid.IntRange(1, 29).Draw(t, "days")) * 24 * time.Hour)
				everyone()
			case "restart":
				replicas[i] = s.replica(&now)
			case "delete":
				s.remove(secretPath)
			case "break":
				if len(s.secret().Data) > 0 {
					s.spoil(rapid.SampledFrom([]string{"ca.crt", "ca.key", "tls.crt", "tls.key"}).Draw(t, "file"), "hello")
				}
			}
		}
		everyone()
		everyone()
		for i, a := range replicas {
			for j, b := range replicas {
				if err := accepts(a, b, now); err != nil {
					t.Fatalf("in the end %d does not trust %d: %v", i, j, err)
				}
			}
		}
	})
}

// A replica that has lost its memory when the Secret is lost makes another
// authority: those that show a leaf of the old one go over only when the API
// server has been told, and a round later.
func TestAnotherAuthorityIsTakenOverSlowly(t *testing.T) {
	s, now := newStore(), day1
	old, late := settled(t, s, &now), settled(t, s, &now)
	was, _ := old.Current()
	s.remove(secretPath)
	fresh := settled(t, s, &now)
	if current, err := old.round(t.Context()); err != nil || current {
		t.Errorf("round = %t, %v; want the old leaf shown still", current, err)
	}
	s.put(mutatingPath, hooks("MutatingWebhookConfiguration", "a", "b")) // an upgrade has reset it
	if _, err := late.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := trusted(late, s.bundles()[0], now); err != nil {
		t.Errorf("what is shown still is not told: %v", err)
	}
	if is, _ := old.Current(); is != was {
		t.Error("the leaf was changed at once")
	}
	if err := accepts(old, fresh, now); err != nil {
		t.Errorf("the fresh one is not trusted at once: %v", err)
	}
	if current, err := old.round(t.Context()); err != nil || !current {
		t.Errorf("second round = %t, %v", current, err)
	}
	if err := accepts(old, late, now); err != nil {
		t.Errorf("one that is late is not trusted any more: %v", err)
	}
	if err := errors.Join(accepts(old, fresh, now), accepts(fresh, old, now)); err != nil {
		t.Error(err)
	}
	now = now.Add(25 * time.Hour)
	for range 2 {
		if _, err := old.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, bundle := range s.bundles() {
		if n := strings.Count(bundle, "BEGIN"); n != 1 {
			t.Errorf("%d authorities are trusted a day later, want 1", n)
		}
	}
}

// Where webhooks may not be read, or are not there, replicas still have
// certificates for each other.
func TestWithoutWebhooks(t *testing.T) {
	s, now := newStore(), day1
	s.remove(mutatingPath)
	s.remove(validatingPath)
	c := s.replica(&now)
	if current, err := c.round(t.Context()); err != nil || !current {
		t.Errorf("there are none: round = %t, %v", current, err)
	}
	s = newStore()
	s.before = func(r *http.Request) int {
		if strings.HasPrefix(r.URL.Path, "/apis/") {
			return http.StatusForbidden
		}
		return 0
	}
	c = s.replica(&now)
	for range 2 {
		current, err := c.round(t.Context())
		if err == nil || !strings.Contains(err.Error(), "mutatingwebhookconfigurations heteroflow: not now") || !strings.Contains(err.Error(), "validatingwebhookconfigurations heteroflow: ") {
			t.Errorf("round = %v, want what is forbidden", err)
		}
		if _, err := c.Current(); err != nil || !current {
			t.Errorf("Current = %v", err)
		}
		now = now.Add(61 * 24 * time.Hour) // a leaf of the same authority needs no telling
	}
}

// An API server that is away, or a Secret that cannot be written, leaves what is
// shown as it is, and the error is logged once.
func TestSecretCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		var mu sync.Mutex
		var log []string // guarded by mu
		lines := func(what string) (n int) {
			mu.Lock()
			defer mu.Unlock()
			for _, l := range log {
				if strings.Contains(l, what) {
					n++
				}
			}
			return n
		}
		now := time.Now()
		c := s.replica(&now)
		var ahead atomic.Int64 // how far the calendar is
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		c.Logger = funcr.New(func(_, line string) { mu.Lock(); defer mu.Unlock(); log = append(log, line) }, funcr.Options{})
		var away bool // guarded by mu
		s.before = func(*http.Request) int {
			mu.Lock()
			defer mu.Unlock()
			if away {
				return http.StatusForbidden
			}
			return 0
		}
		turn := func(off bool) { mu.Lock(); defer mu.Unlock(); away = off }
		turn(true)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		time.Sleep(time.Minute)
		if _, err := c.Current(); err == nil {
			t.Error("shows something that it has not read")
		}
		if n := lines("could not be looked after"); n != 1 {
			t.Errorf("logged %d times, want once: %v", n, log)
		}
		turn(false)
		time.Sleep(5 * time.Second)
		was, err := c.Current()
		if err != nil || lines("in order again") != 1 {
			t.Fatalf("Current = %v, log %v", err, log)
		}
		turn(true)
		time.Sleep(5 * time.Minute)
		if is, err := c.Current(); err != nil || is != was {
			t.Errorf("Current = %v, another leaf: %t", err, is != was)
		}
		turn(false)
		s.remove(secretPath)
		time.Sleep(15 * time.Second)
		if len(s.secret().Data) == 0 {
			t.Error("the Secret has not been put back")
		}
		ahead.Store(int64(61 * 24 * time.Hour))
		time.Sleep(15 * time.Second)
		if is, err := c.Current(); err != nil || is == was {
			t.Errorf("Current = %v after two months, renewed: %t", err, is != was)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
}
