package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"heteroflow.io/heteroflow/test/simnode"
)

// TestExamples takes each pod of examples/ as a user would: first on trial, with
// the API server strict about fields, then in earnest. All run, but for the one
// that says of itself that it cannot.
func TestExamples(t *testing.T) {
	s := begin(t, defaults)
	s.admit()
	s.add(ofEveryVendor()...)
	pods := s.examples()
	for _, p := range pods {
		s.part(p.Name, func(s *scene) {
			trial := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
			_, err := s.Client.CoreV1().Pods(s.ns).Create(s.ctx, p.DeepCopy(), trial)
			s.must("create on trial", err)
			s.create(p)
			if p.Name == "cannot-fit" {
				s.toldReasons([]corev1.Pod{*s.pod(p.Name)})
				return
			}
			vendor, _ := strings.CutPrefix(s.runs(p.Name).Spec.NodeName, "examples-")
			if _, of := vendorsWithCards[p.Name]; of && vendor != p.Name {
				s.Errorf("it runs on a node of %s", vendor)
			}
		})
	}
	s.verify()
}

// examples reads the pods of examples/ and of the folders in it.
func (s *scene) examples() (pods []*corev1.Pod) {
	s.Helper()
	root := filepath.Join(s.Root(), "examples")
	s.must("read examples", filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(text, &kind); err != nil || kind.Kind != "Pod" {
			return nil // a configuration, perhaps of several documents
		}
		pod := &corev1.Pod{}
		if err := yaml.UnmarshalStrict(text, pod); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		pods = append(pods, pod)
		return nil
	}))
	for vendor := range vendorsWithCards {
		if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Name == vendor || vendor == "nvidia" && p.Name == "vendor-form" }) {
			s.Errorf("there is no example of %s", vendor)
		}
	}
	return pods
}

// vendorsWithCards are all vendors, with a model of each and its memory in MiB.
var vendorsWithCards = map[string]struct {
	model  string
	memory int64
}{
	"musa":      {"MTT-S4000", 49152},
	"hygon":     {"K100-AI", 65520},
	"cambricon": {"MLU370-X8", 49152},
	"biren":     {"BR104P", 32768},
	"ascend":    {"910B3", 65536},
	"kunlun":    {"P800", 98304},
	"iluvatar":  {"MR-V100", 32768},
	"nvidia":    {"NVIDIA-A100-SXM4-80GB", 81920},
	"metax":     {"MXC500", 65536},
	"enflame":   {"S60", 49152},
}

// ofEveryVendor are ten nodes, one of each vendor, with cards for all examples.
func ofEveryVendor() (specs []simnode.Spec) {
	for vendor, card := range vendorsWithCards {
		name := "examples-" + vendor
		specs = append(specs, simnode.Spec{Name: name, Cards: simnode.Cards(name, 16, vendor, card.model, card.memory)})
	}
	return specs
}
