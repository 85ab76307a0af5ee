package cluster

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChartPod is a pod of the chart's Deployment whose containers run as processes
// of this machine: with the arguments and files that the API server has for them,
// and with a token of their service account for all rights.
type ChartPod struct {
	Metrics       string // URL of the scheduler's metrics listener
	KubeScheduler string // URL of kube-scheduler's

	processes []*process
}

// RunPod runs the two containers of a pod that the chart's Deployment has made.
// What depends on where they run is changed and nothing else: addresses to listen
// at, the path of their configuration, and how they find the API server. There is
// no Service: one pod at a time answers the webhooks.
func (c *Cluster) RunPod(ctx context.Context, pod *corev1.Pod, webhooks bool) (*ChartPod, error) {
	place, err := c.placePod(pod)
	if err != nil {
		return nil, err
	}
	if webhooks {
		place.admission = c.admissionAddress
	}
	if err := c.credentials(ctx, pod, place); err != nil {
		return nil, err
	}
	if err := c.configuration(ctx, pod, place); err != nil {
		return nil, err
	}
	return c.launchPod(pod, place)
}

// placement is where a pod's processes run.
type placement struct {
	dir                                            string
	extender, metrics, replicas, admission, secure string
}

func (p placement) kubeconfig() string { return filepath.Join(p.dir, "kubeconfig") }

func (c *Cluster) placePod(pod *corev1.Pod) (p placement, err error) {
	p.dir = filepath.Join(c.dir, pod.Name)
	if err := chooseAddresses(&p.extender, &p.metrics, &p.replicas, &p.admission, &p.secure); err != nil {
		return p, err
	}
	return p, os.MkdirAll(p.dir, 0o700)
}

// credentials gives the pod what the kubelet would: a token of its account.
func (c *Cluster) credentials(ctx context.Context, pod *corev1.Pod, place placement) error {
	hour := int64(3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}
	granted, err := c.Client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("token of %s: %w", pod.Spec.ServiceAccountName, err)
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: pod
contexts: [{name: pod, context: {cluster: here, user: account}}]
clusters: [{name: here, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: account, user: {token: %s}}]
`, c.Config.Host, base64.StdEncoding.EncodeToString(c.Config.CAData), granted.Status.Token)
	return os.WriteFile(place.kubeconfig(), []byte(text), 0o600)
}

// configuration writes the files of the pod's ConfigMap.
func (c *Cluster) configuration(ctx context.Context, pod *corev1.Pod, place placement) error {
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		files, err := c.Client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for name, text := range files.Data {
			// In a pod kube-scheduler finds the API server by itself.
			text = strings.Replace(text, "clientConnection:\n", "clientConnection:\n  kubeconfig: "+place.kubeconfig()+"\n", 1)
			text = urlPrefixLine.ReplaceAllString(text, "${1}http://"+place.extender)
			if err := os.WriteFile(filepath.Join(place.dir, name), []byte(text), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) launchPod(pod *corev1.Pod, place placement) (*ChartPod, error) {
	if len(pod.Spec.Containers) != 2 {
		return nil, fmt.Errorf("pod %s has %d containers, want 2", pod.Name, len(pod.Spec.Containers))
	}
	_, secure, err := net.SplitHostPort(place.secure)
	if err != nil {
		return nil, err
	}
	run := &ChartPod{Metrics: "http://" + place.metrics, KubeScheduler: "https://" + place.secure}
	ours := append(arguments(pod, pod.Spec.Containers[0], place), // the last of equal flags counts
		"--kubeconfig="+place.kubeconfig(), "--extender-address="+place.extender, "--metrics-address="+place.metrics,
		"--replica-address="+place.replicas, "--replica-advertise="+place.replicas,
		"--admission-address="+place.admission, "--certificate-hosts=127.0.0.1")
	theirs := append(arguments(pod, pod.Spec.Containers[1], place),
		"--authentication-kubeconfig="+place.kubeconfig(), "--authorization-kubeconfig="+place.kubeconfig(),
		"--bind-address=127.0.0.1", "--secure-port="+secure)
	for _, cmd := range []*exec.Cmd{
		exec.Command(c.schedulerBinary, ours...),
		exec.Command(c.controlPlaneBinary, append([]string{"kube-scheduler"}, theirs...)...),
	} {
		p, err := launch(c.dir, pod.Name+"-"+fmt.Sprint(len(run.processes)), cmd)
		if err != nil {
			run.Stop()
			return nil, err
		}
		run.processes = append(run.processes, p)
	}
	return run, nil
}

// arguments are a container's, with the variables in them that the kubelet fills in.
func arguments(pod *corev1.Pod, container corev1.Container, place placement) []string {
	var known []string
	for _, e := range container.Env {
		value := e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			value = map[string]string{"metadata.namespace": pod.Namespace, "metadata.name": pod.Name, "status.podIP": "127.0.0.1"}[e.ValueFrom.FieldRef.FieldPath]
		}
		known = append(known, "$("+e.Name+")", value)
	}
	for _, m := range container.VolumeMounts {
		known = append(known, m.MountPath+"/", place.dir+"/")
	}
	filled := strings.NewReplacer(known...)
	args := make([]string, len(container.Args))
	for i, arg := range container.Args {
		args[i] = filled.Replace(arg)
	}
	return args
}

// Stop ends both processes at once, as the kubelet does.
func (p *ChartPod) Stop() {
	ended := make(chan struct{})
	for _, process := range p.processes {
		go func() {
			process.stop()
			ended <- struct{}{}
		}()
	}
	for range p.processes {
		<-ended
	}
}

// Log returns the last lines of both logs.
func (p *ChartPod) Log(lines int) string {
	var text strings.Builder
	for _, process := range p.processes {
		fmt.Fprintf(&text, "--- %s\n%s\n", process.name, tail(process.log, lines))
	}
	return text.String()
}

// Ready returns nil when both containers pass the probes that the chart gives
// them.
func (p *ChartPod) Ready(ctx context.Context) error {
	return errors.Join(get(ctx, p.Metrics+"/readyz"), getInsecure(ctx, p.KubeScheduler+"/healthz"))
}

// getInsecure is get of a server whose certificate nobody has signed.
func getInsecure(ctx context.Context, url string) error {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	return getBy(ctx, client, url)
}
