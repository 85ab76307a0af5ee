package codec

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// What stands between these lines of a document is made here.
const (
	begin = "<!-- Made by `go test ./pkg/codec -run TestDocuments -update`. Do not edit. -->\n"
	end   = "<!-- The end of what is made. -->\n"
)

// The tables of names are made from those in the code, so that they cannot say
// anything else.
func TestDocuments(t *testing.T) {
	documented(t, "../../docs/requests.md", formsTable()+"\n"+plainsTable(), wishesTable(), othersTable())
	documented(t, "../../docs/tenancy.md", quotasTable())
}

// documented compares a document with what these parts make of it.
func documented(t *testing.T, path string, parts ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := remade(t, string(text), parts...)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is out of date, run `make generate` (-want +got):\n%s", path, diff)
	}
}

// remade returns the text with these parts between its marks, in order.
func remade(t *testing.T, text string, parts ...string) string {
	t.Helper()
	var b strings.Builder
	for _, part := range parts {
		before, rest, ok := strings.Cut(text, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("not %d times both lines\n%s%s", len(parts), begin, end)
		}
		b.WriteString(before + begin + "\n" + part + "\n" + end)
		text = after
	}
	return b.String() + text
}

func wishesTable() string {
	var b strings.Builder
	b.WriteString("| key | value | default | other names, read alike | what is not done yet |\n|---|---|---|---|---|\n")
	for i := range wishes {
		w := &wishes[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", w.key, w.value, w.absent, code(w.aliases), w.yet)
	}
	return b.String()
}

func othersTable() string {
	var b strings.Builder
	b.WriteString("| HAMi's annotation | what it is about | refused unless it is empty or |\n|---|---|---|\n")
	for _, o := range others {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", o.key, o.what, code(o.harmless))
	}
	return b.String()
}

func formsTable() string {
	var b strings.Builder
	b.WriteString("| vendor | devices | memory of each | compute of each | what else holds |\n|---|---|---|---|---|\n")
	for i := range forms {
		if f := &forms[i]; f.vendor != "" {
			fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", f.vendor, f.count, f.memoryText(), f.coresText(), f.rulesText())
		}
	}
	return b.String()
}

func (f *form) memoryText() string {
	var texts []string
	switch {
	case f.memory == "":
	case f.unit == 1:
		texts = append(texts, fmt.Sprintf("`%s`: MiB", f.memory))
	default:
		texts = append(texts, fmt.Sprintf("`%s`: units of %d MiB", f.memory, f.unit))
	}
	if f.legal != nil {
		texts = append(texts, "one of "+numbers(f.legal))
	}
	if f.percent != "" {
		texts = append(texts, fmt.Sprintf("or `%s`: percent of the card's usable memory", f.percent))
	}
	return strings.Join(texts, ", ")
}

func (f *form) coresText() string {
	if len(f.cores) == 0 {
		return ""
	}
	unit := "percent"
	if f.full != 0 {
		unit = fmt.Sprintf("of %d a card has", f.full)
	}
	return code(f.cores) + ": " + unit
}

func (f *form) rulesText() string {
	var texts []string
	if f.model != "" {
		texts = append(texts, "cards of the model "+f.model+" only")
	}
	if f.memory == "" && len(f.cores) == 0 {
		texts = append(texts, "whole cards only")
	}
	for _, r := range f.rules {
		texts = append(texts, r.says)
	}
	return strings.Join(texts, "; ")
}

func plainsTable() string {
	var b strings.Builder
	b.WriteString("| vendor | names that are not the scheduler's | what a pod on a node holds by them |\n|---|---|---|\n")
	for _, v := range gpu.Vendors() {
		var counted, other, idle []string
		for _, p := range plains {
			switch {
			case p.vendor != v:
			case p.wholeCards:
				counted = append(counted, p.name)
			case p.idle != "":
				idle = append(idle, p.name)
			default:
				other = append(other, p.name)
			}
		}
		if len(counted) > 0 {
			fmt.Fprintf(&b, "| `%s` | %s | as many cards as it names |\n", v, code(counted))
		}
		if len(other) > 0 {
			fmt.Fprintf(&b, "| `%s` | %s | perhaps any of the vendor's cards there |\n", v, code(other))
		}
		if len(idle) > 0 {
			fmt.Fprintf(&b, "| `%s` | %s | nothing |\n", v, code(idle))
		}
	}
	return b.String()
}

func quotasTable() string {
	var b strings.Builder
	b.WriteString("| name in a ResourceQuota | what is counted | 1 is |\n|---|---|---|\n")
	for _, name := range ManagedResources() {
		f := formOf(name)
		if name == f.percent {
			fmt.Fprintf(&b, "| `%s` | nothing: percentages of unlike cards have no sum | |\n", name)
			continue
		}
		l := f.limit(name, resource.MustParse("1"))
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, countedText(&l), f.unitText(l.Measure))
	}
	return b.String()
}

// countedText says what the limit counts.
func countedText(l *gpu.Limit) string {
	text := map[gpu.Measure]string{gpu.Devices: "devices", gpu.WholeCards: "whole cards", gpu.Memory: "memory", gpu.Compute: "compute"}[l.Measure]
	switch {
	case l.Vendor == "":
		return text + " of any vendor, however asked for"
	case l.Resource == "":
		return fmt.Sprintf("%s of `%s`", text, l.Vendor)
	}
	return fmt.Sprintf("%s of `%s` by `%s`", text, l.Vendor, l.Resource)
}

func (f *form) unitText(m gpu.Measure) string {
	switch m {
	case gpu.Memory:
		return fmt.Sprintf("%d MiB", f.unit)
	case gpu.Compute:
		return fmt.Sprintf("1/%d of a card", cmp.Or(f.full, gpu.MostCores))
	}
	return "1"
}
