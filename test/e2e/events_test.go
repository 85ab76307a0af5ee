package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// codes are the reasons of the contract, spelled out: none may be renamed.
var codes = strings.Fields(`
	InvalidRequest NodeUnavailable NodeNotRegistered TenantNodeMismatch DeviceTypeMismatch DeviceModelMismatch
	DeviceUnhealthy DeviceCordoned UUIDFiltered NUMAUnsatisfied NVLinkUnsatisfied RDMAUnsupported InsufficientGPUCount
	InsufficientGPUMemory InsufficientGPUCores InsufficientGPUSlots NoTenantEligibleGPU QuotaExceeded TenantInactive
	LoadThresholdExceeded Overheated IsolationUnavailable InsufficientPorts GPUTypeUnavailable GangIncomplete
	HeldForOther PreemptionPending NoSchedulableNodes InsufficientResources LedgerMismatch NotLeader BindConflict`)

var codePattern = regexp.MustCompile(`\b(` + strings.Join(codes, "|") + `)\b`)

// codesIn lists the different codes in a text.
func codesIn(text string) []string {
	found := codePattern.FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// told lists what our scheduler's own events say of a pod. kube-scheduler's are
// FailedScheduling and Scheduled.
func (s *scene) told(pod *corev1.Pod) []string {
	s.Helper()
	l, err := s.Client.CoreV1().Events(pod.Namespace).List(s.ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(pod.UID)).String(),
	})
	s.must("list events", err)
	return texts(l.Items)
}

func texts(events []corev1.Event) []string {
	var all []string
	for _, e := range events {
		if e.Reason != "FailedScheduling" && e.Reason != "Scheduled" {
			all = append(all, fmt.Sprintf("%s: %s", e.Reason, e.Message))
		}
	}
	return all
}

// toldReasons waits until each of the pods has an event of ours with a code.
func (s *scene) toldReasons(pods []corev1.Pod) {
	s.Helper()
	s.eventually("a reason on every waiting pod", func() error {
		l, err := s.Client.CoreV1().Events("").List(s.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		of := map[string][]corev1.Event{}
		for _, e := range l.Items {
			of[string(e.InvolvedObject.UID)] = append(of[string(e.InvolvedObject.UID)], e)
		}
		for i := range pods {
			if text := strings.Join(texts(of[string(pods[i].UID)]), "\n"); len(codesIn(text)) == 0 {
				return fmt.Errorf("pod %s/%s was told %q", pods[i].Namespace, pods[i].Name, text)
			}
		}
		return nil
	})
}
