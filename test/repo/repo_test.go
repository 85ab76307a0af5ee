// Package repo holds the rules of this repository as tests: which package may
// import which, what is pure, and that everything is documented.
package repo

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "heteroflow.io/heteroflow/"

// floors gives each package its height; a package imports only lower floors.
// A folder stands for all that is below it.
var floors = map[string]int{
	"pkg/gpu":         0,
	"pkg/demand":      1,
	"pkg/topology":    1,
	"pkg/certs":       1,
	"pkg/ledger":      2,
	"pkg/pipeline":    3,
	"pkg/plugins":     4,
	"pkg/tenancy":     4,
	"pkg/gang":        4,
	"pkg/window":      4,
	"pkg/preempt":     4,
	"pkg/queue":       4,
	"pkg/engine":      5,
	"pkg/policy":      5,
	"pkg/apis":        5,
	"pkg/codec":       6,
	"pkg/generated":   6,
	"pkg/metrics":     6,
	"pkg/admission":   7,
	"pkg/kube":        7,
	"pkg/server":      7,
	"pkg/simulate":    7,
	"pkg/telemetry":   7,
	"pkg/probes":      7,
	"pkg/controllers": 8,
	"pkg/agent":       8,
	"cmd":             9,
	"test":            9,
}

// pure packages decide: nothing of Kubernetes, the network or the clock is in
// their whole closure.
var pure = []string{
	"pkg/gpu", "pkg/demand", "pkg/topology", "pkg/certs", "pkg/ledger", "pkg/pipeline", "pkg/plugins", "pkg/tenancy", "pkg/gang",
	"pkg/window", "pkg/preempt", "pkg/queue", "pkg/engine", "pkg/policy",
}

// clients are the packages under pkg/ that may use client-go.
var clients = []string{"pkg/kube", "pkg/generated", "pkg/controllers", "pkg/agent"}

// generated is what tools write, which have no words for the packages they make.
const generated = "pkg/generated/"

type goPackage struct {
	ImportPath, Dir, Name, Doc string
	GoFiles, Imports, Deps     []string
}

func (p goPackage) path() string { return strings.TrimPrefix(p.ImportPath, module) }

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Name,Doc,GoFiles,Imports,Deps", "./...")
	cmd.Dir = "../.."
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list found %d packages only", len(all))
	}
	return all
}

// home returns the folder of the list that holds path, "" if none does.
func home(path string, folders []string) string {
	for _, f := range folders {
		if path == f || strings.HasPrefix(path, f+"/") {
			return f
		}
	}
	return ""
}

func floorOf(t *testing.T, path string) (folder string, floor int) {
	t.Helper()
	for f, n := range floors {
		if home(path, []string{f}) != "" {
			return f, n
		}
	}
	t.Errorf("%s has no floor: give it one", path)
	return "", 0
}

// unit is what counts as one package for the rule that packages of one floor do
// not import each other: a folder's own parts aside.
func unit(path string) string {
	if strings.HasPrefix(path, generated) {
		return generated
	}
	if rest, ok := strings.CutPrefix(path, "pkg/plugins/"); ok {
		return "pkg/plugins/" + strings.SplitN(rest, "/", 2)[0]
	}
	return path
}

func TestFloors(t *testing.T) {
	for _, p := range packages(t) {
		folder, mine := floorOf(t, p.path())
		for _, imp := range p.Imports {
			dep, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			other, theirs := floorOf(t, dep)
			same := mine == 9 || folder == other && (unit(dep) == unit(p.path()) || strings.HasPrefix(dep, p.path()) || strings.HasPrefix(p.path(), dep))
			if theirs >= mine && !same {
				t.Errorf("%s (floor %d) imports %s (floor %d)", p.path(), mine, dep, theirs)
			}
		}
	}
}

func TestPurePackagesAreClosed(t *testing.T) {
	impure := []string{"k8s.io/", "sigs.k8s.io/", "net/http", "os/exec"}
	clock := regexp.MustCompile(`\btime\.(Now|Since|Until)\(`)
	for _, p := range packages(t) {
		if home(p.path(), pure) == "" {
			continue
		}
		for _, dep := range p.Deps {
			for _, bad := range impure {
				if strings.HasPrefix(dep, bad) {
					t.Errorf("%s is pure, but has %s in its closure", p.path(), dep)
				}
			}
		}
		for _, f := range p.GoFiles {
			src, err := os.ReadFile(filepath.Join(p.Dir, f))
			if err != nil {
				t.Fatal(err)
			}
			if clock.Match(src) {
				t.Errorf("%s/%s is pure, but looks at the clock", p.path(), f)
			}
		}
	}
}

func TestWhoMayUseWhat(t *testing.T) {
	for _, p := range packages(t) {
		path := p.path()
		for _, imp := range p.Imports {
			switch {
			case imp == "k8s.io/client-go" || strings.HasPrefix(imp, "k8s.io/client-go/"):
				if strings.HasPrefix(path, "pkg/") && home(path, clients) == "" {
					t.Errorf("%s imports %s", path, imp)
				}
			case strings.HasPrefix(imp, "k8s.io/kubernetes"):
				t.Errorf("%s imports %s: only test/controlplane may, a module of its own", path, imp)
			case strings.HasPrefix(imp, "helm.sh/"):
				t.Errorf("%s imports %s: only test/chart may, a module of its own", path, imp)
			case strings.HasPrefix(imp, module+"test/controlplane"):
				t.Errorf("%s imports %s: its binary is started, nothing of it is linked", path, imp)
			}
		}
		if home(path, []string{"test/oracle"}) != "" {
			for _, dep := range p.Deps {
				if strings.HasPrefix(dep, module+"pkg/") {
					t.Errorf("%s judges the product and must not use %s", path, dep)
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && len(p.Doc) < 40 && !strings.HasPrefix(p.path(), generated) {
			t.Errorf("%s has no package comment that says what it promises", p.path())
		}
		if slices.Contains([]string{"util", "utils", "common", "helpers", "types"}, p.Name) {
			t.Errorf("%s: name a package for the noun it owns", p.path())
		}
	}
}
