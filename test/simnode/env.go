package simnode

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// errNotSimulated is what a container whose environment needs more than this
// package has is refused with.
var errNotSimulated = errors.New("not simulated")

// simulatedIP is the address of every node and pod.
const simulatedIP = "192.0.2.10"

// Environment resolves a container's variables as a kubelet does when it starts
// the container: in order, later ones seeing earlier ones.
func Environment(pod *corev1.Pod, container *corev1.Container) (map[string]string, error) {
	if len(container.EnvFrom) > 0 {
		return nil, fmt.Errorf("container %s: envFrom: %w", container.Name, errNotSimulated)
	}
	env := map[string]string{}
	for _, v := range container.Env {
		value, err := resolve(pod, v, env)
		if err != nil {
			return nil, fmt.Errorf("container %s: variable %s: %w", container.Name, v.Name, err)
		}
		env[v.Name] = value
	}
	return env, nil
}

// resolve returns one variable's value. Only literals are expanded: a reference
// inside what the downward API gives stays as it is.
func resolve(pod *corev1.Pod, v corev1.EnvVar, earlier map[string]string) (string, error) {
	switch {
	case v.ValueFrom == nil:
		return expand(v.Value, earlier), nil
	case v.ValueFrom.FieldRef != nil:
		return field(pod, v.ValueFrom.FieldRef.FieldPath)
	default:
		return "", fmt.Errorf("valueFrom other than fieldRef: %w", errNotSimulated)
	}
}

// expand replaces each $(NAME) by the variable's value. $$ stands for one $, so
// $$(NAME) is left as $(NAME); so is a reference to a variable that is not set,
// and a $ before anything else.
func expand(s string, vars map[string]string) string {
	var b strings.Builder
	for {
		at := strings.IndexByte(s, '$')
		if at < 0 || at == len(s)-1 {
			return b.String() + s
		}
		b.WriteString(s[:at])
		text, length := dollar(s[at:], vars)
		b.WriteString(text)
		s = s[at+length:]
	}
}

// dollar returns what the $ at the start of s and what belongs to it stand for,
// and how many bytes that is.
func dollar(s string, vars map[string]string) (text string, length int) {
	if s[1] == '$' {
		return "$", 2
	}
	end := strings.IndexByte(s, ')')
	if s[1] != '(' || end < 0 {
		return s[:2], 2
	}
	whole := s[:end+1]
	if value, known := vars[s[2:end]]; known {
		return value, len(whole)
	}
	return whole, len(whole)
}

// field returns a field of the pod by its downward API path. A label or
// annotation that the pod does not have is empty, as in a kubelet.
func field(pod *corev1.Pod, path string) (string, error) {
	if name, key, ok := subscript(path); ok {
		switch name {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return cmp.Or(pod.Spec.ServiceAccountName, "default"), nil
	case "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs":
		return simulatedIP, nil
	}
	return "", fmt.Errorf("fieldPath %s: %w", path, errNotSimulated)
}

// subscript takes name['key'] apart.
func subscript(path string) (name, key string, ok bool) {
	name, rest, ok := strings.Cut(path, "['")
	key, closed := strings.CutSuffix(rest, "']")
	return name, key, ok && closed
}
