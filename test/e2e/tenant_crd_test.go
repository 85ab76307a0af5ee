package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heteroflow.io/heteroflow/pkg/apis/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/generated/clientset/versioned"
	typed "heteroflow.io/heteroflow/pkg/generated/clientset/versioned/typed/heteroflow/v1alpha1"
	"heteroflow.io/heteroflow/pkg/generated/informers"
	"heteroflow.io/heteroflow/test/cluster"
)

// TestTenantKind asks the API server what it takes for a Tenant, what it makes of
// it, and what it shows of it.
func TestTenantKind(t *testing.T) {
	s := begin(t, defaults)
	s.StopExtender() // it writes the status too
	s.running = cluster.Extender{}
	s.part("refuses", (*scene).refusesTenants)
	s.part("takes", (*scene).takesTenants)
	s.part("defaults", (*scene).defaultsTenants)
	s.part("status", (*scene).keepsTenantStatusApart)
	s.part("rights", (*scene).letsTheSchedulerWriteStatusAlone)
	s.part("columns", (*scene).showsTenants)
	s.part("watch", (*scene).watchesTenants)
	s.part("example", (*scene).takesTheExample)
}

// tenants is a typed client of an administrator.
func (s *scene) tenants() typed.TenantInterface {
	s.Helper()
	return s.ourKinds().HeteroflowV1alpha1().Tenants()
}

func (s *scene) ourKinds() *versioned.Clientset {
	s.Helper()
	clients, err := versioned.NewForConfig(s.Config)
	s.must("client", err)
	return clients
}

// tryTenant has the API server judge a manifest, strict about fields, and returns
// what it would keep.
func (s *scene) tryTenant(manifest string) (*v1alpha1.Tenant, error) {
	s.Helper()
	made := &v1alpha1.Tenant{}
	err := s.ourKinds().HeteroflowV1alpha1().RESTClient().Post().Resource(v1alpha1.TenantResource).
		Param("dryRun", metav1.DryRunAll).Param("fieldValidation", metav1.FieldValidationStrict).
		SetHeader("Content-Type", "application/yaml").Body([]byte(manifest)).Do(s.ctx).Into(made)
	return made, err
}

// tenantOf is a manifest with that spec, in YAML's flow style.
func tenantOf(name, spec string) string {
	return fmt.Sprintf("apiVersion: heteroflow.io/v1alpha1\nkind: Tenant\nmetadata: {name: %q}\nspec: %s\n", name, spec)
}

// numbered is a list of n names, all different.
func numbered(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	return "[" + strings.Join(names, ", ") + "]"
}

func (s *scene) refusesTenants() {
	const tooMuch = 1<<40 + 1
	long := strings.Repeat("a", 64)
	for name, tc := range map[string]struct{ name, spec, field, words string }{
		"a name that no label can have": {long, "{}", "metadata.name", "must be at most 63 characters"},
		"a namespace that cannot be":    {"t", "{namespaces: {names: [Team_A]}}", "spec.namespaces.names[0]", "should match"},
		"a namespace with an end":       {"t", "{namespaces: {names: [a-]}}", "spec.namespaces.names[0]", "should match"},
		"a namespace without a name":    {"t", "{namespaces: {names: ['']}}", "spec.namespaces.names[0]", "at least 1 char"},
		"a namespace of 64 characters":  {"t", "{namespaces: {names: [" + long + "]}}", "spec.namespaces.names[0]", "may not be more than 63"},
		"one namespace twice":           {"t", "{namespaces: {names: [a, b, a]}}", "spec.namespaces.names[2]", "Duplicate"},
		"1025 namespaces":               {"t", "{namespaces: {names: " + numbered(1025) + "}}", "spec.namespaces.names", "must have at most 1024"},
		"an operator that is none": {"t", "{namespaces: {selector: {matchExpressions: [{key: a, operator: Equals, values: [b]}]}}}",
			"spec.namespaces.selector.matchExpressions", "operator must be In, NotIn, Exists or DoesNotExist"},
		"In without values": {"t", "{namespaces: {selector: {matchExpressions: [{key: a, operator: In}]}}}",
			"spec.namespaces.selector.matchExpressions", "must have values"},
		"Exists with values": {"t", "{namespaces: {selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}}",
			"spec.namespaces.selector.matchExpressions", "must have values"},
		"an expression without a key": {"t", "{namespaces: {selector: {matchExpressions: [{operator: Exists}]}}}",
			"spec.namespaces.selector.matchExpressions[0].key", "Required"},
		"a group of capitals":                 {"t", "{sharingGroups: [A]}", "spec.sharingGroups[0]", "should match"},
		"a group with a dot":                  {"t", "{sharingGroups: [a.b]}", "spec.sharingGroups[0]", "should match"},
		"a group without a name":              {"t", "{sharingGroups: [a, '']}", "spec.sharingGroups[1]", "at least 1 char"},
		"a group of 64 characters":            {"t", "{sharingGroups: [" + long + "]}", "spec.sharingGroups[0]", "may not be more than 63"},
		"one group twice":                     {"t", "{sharingGroups: [a, a]}", "spec.sharingGroups[1]", "Duplicate"},
		"65 groups":                           {"t", "{sharingGroups: " + numbered(65) + "}", "spec.sharingGroups", "must have at most 64"},
		"cards below 0":                       {"t", "{quota: {cards: {limit: -1}}}", "spec.quota.cards.limit", "greater than or equal to 0"},
		"memory below 0":                      {"t", "{quota: {memoryMiB: {guaranteed: -1}}}", "spec.quota.memoryMiB.guaranteed", "greater than or equal to 0"},
		"more compute than there can be":      {"t", fmt.Sprintf("{quota: {cores: {limit: %d}}}", tooMuch), "spec.quota.cores.limit", "less than or equal to 1099511627776"},
		"a guarantee larger than there is":    {"t", fmt.Sprintf("{quota: {cards: {guaranteed: %d}}}", tooMuch), "spec.quota.cards.guaranteed", "less than or equal to 1099511627776"},
		"more cards guaranteed than allowed":  {"t", "{quota: {cards: {guaranteed: 2, limit: 1}}}", "spec.quota.cards.guaranteed", "must not be more than limit"},
		"more memory guaranteed than allowed": {"t", "{quota: {memoryMiB: {guaranteed: 1, limit: 0}}}", "spec.quota.memoryMiB.guaranteed", "must not be more than limit"},
		"more cores guaranteed than allowed":  {"t", "{quota: {cores: {guaranteed: 101, limit: 100}}}", "spec.quota.cores.guaranteed", "must not be more than limit"},
		"half a card":                         {"t", "{quota: {cards: {limit: 0.5}}}", "spec.quota.cards.limit", "must be of type integer"},
		"an amount with a unit":               {"t", "{quota: {memoryMiB: {limit: 80Gi}}}", "spec.quota.memoryMiB.limit", "must be of type integer"},
		"a priority below all":                {"t", "{maxPriority: -1}", "spec.maxPriority", "greater than or equal to 0"},
		"a priority above all":                {"t", "{maxPriority: 101}", "spec.maxPriority", "less than or equal to 100"},
		"no weight":                           {"t", "{weight: 0}", "spec.weight", "greater than or equal to 1"},
		"too much weight":                     {"t", "{weight: 1001}", "spec.weight", "less than or equal to 1000"},
		"a word for active":                   {"t", "{active: 'no'}", "spec.active", "must be of type boolean"},
		"a field that there is not":           {"t", "{quota: {gpus: {limit: 1}}}", "spec.quota.gpus", "unknown field"},
	} {
		s.part(name, func(s *scene) {
			_, err := s.tryTenant(tenantOf(tc.name, tc.spec))
			if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) { // unknown fields are a bad request
				s.Fatalf("%v, want it refused", err)
			}
			for _, word := range []string{tc.field, tc.words} {
				if !strings.Contains(err.Error(), word) {
					s.Errorf("the refusal does not say %q: %v", word, err)
				}
			}
		})
	}
}

// takesTenants are the last that are taken, beside those that are refused.
func (s *scene) takesTenants() {
	for name, manifest := range map[string]string{
		"no spec":             "apiVersion: heteroflow.io/v1alpha1\nkind: Tenant\nmetadata: {name: t}\n",
		"an empty spec":       tenantOf("t", "{}"),
		"a long name":         tenantOf(strings.Repeat("a", 63), "{}"),
		"a name with a dot":   tenantOf("team.a", "{}"),
		"1024 namespaces":     tenantOf("t", "{namespaces: {names: "+numbered(1024)+"}}"),
		"all namespaces":      tenantOf("t", "{namespaces: {selector: {}}}"),
		"every operator":      tenantOf("t", "{namespaces: {selector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [b, c]}, {key: a, operator: NotIn, values: [d]}, {key: a, operator: Exists}, {key: a, operator: DoesNotExist, values: []}]}}}"),
		"64 groups":           tenantOf("t", "{sharingGroups: "+numbered(64)+"}"),
		"nothing at all":      tenantOf("t", "{quota: {cards: {limit: 0}, memoryMiB: {guaranteed: 0, limit: 0}, cores: {}}}"),
		"all that there is":   tenantOf("t", fmt.Sprintf("{quota: {memoryMiB: {guaranteed: %[1]d, limit: %[1]d}}}", int64(1)<<40)),
		"a guarantee alone":   tenantOf("t", "{quota: {cards: {guaranteed: 5}}}"),
		"the lowest numbers":  tenantOf("t", "{maxPriority: 0, weight: 1}"),
		"the highest numbers": tenantOf("t", "{maxPriority: 100, weight: 1000}"),
	} {
		s.part(name, func(s *scene) {
			_, err := s.tryTenant(manifest)
			s.check("create", err)
		})
	}
}

func (s *scene) defaultsTenants() {
	active, weight := true, int32(1)
	want := v1alpha1.TenantSpec{Active: &active, Weight: &weight}
	for name, manifest := range map[string]string{
		"no spec":       "apiVersion: heteroflow.io/v1alpha1\nkind: Tenant\nmetadata: {name: t}\n",
		"an empty spec": tenantOf("t", "{}"),
	} {
		made, err := s.tryTenant(manifest)
		s.must(name, err)
		if diff := cmp.Diff(want, made.Spec); diff != "" {
			s.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	made, err := s.tryTenant(tenantOf("t", "{active: false, weight: 7}"))
	s.must("create", err)
	if *made.Spec.Active || *made.Spec.Weight != 7 {
		s.Errorf("active is %t and weight %d, want what is written", *made.Spec.Active, *made.Spec.Weight)
	}
}

// makeTenant makes one that claims nothing.
func (s *scene) makeTenant(name string) *v1alpha1.Tenant {
	s.Helper()
	made, err := s.tenants().Create(s.ctx, &v1alpha1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     v1alpha1.TenantStatus{NamespaceCount: 99}, // is not the maker's to say
	}, metav1.CreateOptions{})
	s.must("create a Tenant", err)
	return made
}

// holding is a status with everything in it.
func holding(generation int64) v1alpha1.TenantStatus {
	return v1alpha1.TenantStatus{
		ObservedGeneration: generation, NamespaceCount: 2,
		Used: v1alpha1.TenantUsed{Cards: 3, MemoryMiB: 81920, Cores: 130},
		Conditions: []metav1.Condition{{
			Type: v1alpha1.TenantCardsSeparated, Status: metav1.ConditionFalse, Reason: v1alpha1.TenantReasonSharedAcrossBoundary,
			Message: "card GPU-1 of node a", ObservedGeneration: generation, LastTransitionTime: metav1.Unix(1_700_000_000, 0),
		}},
	}
}

// keepsTenantStatusApart: who writes the one cannot write the other.
func (s *scene) keepsTenantStatusApart() {
	made := s.makeTenant("apart")
	if diff := cmp.Diff(v1alpha1.TenantStatus{}, made.Status); diff != "" {
		s.Errorf("a new Tenant's status (-want +got):\n%s", diff)
	}
	both := made.DeepCopy()
	both.Status = holding(made.Generation)
	both.Spec.SharingGroups = []string{"a"}
	after, err := s.tenants().UpdateStatus(s.ctx, both, metav1.UpdateOptions{})
	s.must("write the status", err)
	if diff := cmp.Diff(made.Spec, after.Spec); diff != "" || after.Generation != made.Generation {
		s.Errorf("the spec, with generation %d, is written with the status (-before +after):\n%s", after.Generation, diff)
	}
	if diff := cmp.Diff(both.Status, after.Status); diff != "" {
		s.Errorf("status (-written +read):\n%s", diff)
	}
	both = after.DeepCopy()
	both.Status = v1alpha1.TenantStatus{}
	both.Spec.SharingGroups = []string{"a"}
	after, err = s.tenants().Update(s.ctx, both, metav1.UpdateOptions{})
	s.must("write the spec", err)
	if after.Generation != made.Generation+1 || !slices.Equal(after.Spec.SharingGroups, []string{"a"}) {
		s.Errorf("generation %d and groups %v, want %d and [a]", after.Generation, after.Spec.SharingGroups, made.Generation+1)
	}
	if diff := cmp.Diff(holding(made.Generation), after.Status); diff != "" {
		s.Errorf("the status is written with the spec (-before +after):\n%s", diff)
	}
}

// letsTheSchedulerWriteStatusAlone asks with the rights that the chart gives.
func (s *scene) letsTheSchedulerWriteStatusAlone() {
	url, transport, err := s.Upstream()
	s.must("the scheduler's account", err)
	config, web := &rest.Config{Host: url}, &http.Client{Transport: transport}
	clients, err := versioned.NewForConfigAndClient(config, web)
	s.must("client", err)
	core, err := kubernetes.NewForConfigAndClient(config, web)
	s.must("client", err)
	made, theirs := s.makeTenant("rights"), clients.HeteroflowV1alpha1().Tenants()

	made.Status = holding(made.Generation)
	_, err = theirs.UpdateStatus(s.ctx, made, metav1.UpdateOptions{})
	s.check("update the status", err)
	_, err = theirs.List(s.ctx, metav1.ListOptions{})
	s.check("list tenants", err)
	_, err = core.CoreV1().Namespaces().List(s.ctx, metav1.ListOptions{})
	s.check("list namespaces", err)
	_, err = core.CoreV1().ResourceQuotas("").List(s.ctx, metav1.ListOptions{})
	s.check("list quotas", err)

	_, patched := theirs.Patch(s.ctx, made.Name, types.MergePatchType, []byte(`{"status":{"namespaceCount":3}}`), metav1.PatchOptions{}, "status")
	_, updated := theirs.Update(s.ctx, made, metav1.UpdateOptions{})
	_, created := theirs.Create(s.ctx, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "own"}}, metav1.CreateOptions{})
	_, labelled := core.CoreV1().Namespaces().Patch(s.ctx, s.ns, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	for what, err := range map[string]error{
		"update a Tenant": updated, "patch its status": patched, "create one": created, "label a namespace": labelled,
		"delete a Tenant": theirs.Delete(s.ctx, made.Name, metav1.DeleteOptions{}),
	} {
		if !apierrors.IsForbidden(err) {
			s.Errorf("%s: %v, want it forbidden", what, err)
		}
	}
}

// showsTenants: kubectl prints the table that the API server makes.
func (s *scene) showsTenants() {
	manifest := tenantOf("shown", "{quota: {cards: {limit: 8}}}")
	ours := s.ourKinds().HeteroflowV1alpha1().RESTClient()
	made := &v1alpha1.Tenant{}
	s.must("create", ours.Post().Resource(v1alpha1.TenantResource).SetHeader("Content-Type", "application/yaml").Body([]byte(manifest)).Do(s.ctx).Into(made))
	made.Status = holding(made.Generation)
	_, err := s.tenants().UpdateStatus(s.ctx, made, metav1.UpdateOptions{})
	s.must("write the status", err)

	raw, err := ours.Get().Resource(v1alpha1.TenantResource).Name("shown").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(s.ctx).Raw()
	s.must("read the table", err)
	var table metav1.Table
	s.must("decode the table", json.Unmarshal(raw, &table))
	var columns []string
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, c.Name)
	}
	if diff := cmp.Diff([]string{"Name", "Active", "Namespaces", "Cards", "Card-Limit", "Memory", "Separated", "Age"}, columns); diff != "" {
		s.Errorf("columns (-want +got):\n%s", diff)
	}
	if len(table.Rows) != 1 {
		s.Fatalf("%d rows, want 1", len(table.Rows))
	}
	cells := table.Rows[0].Cells
	if diff := cmp.Diff([]any{"shown", true, 2.0, 3.0, 8.0, 81920.0, "False"}, cells[:len(cells)-1]); diff != "" {
		s.Errorf("cells but the age (-want +got):\n%s", diff)
	}

	resources, err := s.Client.Discovery().ServerResourcesForGroupVersion(v1alpha1.APIVersion)
	s.must("discovery", err)
	at := slices.IndexFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == v1alpha1.TenantResource })
	if at < 0 {
		s.Fatalf("no tenants among %v", resources.APIResources)
	}
	found := resources.APIResources[at]
	if diff := cmp.Diff([]any{[]string{"tn"}, []string{"heteroflow"}, false}, []any{found.ShortNames, found.Categories, found.Namespaced}); diff != "" {
		s.Errorf("short names, categories, namespaced (-want +got):\n%s", diff)
	}
}

// watchesTenants: informers and listers see what there is and what changes.
func (s *scene) watchesTenants() {
	made := s.makeTenant("watched")
	factory := informers.NewSharedInformerFactory(s.ourKinds(), 0)
	tenants := factory.Heteroflow().V1alpha1().Tenants()
	epochs := factory.Heteroflow().V1alpha1().Epochs()
	tenants.Informer()
	epochs.Informer()
	done := make(chan struct{})
	s.Cleanup(func() { close(done); factory.Shutdown() })
	factory.Start(done)
	for kind, synced := range factory.WaitForCacheSync(s.ctx.Done()) {
		if !synced {
			s.Fatalf("%v is not read", kind)
		}
	}
	got, err := tenants.Lister().Get("watched")
	s.must("list", err)
	if diff := cmp.Diff(made, got); diff != "" {
		s.Errorf("Tenant (-made +listed):\n%s", diff)
	}
	s.must("delete", s.tenants().Delete(s.ctx, "watched", metav1.DeleteOptions{}))
	s.eventually("the Tenant to go", func() error {
		if _, err := tenants.Lister().Get("watched"); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("it is listed"))
		}
		return nil
	})
}

// takesTheExample: it is valid, and means what it says of itself.
func (s *scene) takesTheExample() {
	text, err := os.ReadFile(filepath.Join(s.Root(), "examples", "tenants.yaml"))
	s.must("read", err)
	groups := map[string][]string{}
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		manifest, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		s.must("read", err)
		made, err := s.tryTenant(string(manifest))
		s.must("create", err)
		groups[made.Name] = made.Spec.SharingGroups
	}
	want := map[string][]string{"vision": {"research"}, "speech": {"research"}, "payments": nil}
	if diff := cmp.Diff(want, groups); diff != "" {
		s.Errorf("sharing groups (-want +got):\n%s", diff)
	}
}
