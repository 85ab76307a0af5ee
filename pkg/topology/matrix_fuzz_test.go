package topology

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
)

var place = regexp.MustCompile(`^line [1-9][0-9]*, column [1-9][0-9]*: `)

// printed writes the matrix as a tool would.
func printed(m Matrix) string {
	var b strings.Builder
	for _, row := range m.Rows {
		b.WriteString("\t" + row.Name)
	}
	for i, row := range m.Rows {
		b.WriteString("\n" + row.Name)
		for j, link := range row.Links {
			if i == j {
				b.WriteString("\t X ")
			} else {
				b.WriteString("\t" + link.String())
			}
		}
	}
	return b.String()
}

// FuzzParseMatrix: whatever the text, there is an error that says where, or a
// matrix that can be relied on and reads back as itself.
func FuzzParseMatrix(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		f.Add(recorded(f, strings.TrimSuffix(filepath.Base(file), ".txt")))
	}
	f.Add("        GPU0    GPU1    GPU2    NUMA Affinity\nGPU0     X              SYS     0\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMatrix(text)
		if err != nil {
			if !place.MatchString(err.Error()) || len(err.Error()) > 300 {
				t.Errorf("error %q", err)
			}
			return
		}
		checkMatrix(t, m)
		if strings.HasPrefix(m.Rows[0].Name, "card") {
			return
		}
		for i := range m.Rows {
			m.Rows[i].NUMA = gpu.NoNUMA // is not printed
		}
		again, err := ParseMatrix(printed(m))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again); diff != "" {
			t.Errorf("printed and read again (-want +got):\n%s", diff)
		}
	})
}

func checkMatrix(t *testing.T, m Matrix) {
	t.Helper()
	n := len(m.Rows)
	if n < 1 || n > MostCards {
		t.Fatalf("%d rows", n)
	}
	for i, row := range m.Rows {
		if len(row.Links) != n || row.Links[i] != (Link{}) || row.NUMA < gpu.NoNUMA || row.Index < 0 {
			t.Errorf("row %+v of %d", row, n)
		}
		for j := range row.Links {
			if row.Links[j] != m.Rows[j].Links[i] {
				t.Errorf("%d-%d: %v and %v", i, j, row.Links[j], m.Rows[j].Links[i])
			}
		}
	}
}
