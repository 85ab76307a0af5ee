package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MostManifest is the length of the longest manifest, in bytes: it is kept in an
// object beside others, which together have to fit a request.
const MostManifest = 128 << 10

// Manifest returns the pod that is made in the place of one that nobody else makes
// anew, which has been ended for others count times with this one. It is made from
// the pod as the API server has it, not as informers keep it, and is what its author
// wrote, as far as that can be told: what was given to the pod for its life alone
// is left out, and given anew to the next.
func Manifest(pod *corev1.Pod, count int) ([]byte, error) {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return nil, fmt.Errorf("pod %s/%s: is static: only its kubelet makes it", pod.Namespace, pod.Name)
	}
	if len(pod.OwnerReferences) > 0 || pod.UID == "" {
		return nil, fmt.Errorf("pod %s/%s: has an owner, or no UID: not to be made anew", pod.Namespace, pod.Name)
	}
	next := corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, Labels: maps.Clone(pod.Labels), Annotations: maps.Clone(pod.Annotations),
			Finalizers: slices.DeleteFunc(slices.Clone(pod.Finalizers), ofDeletion),
		},
		Spec: *pod.Spec.DeepCopy(),
	}
	succeed(&next, pod, count)
	renew(&next.Spec)
	text, err := json.Marshal(&next)
	if err == nil && len(text) > MostManifest {
		err = errors.New("is longer than " + strconv.Itoa(MostManifest) + " bytes")
	}
	if err != nil {
		return nil, fmt.Errorf("manifest of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return text, nil
}

// ofDeletion: the API server adds these itself when somebody deletes the pod.
func ofDeletion(finalizer string) bool {
	return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
}

// succeed takes off what schedulers have written, and writes whose successor it is.
// The record of numbers stays: what containers read stands under them.
func succeed(next, pod *corev1.Pod, count int) {
	annotations, labels := Carried(pod)
	for _, key := range annotations {
		delete(next.Annotations, key)
	}
	for _, key := range labels {
		delete(next.Labels, key)
	}
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[AnnotationPreemptedFrom] = string(pod.UID)
	next.Annotations[AnnotationPreemptCount] = strconv.Itoa(count)
	next.Annotations[AnnotationPreemptible] = no
}

// renew leaves out of a spec what the API server and its admission plugins work out
// anew, and refuse where it is not what they would.
func renew(spec *corev1.PodSpec) {
	spec.NodeName = ""
	spec.EphemeralContainers = nil // cannot be there from the beginning
	// By the class and the RuntimeClass, which may have changed.
	spec.Priority, spec.PreemptionPolicy, spec.Overhead = nil, nil, nil
	tokens := map[string]bool{}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool {
		given := strings.HasPrefix(v.Name, tokenVolume) && v.Projected != nil
		tokens[v.Name] = given
		return given
	})
	for _, list := range [...][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].VolumeMounts = slices.DeleteFunc(list[i].VolumeMounts, func(m corev1.VolumeMount) bool { return tokens[m.Name] })
		}
	}
}

// tokenVolume begins the name of the volume by which a pod has its account's token.
const tokenVolume = "kube-api-access-"
