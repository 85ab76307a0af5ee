package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
)

// externalMetrics is the API by which autoscalers learn figures that are no pod's.
const externalMetrics = "external.metrics.k8s.io"

// gauge is a server of that API. It has one figure for whoever asks: how many replicas
// are wanted.
type gauge struct{ wanted atomic.Int64 }

// ServeHTTP tells what there is, or the figure.
func (g *gauge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var body any
	switch path := strings.Trim(strings.TrimPrefix(r.URL.Path, "/apis/"+externalMetrics+"/v1beta1"), "/"); path {
	case "":
		body = metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			GroupVersion: externalMetrics + "/v1beta1",
			APIResources: []metav1.APIResource{{Name: "wanted", Namespaced: true, Kind: "ExternalMetricValueList", Verbs: metav1.Verbs{"get"}}},
		}
	default:
		body = map[string]any{
			"kind": "ExternalMetricValueList", "apiVersion": externalMetrics + "/v1beta1", "metadata": map[string]any{},
			"items": []any{map[string]any{
				"metricName": "wanted", "metricLabels": map[string]string{}, "timestamp": time.Now().UTC().Format(time.RFC3339), "value": strconv.FormatInt(g.wanted.Load(), 10),
			}},
		}
	}
	_ = json.NewEncoder(w).Encode(body)
}

// gauge has the API server ask a gauge until the test is over. Autoscalers of it want
// so many replicas.
func (s *scene) gauge(wanted int64) *gauge {
	s.Helper()
	g := &gauge{}
	g.wanted.Store(wanted)
	server := httptest.NewTLSServer(g)
	s.Cleanup(server.Close)
	port := int64(server.Listener.Addr().(*net.TCPAddr).Port)
	_, err := s.Client.CoreV1().Services(s.ns).Create(s.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "gauge"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	s.must("create service", err)
	services := s.resource("apiregistration.k8s.io", "v1", "apiservices")
	name := "v1beta1." + externalMetrics
	_, err = services.Create(s.ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": externalMetrics, "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": s.ns, "name": "gauge", "port": port},
		},
	}}, metav1.CreateOptions{})
	s.must("create API service", err)
	s.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		s.check("delete API service", services.Delete(ctx, name, metav1.DeleteOptions{}))
	})
	return g
}

// resource is a client for objects that are in no namespace.
func (s *scene) resource(group, version, plural string) dynamic.NamespaceableResourceInterface {
	s.Helper()
	client, err := dynamic.NewForConfig(s.Config)
	s.must("client", err)
	return client.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural})
}

// autoscale gives a Deployment an autoscaler that has as many replicas as the gauge
// wants, within its bounds.
func (s *scene) autoscale(deployment string, least, most int32) {
	s.Helper()
	one := resource.MustParse("1")
	_, err := s.Client.AutoscalingV2().HorizontalPodAutoscalers(s.ns).Create(s.ctx, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: deployment},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment},
			MinReplicas:    &least, MaxReplicas: most,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: "wanted"},
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &one},
			}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleUp: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](0), Policies: []autoscalingv2.HPAScalingPolicy{
					{Type: autoscalingv2.PodsScalingPolicy, Value: 20, PeriodSeconds: 1}}},
			},
		},
	}, metav1.CreateOptions{})
	s.must("create autoscaler", err)
}

// bounds returns an error unless these are the autoscaler's.
func (s *scene) bounds(autoscaler string, least, most int32) error {
	hpa, err := s.Client.AutoscalingV2().HorizontalPodAutoscalers(s.ns).Get(s.ctx, autoscaler, metav1.GetOptions{})
	s.must("read autoscaler", err)
	if now := ptr.Deref(hpa.Spec.MinReplicas, 1); now != least || hpa.Spec.MaxReplicas != most {
		return fmt.Errorf("the autoscaler has %d..%d, want %d..%d", now, hpa.Spec.MaxReplicas, least, most)
	}
	return nil
}

// pausedKey is KEDA's.
const pausedKey = "autoscaling.keda.sh/paused-replicas"

// scaledObject makes a ScaledObject for the Deployment, with these annotations.
func (s *scene) scaledObject(deployment string, annotations map[string]any) {
	s.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
		"metadata": map[string]any{"name": deployment, "annotations": annotations},
		"spec":     map[string]any{"scaleTargetRef": map[string]any{"name": deployment}},
	}}
	_, err := s.resource("keda.sh", "v1alpha1", "scaledobjects").Namespace(s.ns).Create(s.ctx, o, metav1.CreateOptions{})
	s.must("create scaled object", err)
}

// pausedAt returns an error unless the ScaledObject is paused at that number; "": not.
func (s *scene) pausedAt(name, want string) error {
	o, err := s.resource("keda.sh", "v1alpha1", "scaledobjects").Namespace(s.ns).Get(s.ctx, name, metav1.GetOptions{})
	s.must("read scaled object", err)
	if now := o.GetAnnotations()[pausedKey]; now != want {
		return fmt.Errorf("it is paused at %q, want %q", now, want)
	}
	return nil
}
