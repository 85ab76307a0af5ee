package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecode(t *testing.T) {
	const stream = `# only a comment
---
apiVersion: v1
kind: Namespace
metadata: {name: a}
---
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: b, namespace: a}
`
	objects, err := decode(strings.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	if diff := cmp.Diff([]string{"Namespace /a", "ServiceAccount a/b"}, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	if objects, err := decode(strings.NewReader("kind: [")); err == nil {
		t.Errorf("decode = %v, want an error", objects)
	}
}
