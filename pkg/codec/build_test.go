package codec

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heteroflow.io/heteroflow/pkg/policy"
)

var update = flag.Bool("update", false, "write the golden files anew")

// quantities makes a resource list of names and quantities, one after the other.
func quantities(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// change is one thing that sets a pod apart from the plain one.
type change func(*corev1.Pod)

func podWith(changes ...change) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team-a", Name: "train-0", UID: "7d9c", Annotations: map[string]string{},
	}}
	for _, c := range changes {
		c(pod)
	}
	return pod
}

// app adds a container with these limits.
func app(name string, limits ...string) change {
	return func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: name, Resources: corev1.ResourceRequirements{Limits: quantities(limits...)},
		})
	}
}

func initContainer(name string, limits ...string) change {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{
			Name: name, Resources: corev1.ResourceRequirements{Limits: quantities(limits...)},
		})
	}
}

func sidecar(name string, limits ...string) change {
	return func(p *corev1.Pod) {
		initContainer(name, limits...)(p)
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers[len(p.Spec.InitContainers)-1].RestartPolicy = &always
	}
}

// requesting sets the requests of the last container.
func requesting(pairs ...string) change {
	return func(p *corev1.Pod) {
		p.Spec.Containers[len(p.Spec.Containers)-1].Resources.Requests = quantities(pairs...)
	}
}

func annotated(pairs ...string) change {
	return func(p *corev1.Pod) {
		for i := 0; i < len(pairs); i += 2 {
			p.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

// untimed are settings by which who does not say how long it runs may run for ever.
func untimed() policy.Settings {
	s := policy.Default()
	s.DefaultTaskTimeout = 0
	return s
}

func boundTo(node string) change {
	return func(p *corev1.Pod) { p.Spec.NodeName = node }
}

// sameFaults compares an error with the lines it should have, in order.
func sameFaults(t *testing.T, err error, want ...string) {
	t.Helper()
	if len(want) == 0 {
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("no error, want:\n%s", strings.Join(want, "\n"))
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// golden compares text with a file.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s does not exist: run the test with -update and look at what it writes", file)
	} else if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s is out of date unless the code is wrong, see `make generate` (-want +got):\n%s", file, diff)
	}
}
