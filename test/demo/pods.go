package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// examplePods reads the pods of examples/, in the order of their files' names.
func examplePods(dir string) ([]*corev1.Pod, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var pods []*corev1.Pod
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(content, &kind); err != nil || kind.Kind != "Pod" {
			continue // a configuration, perhaps of several documents
		}
		pod := &corev1.Pod{}
		if err := yaml.UnmarshalStrict(content, pod); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// shape is a kind of pod in the generated list.
type shape struct {
	share       int // how many of a hundred
	name        string
	limits      map[string]int
	annotations map[string]string
}

var shapes = []shape{
	{30, "notebook", map[string]int{"heteroflow.io/gpu-memory": 8000}, nil},
	{20, "serve", map[string]int{"heteroflow.io/gpu-memory": 14000, "heteroflow.io/gpu-cores": 40}, nil},
	{15, "hami", map[string]int{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 10000, "nvidia.com/gpucores": 30}, nil},
	{10, "train", map[string]int{"heteroflow.io/gpu": 1}, nil},
	{5, "plain", map[string]int{"nvidia.com/gpu": 1}, nil},
	{6, "pair", map[string]int{"heteroflow.io/gpu": 2}, map[string]string{"heteroflow.io/gpu-type": "ascend"}},
	{6, "dual", map[string]int{"nvidia.com/gpu": 2, "nvidia.com/gpumem-percentage": 25}, nil},
	{5, "large", map[string]int{"heteroflow.io/gpu": 4}, nil},
	{3, "a100", map[string]int{"heteroflow.io/gpu": 2}, map[string]string{"heteroflow.io/gpu-model": "A100"}},
}

// generatedPods returns n pods of mixed shapes, always the same ones. They name
// no scheduler: admission sees that they ask for cards.
func generatedPods(n int) []*corev1.Pod {
	random := rand.New(rand.NewPCG(1, 2))
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = draw(random).pod(i)
	}
	return pods
}

func draw(random *rand.Rand) shape {
	at := random.IntN(100)
	for _, s := range shapes {
		if at < s.share {
			return s
		}
		at -= s.share
	}
	return shapes[0]
}

func (s shape) pod(i int) *corev1.Pod {
	limits := corev1.ResourceList{}
	for name, amount := range s.limits {
		limits[corev1.ResourceName(name)] = *resource.NewQuantity(int64(amount), resource.DecimalSI)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%03d", s.name, i), Annotations: s.annotations},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name:  "main",
				Image: "registry.example/app",
				Resources: corev1.ResourceRequirements{
					Limits:   limits,
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
				},
			}},
		},
	}
}
