package admission

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// operation is one of a JSON patch (RFC 6902). Patches are made by hand, since a
// pod that was decoded and encoded again would lose the fields that we do not
// know.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patch collects what is to be changed of a pod, which itself stays as it is.
type patch struct {
	pod        *corev1.Pod
	operations []operation
	placed     bool // there is a place for annotations, which the pod has not
}

// add sets the value at a path, whatever stands there.
func (p *patch) add(value any, path ...string) {
	p.operations = append(p.operations, operation{"add", pointer(path), &value})
}

func (p *patch) remove(path ...string) {
	p.operations = append(p.operations, operation{Op: "remove", Path: pointer(path)})
}

// annotate sets an annotation, and makes the place for it where there is none.
func (p *patch) annotate(key, value string) {
	if before, ok := p.pod.Annotations[key]; !ok || before != value {
		p.mark(key, value)
	}
}

// mark sets an annotation whatever it was, also where it has been taken off before.
// Where there are none it makes the place for them, once.
func (p *patch) mark(key, value string) {
	if len(p.pod.Annotations) == 0 && !p.placed {
		p.add(map[string]string{key: value}, "metadata", "annotations")
		p.placed = true
		return
	}
	p.add(value, "metadata", "annotations", key)
}

// pointer is the path as RFC 6901 writes it.
func pointer(path []string) string {
	escaped := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, step := range path {
		b.WriteString("/" + escaped.Replace(step))
	}
	return b.String()
}
