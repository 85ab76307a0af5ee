package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// Manifests are the chart's files as Helm sends them to the API server, by their
// names under templates/ and crds/, such as rbac.yaml. Files that come to
// nothing under the given values are left out.
type Manifests map[string]string

// Render returns what Helm makes of the chart in that folder.
func Render(ctx context.Context, folder, namespace string, values []byte) (Manifests, error) {
	chart, err := loader.LoadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", folder, err)
	}
	given := map[string]any{}
	if err := yaml.UnmarshalStrict(values, &given); err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	release := common.ReleaseOptions{Name: "heteroflow", Namespace: namespace, Revision: 1, IsInstall: true}
	cluster := common.DefaultCapabilities.Copy()
	if cluster.KubeVersion, err = kubernetes(); err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(chart, given, release, cluster)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Engine{Strict: true}.RenderWithContext(ctx, chart, all)
	if err != nil {
		return nil, err
	}
	m := Manifests{}
	for _, crd := range chart.CRDObjects() {
		m[path.Base(crd.Filename)] = string(crd.File.Data)
	}
	for name, text := range rendered {
		if path.Ext(name) == ".yaml" && strings.TrimSpace(text) != "" {
			m[path.Base(name)] = text
		}
	}
	return m, nil
}

// kubernetes is the version of the cluster that there might be.
func kubernetes() (common.KubeVersion, error) {
	version, err := common.ParseKubeVersion("v1.37.2")
	if err != nil {
		return common.KubeVersion{}, err
	}
	return *version, nil
}

// print writes the named files, or all, each behind a line with its name.
func (m Manifests) print(out io.Writer, names []string) error {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(m))
	}
	for _, name := range names {
		text, found := m[name]
		if !found {
			return fmt.Errorf("%s: not in the chart, or empty under these values; there are %s",
				name, strings.Join(slices.Sorted(maps.Keys(m)), ", "))
		}
		if _, err := fmt.Fprintf(out, "---\n# %s\n%s\n", name, strings.TrimSpace(text)); err != nil {
			return err
		}
	}
	return nil
}
