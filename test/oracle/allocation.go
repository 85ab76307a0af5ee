package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	allocationAnnotation = prefix + "allocation"
	epochAnnotation      = prefix + "epoch"
	numbersAnnotation    = prefix + "containers"
	boundByLabel         = prefix + "bound-by"
)

// allocation is the contract's record of what a bound pod has got. The field
// names are spelled as the contract spells them.
type allocation struct {
	Version    int       `json:"version"`
	Tenant     string    `json:"tenant"`
	BoundAt    time.Time `json:"boundAt"`
	Epoch      int64     `json:"epoch"`
	Containers []grant   `json:"containers"`
}

type grant struct {
	Name  string  `json:"name"`
	Init  bool    `json:"init"`
	Cards []share `json:"cards"`
}

type share struct {
	Vendor    string `json:"vendor"`
	UUID      string `json:"uuid"`
	Index     int    `json:"index"`
	MemoryMiB int64  `json:"memoryMiB"`
	Cores     int64  `json:"cores"`
	Exclusive bool   `json:"exclusive"`
	Isolation string `json:"isolation"`
}

func (s share) use() use { return use{s.MemoryMiB, s.Cores, 1, s.Exclusive} }

// decode reads an allocation and refuses what the contract does not name.
func decode(text string) (allocation, error) {
	var a allocation
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return a, err
	}
	if a.Version != 1 {
		return a, fmt.Errorf("version %d", a.Version)
	}
	return a, nil
}

// marks returns the keys on a pod that only the scheduler writes, in order.
func marks(pod *corev1.Pod) []string {
	var keys []string
	for key := range maps.Keys(pod.Annotations) {
		for _, ours := range []string{allocationAnnotation, epochAnnotation, visiblePrefix, memoryPrefix, coresPrefix} {
			if strings.HasPrefix(key, ours) {
				keys = append(keys, key)
			}
		}
	}
	if _, found := pod.Labels[boundByLabel]; found {
		keys = append(keys, boundByLabel)
	}
	slices.Sort(keys)
	return keys
}

// numbers returns the n of each asking container's own annotations: as
// recorded on the pod, else its place among the containers.
func numbers(pod *corev1.Pod, wanted []ask) (map[string]int, error) {
	n := map[string]int{}
	for _, a := range wanted {
		n[a.container] = a.place
	}
	text, found := pod.Annotations[numbersAnnotation]
	if !found {
		return n, nil
	}
	recorded := map[string]int{}
	if err := json.Unmarshal([]byte(text), &recorded); err != nil {
		return nil, fmt.Errorf("%s: %w", numbersAnnotation, err)
	}
	for name := range n {
		if _, found := recorded[name]; !found {
			return nil, fmt.Errorf("%s does not name container %s", numbersAnnotation, name)
		}
	}
	return recorded, nil
}
