package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"heteroflow.io/heteroflow/pkg/kube"
	"heteroflow.io/heteroflow/pkg/server"
)

// webhook is what of a replica the API server calls: a certificate that the
// replicas share, and an answer that lets every pod pass. Its configuration is of
// its name, and asks it about the pods that carry that as a label.
type webhook struct {
	*scene
	name  string
	certs *kube.Certificates
	stop  func()
}

const certificateSecret = "shared-certificates"

// serveWebhook starts one at the address, which remembers nothing of earlier ones.
func (s *scene) serveWebhook(name string, l net.Listener) *webhook {
	s.Helper()
	w := &webhook{scene: s, name: name, certs: &kube.Certificates{
		Client: s.Client, Namespace: s.ns, Name: certificateSecret, Webhooks: []string{"certificates-a", "certificates-b"}, Hosts: []string{"127.0.0.1"},
		Now: time.Now, Logger: klog.Background().WithName(name), Expires: func(time.Time, time.Time) {},
	}}
	ctx, stop := context.WithCancel(s.ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = w.certs.Run(ctx) })
	running.Go(func() { _ = server.ServeTLS(ctx, l, http.HandlerFunc(letPass), time.Second, w.certs) })
	w.stop = func() { stop(); running.Wait() }
	s.Cleanup(w.stop)
	return w
}

func letPass(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close") // so that each review meets the certificate
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	_ = json.NewEncoder(w).Encode(review)
}

// asks has the API server call the webhook.
func (s *scene) asks(name, address string) {
	s.Helper()
	url, none, fail := "https://"+address+"/", admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail
	_, err := s.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(s.ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "certificates-" + name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name + ".certificates.example", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, FailurePolicy: &fail,
			ClientConfig:   admissionregistrationv1.WebhookClientConfig{URL: &url},
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ask": name}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}, metav1.CreateOptions{})
	s.must("webhook configuration", err)
	s.Cleanup(func() {
		_ = s.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.Background(), "certificates-"+name, metav1.DeleteOptions{})
	})
}

// trusted returns nil if the API server gets an answer of the webhook.
func (w *webhook) trusted() error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: map[string]string{"ask": w.name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/app"}}},
	}
	_, err := w.Client.CoreV1().Pods(w.ns).Create(w.ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// shows is the serial number of what the webhook shows.
func (w *webhook) shows() string {
	leaf, err := w.certs.Current()
	if err != nil {
		return ""
	}
	return leaf.Leaf.SerialNumber.String()
}

// The API server trusts the webhooks from the start and through whatever happens
// to the Secret, without a moment in which it does not.
func TestCertificatesAreSharedAndTrusted(t *testing.T) {
	s := begin(t, shared.running)
	listen := func(address string) net.Listener {
		l, err := net.Listen("tcp", address)
		s.must("listen", err)
		return l
	}
	at := map[string]net.Listener{"a": listen("127.0.0.1:0"), "b": listen("127.0.0.1:0")}
	for name, l := range at {
		s.asks(name, l.Addr().String())
	}
	secrets := s.Client.CoreV1().Secrets(s.ns)
	a, b := s.serveWebhook("a", at["a"]), s.serveWebhook("b", at["b"])
	s.eventually("a is trusted", a.trusted)
	s.eventually("b is trusted", b.trusted)
	if a.shows() != b.shows() {
		t.Error("they do not share a certificate")
	}

	// From here on the first is asked all the time.
	watching, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			if err := a.trusted(); err != nil {
				done <- err
				return
			}
			select {
			case <-watching:
				done <- nil
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()

	broken := []byte(`{"data":{"tls.key":"aGVsbG8="}}`)
	_, err := secrets.Patch(s.ctx, certificateSecret, types.MergePatchType, broken, metav1.PatchOptions{})
	s.must("break the Secret", err)
	was := a.shows()
	s.eventually("the Secret is put back", func() error {
		secret, err := secrets.Get(s.ctx, certificateSecret, metav1.GetOptions{})
		if err == nil && len(secret.Data["tls.key"]) < 100 {
			err = fmt.Errorf("it is broken still")
		}
		return err
	})
	if a.shows() != was {
		t.Error("another certificate is shown")
	}

	// The second starts anew and finds no Secret: it makes another authority, and
	// the first goes over to it.
	b.stop()
	s.must("delete the Secret", secrets.Delete(s.ctx, certificateSecret, metav1.DeleteOptions{}))
	b = s.serveWebhook("b", listen(at["b"].Addr().String()))
	s.eventually("b is trusted again", b.trusted)
	s.eventually("they share a certificate again", func() error {
		if a.shows() != b.shows() {
			return fmt.Errorf("a shows %s, b %s", a.shows(), b.shows())
		}
		return nil
	})
	s.check("b is trusted", b.trusted())
	close(watching)
	s.check("the API server trusts a all the time", <-done)
	t.Logf("another authority: %t", a.shows() != was)
}
