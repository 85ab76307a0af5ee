package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// World is what the API server has at one moment.
type World struct {
	Nodes      []corev1.Node
	Pods       []corev1.Pod
	Namespaces []corev1.Namespace
	Quotas     []corev1.ResourceQuota
	Tenants    []Tenant
}

const tenantsPath = "/apis/heteroflow.io/v1alpha1/tenants"

// Read lists everything. The lists are read from the API server's store, not
// from a cache of it, the pods first: so a pod's node is missing only if it is
// gone.
func Read(ctx context.Context, client kubernetes.Interface) (w World, err error) {
	all := metav1.ListOptions{}
	pods, err := client.CoreV1().Pods("").List(ctx, all)
	if err != nil {
		return w, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, all)
	if err != nil {
		return w, err
	}
	namespaces, err := client.CoreV1().Namespaces().List(ctx, all)
	if err != nil {
		return w, err
	}
	quotas, err := client.CoreV1().ResourceQuotas("").List(ctx, all)
	if err != nil {
		return w, err
	}
	w = World{Nodes: nodes.Items, Pods: pods.Items, Namespaces: namespaces.Items, Quotas: quotas.Items}
	w.Tenants, err = readTenants(ctx, client)
	return w, err
}

// readTenants lists the Tenants; there are none where nobody knows the kind.
func readTenants(ctx context.Context, client kubernetes.Interface) ([]Tenant, error) {
	text, err := client.CoreV1().RESTClient().Get().AbsPath(tenantsPath).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list Tenants: %w", err)
	}
	var list struct {
		Items []Tenant `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("list Tenants: %w", err)
	}
	return list.Items, nil
}

// Verify reads the world and checks it.
func Verify(ctx context.Context, client kubernetes.Interface, before ...string) ([]string, error) {
	w, err := Read(ctx, client)
	if err != nil {
		return nil, err
	}
	return w.Check(before...), nil
}

// Check returns what is wrong, in a fixed order; nothing is wrong if it is empty.
//
// before are pods, as namespace/name, that were bound when other rules were in
// force: a group has ended since, a namespace has moved, a limit was lowered.
// They may sit beside each other, and hold what they hold, but nobody else may
// have come to it.
func (w World) Check(before ...string) []string {
	b := newBooks(w)
	for _, pod := range before {
		b.before[pod] = true
	}
	b.enterAll(w.Pods)
	b.balance()
	b.judgeQuotas()
	slices.Sort(b.wrong)
	return b.wrong
}

// Check is World.Check where there is nothing but nodes and pods: each namespace
// is a tenant of its own, and nobody has a quota.
func Check(nodes []corev1.Node, pods []corev1.Pod) []string {
	return World{Nodes: nodes, Pods: pods}.Check()
}
