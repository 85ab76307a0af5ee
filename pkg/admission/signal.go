package admission

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/codec"
)

// signal has the containers end by the signal that the author wishes, where they name
// none themselves. The API server takes it of pods that say that they are for Linux,
// and drops it where its feature ContainerStopSignals is off.
func (p *patch) signal() {
	name, ok := codec.StopSignal(p.pod)
	if !ok || !forLinux(p.pod) {
		return
	}
	for i := range p.pod.Spec.Containers {
		at := []string{"spec", "containers", strconv.Itoa(i), "lifecycle"}
		switch l := p.pod.Spec.Containers[i].Lifecycle; {
		case l == nil:
			p.add(map[string]string{"stopSignal": name}, at...)
		case l.StopSignal == nil:
			p.add(name, append(at, "stopSignal")...)
		}
	}
}

func forLinux(pod *corev1.Pod) bool { return pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Linux }
