package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/generated/clientset/versioned"
	"heteroflow.io/heteroflow/test/cluster"
)

// homes are the namespaces of the tenants; asr is of speech by a label.
var homes = []string{"vision-train", "vision-serve", "asr", "payments"}

const speechLabel = `{"metadata":{"labels":{"example.com/team":"speech"}}}`

// found makes the tenants of examples/tenants.yaml and namespaces for them.
func found(ctx context.Context, c *cluster.Cluster) error {
	for _, name := range homes {
		if err := c.Namespace(ctx, name); err != nil {
			return err
		}
	}
	_, err := c.Client.CoreV1().Namespaces().Patch(ctx, "asr", types.MergePatchType, []byte(speechLabel), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	clients, err := versioned.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	tenants, err := exampleTenants(filepath.Join(c.Root(), "examples", "tenants.yaml"))
	if err != nil {
		return err
	}
	for _, t := range tenants {
		if _, err := clients.HeteroflowV1alpha1().Tenants().Create(ctx, t, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create Tenant %s: %w", t.Name, err)
		}
	}
	return nil
}

// exampleTenants reads a file of several documents.
func exampleTenants(path string) ([]*v1alpha1.Tenant, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var tenants []*v1alpha1.Tenant
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return tenants, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		t := &v1alpha1.Tenant{}
		if err := yaml.UnmarshalStrict(document, t); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		tenants = append(tenants, t)
	}
}

// tenantPods want the one card of a model, which vision has first; then vision
// asks for more than its limit of 8 cards.
func tenantPods() []*corev1.Pod {
	on := func(namespace, name, model string, mib int) *corev1.Pod {
		p := shape{name: name, limits: map[string]int{"heteroflow.io/gpu-memory": mib}, annotations: map[string]string{"heteroflow.io/gpu-model": model}}.pod(0)
		p.Namespace, p.Name = namespace, name
		return p
	}
	pods := []*corev1.Pod{
		on("vision-train", "notebook", "L20", 12000),
		on("asr", "decoder", "L20", 12000),
		on("payments", "fraud", "L20", 12000),
	}
	for i := range 9 {
		pods = append(pods, on("vision-serve", fmt.Sprint("serve-", i), "A100", 8000))
	}
	return pods
}

// printKind prints what kubectl shows of all objects of a kind of ours.
func printKind(ctx context.Context, c *cluster.Cluster, resource string, w io.Writer) error {
	clients, err := versioned.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	raw, err := clients.HeteroflowV1alpha1().RESTClient().Get().Resource(resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
	if err != nil {
		return err
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		return fmt.Errorf("read the table of %s: %w", resource, err)
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, column := range table.ColumnDefinitions {
		fmt.Fprintf(out, "%s\t", strings.ToUpper(column.Name))
	}
	for _, row := range table.Rows {
		fmt.Fprintln(out)
		for _, cell := range row.Cells {
			if cell == nil {
				cell = ""
			}
			fmt.Fprintf(out, "%v\t", cell)
		}
	}
	fmt.Fprint(out, "\n\n")
	return out.Flush()
}
