package chaos

import (
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const wholeCards = corev1.ResourceName("heteroflow.io/gpu")

// somePod asks for a card, two, or a slice.
func somePod(random *rand.Rand, name string) *corev1.Pod {
	asks := [...]map[corev1.ResourceName]int64{
		{wholeCards: 1},
		{wholeCards: 2},
		{"heteroflow.io/gpu-memory": 8000},
		{"heteroflow.io/gpu-memory": 30000, "heteroflow.io/gpu-cores": 40},
		{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 20000, "nvidia.com/gpucores": 30},
	}
	return podOf(name, asks[random.IntN(len(asks))])
}

// cardsOf is how many cards a pod is on at most.
func cardsOf(pod *corev1.Pod) int {
	whole := pod.Spec.Containers[0].Resources.Limits[wholeCards]
	return max(1, int(whole.Value()))
}

func podOf(name string, asks map[corev1.ResourceName]int64) *corev1.Pod {
	limits := corev1.ResourceList{}
	for resourceName, n := range asks {
		limits[resourceName] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	grace := int64(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			SchedulerName:                 "heteroflow-scheduler",
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.example/app", Resources: corev1.ResourceRequirements{Limits: limits},
			}},
		},
	}
}
