package repo

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"heteroflow.io/heteroflow/pkg/codec"
	"heteroflow.io/heteroflow/pkg/policy"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// One word is folder, configuration name, metric label and the page that the index
// leads to.
func TestPluginsAreNamedAlikeEverywhere(t *testing.T) {
	index := read(t, "docs/plugins.md")
	var folders []string
	for _, p := range packages(t) {
		if rest, ok := strings.CutPrefix(p.path(), "pkg/plugins/"); ok {
			folders = append(folders, rest)
			src := read(t, p.path()+"/"+rest+".go")
			if !strings.Contains(src, "// Package "+rest+" is the plugin `") {
				t.Errorf("%s: its comment does not begin with the plugin's name", p.path())
			}
		}
	}
	for _, name := range policy.PluginNames() {
		if folder := strings.ReplaceAll(name, "-", ""); !slices.Contains(folders, folder) {
			t.Errorf("plugin %s has no folder %s", name, folder)
		}
		page := "plugins/" + name + ".md"
		if !strings.Contains(index, "| ["+name+"]("+page+") |") {
			t.Errorf("docs/plugins.md does not lead to %s", page)
		}
		if !strings.HasPrefix(read(t, "docs/"+page), "# "+name+"\n") {
			t.Errorf("docs/%s does not begin with the plugin's name", page)
		}
	}
	if len(folders) != len(policy.PluginNames()) {
		t.Errorf("%d plugin folders, %d registered", len(folders), len(policy.PluginNames()))
	}
}

// kube-scheduler never sends us a pod that asks for none of the names in its
// configuration: a name that is missing there is a pod let through unchecked.
func TestSchedulerConfigurationNamesEveryResource(t *testing.T) {
	var cfg v1.KubeSchedulerConfiguration
	if err := yaml.UnmarshalStrict([]byte(read(t, "examples/kube-scheduler.yaml")), &cfg); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range cfg.Extenders[0].ManagedResources {
		got = append(got, r.Name)
		if !r.IgnoredByScheduler {
			t.Errorf("%s is not ignoredByScheduler", r.Name)
		}
	}
	var want []string
	for _, name := range codec.ManagedResources() {
		want = append(want, string(name))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("managedResources are %v, the scheduler manages %v", got, want)
	}
}

func TestExamplePolicyIsTheDefault(t *testing.T) {
	got, err := codec.Policy([]byte(read(t, "examples/policy.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(policy.Default(), got); diff != "" {
		t.Errorf("examples/policy.yaml differs from the defaults (-default +example):\n%s", diff)
	}
}

// Every make target that a document names exists, and so does every file.
func TestDocumentsNameOnlyWhatExists(t *testing.T) {
	makefile := read(t, "Makefile")
	docs := documents(t)
	target := regexp.MustCompile("(?m)(?:`|^)make ([a-z][a-z0-9-]*)")
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, path := range docs {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range target.FindAllStringSubmatch(string(b), -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + `:`).MatchString(makefile) {
				t.Errorf("%s names `make %s`, which does not exist", path, m[1])
			}
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
			}
		}
	}
}

// documents are the paths of all documents from here.
func documents(t *testing.T) []string {
	t.Helper()
	all := []string{"../../README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/plugins/*.md"} {
		docs, err := filepath.Glob(pattern)
		if err != nil || len(docs) == 0 {
			t.Fatalf("%s: %v, %v", pattern, docs, err)
		}
		all = append(all, docs...)
	}
	return all
}

// A link to a part of a document leads to a heading of it, as GitHub names them.
func TestDocumentsLinkToHeadings(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]*\.md)?#([^)]+)\)`)
	for _, path := range documents(t) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			to := path
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(path), m[1])
			}
			if text, err := os.ReadFile(to); err != nil || !slices.Contains(anchors(string(text)), m[2]) {
				t.Errorf("%s links to %s#%s, which is not there (%v)", path, m[1], m[2], err)
			}
		}
	}
}

// anchors are the names of a document's headings.
func anchors(text string) (all []string) {
	block := regexp.MustCompile("(?ms)^```.*?^```")
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	linked := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	other := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	for _, m := range heading.FindAllStringSubmatch(block.ReplaceAllString(text, ""), -1) {
		name := other.ReplaceAllString(linked.ReplaceAllString(m[1], "$1"), "")
		all = append(all, strings.ReplaceAll(strings.ToLower(name), " ", "-"))
	}
	return all
}

func TestReadmeHasTheTwoCommands(t *testing.T) {
	readme := read(t, "README.md")
	for _, command := range []string{"make demo", "make test"} {
		if !strings.Contains(readme, command) {
			t.Errorf("README.md does not name %q", command)
		}
	}
	if !strings.Contains(read(t, ".ci/run"), "make test") {
		t.Error(".ci/run does not run the README's test command")
	}
}
