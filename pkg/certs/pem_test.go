package certs

import (
	"bytes"
	"encoding/pem"
	"maps"
	"strings"
	"testing"
	"time"
)

func filesOf(t testing.TB, s Set) map[string][]byte {
	t.Helper()
	files, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// two is a set in the middle of a change of authorities.
func two(t testing.TB) Set {
	t.Helper()
	return renewed(t, renewed(t, Set{}, start), start.Add(244*day))
}

func TestFilesAndBack(t *testing.T) {
	for name, s := range map[string]Set{"one authority": renewed(t, Set{}, start), "two": two(t)} {
		got, err := Parse(filesOf(t, s))
		if err != nil || !got.Equal(s) {
			t.Errorf("%s: read back %v, equal %t", name, err, got.Equal(s))
		}
		if _, changed, err := Renew(got, nil, s.leaf.made()); err != nil || changed {
			t.Errorf("%s: read back, it has to be renewed (%v)", name, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	s, other := two(t), renewed(t, Set{}, start)
	join := func(texts ...[]byte) []byte { return bytes.Join(texts, nil) }
	good, foreign := filesOf(t, s), filesOf(t, other)
	tests := map[string]struct {
		change map[string][]byte
		want   string
	}{
		"no authorities":             {map[string][]byte{"ca.crt": nil}, "ca.crt: is missing or empty"},
		"no signers":                 {map[string][]byte{"ca.key": []byte(" \n")}, "ca.key: is missing or empty"},
		"no leaf":                    {map[string][]byte{"tls.crt": nil}, "tls.crt: is missing or empty"},
		"no key":                     {map[string][]byte{"tls.key": nil}, "tls.key: is missing or empty"},
		"no PEM":                     {map[string][]byte{"ca.crt": []byte("hello")}, "ca.crt: is not PEM"},
		"text after it":              {map[string][]byte{"ca.crt": join(good["ca.crt"], []byte("hello"))}, "ca.crt: is not PEM"},
		"half":                       {map[string][]byte{"tls.crt": good["tls.crt"][:200]}, "tls.crt: is not PEM"},
		"a key for a certificate":    {map[string][]byte{"tls.crt": good["tls.key"]}, "tls.crt: is not PEM"},
		"not a certificate":          {map[string][]byte{"tls.crt": pem.EncodeToMemory(&pem.Block{Type: certBlock, Bytes: []byte{1}})}, "tls.crt: x509"},
		"not a key":                  {map[string][]byte{"tls.key": pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: []byte{1}})}, "tls.key: "},
		"two leaves":                 {map[string][]byte{"tls.crt": join(good["tls.crt"], good["tls.crt"])}, "tls.crt, tls.key: are not one"},
		"another leaf's key":         {map[string][]byte{"tls.key": foreign["tls.key"]}, "tls.crt, tls.key: are not one"},
		"leaf of another authority":  {map[string][]byte{"tls.crt": foreign["tls.crt"], "tls.key": foreign["tls.key"]}, "tls.crt: is of no authority in ca.crt"},
		"key of another authority":   {map[string][]byte{"ca.key": foreign["ca.key"]}, "ca.key: has a key of no authority in ca.crt"},
		"a leaf for an authority":    {map[string][]byte{"ca.crt": join(good["ca.crt"], good["tls.crt"])}, `ca.crt: "heteroflow-scheduler" is no authority`},
		"authority of the leaf gone": {map[string][]byte{"ca.crt": foreign["ca.crt"], "ca.key": foreign["ca.key"]}, "tls.crt: is of no authority"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(good)
			maps.Copy(files, tc.change)
			if _, err := Parse(files); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Parse = %v, want %q", err, tc.want)
			}
		})
	}
}

// An authority whose key has been taken away is trusted still, and another one is
// made to sign.
func TestAuthorityWithoutItsKey(t *testing.T) {
	s := two(t)
	files := filesOf(t, s)
	first, _ := pem.Decode(files["ca.key"])
	files["ca.key"] = pem.EncodeToMemory(first)
	got, err := Parse(files)
	if err != nil {
		t.Fatal(err)
	}
	now := start.Add(244 * day)
	if r := renewed(t, got, now); len(r.authorities) != 3 || !same(r.leaf, s.leaf) {
		t.Errorf("%d authorities, want the two and one that can sign", len(r.authorities))
	}
}

func TestBundle(t *testing.T) {
	old, s := renewed(t, Set{}, start), renewed(t, Set{}, start.Add(day))
	young, grown := start.Add(2*day-time.Minute), start.Add(2*day)
	was, is := bundle(old.authorities), bundle(s.authorities)
	both := append(bytes.Clone(is), was...)
	tests := map[string]struct {
		found  []byte
		now    time.Time
		others []Set
		want   []byte
	}{
		"nothing yet":                   {nil, young, nil, is},
		"a place to fill in":            {[]byte("\n"), young, nil, is},
		"as it is":                      {is, young, nil, is},
		"somebody may show the old":     {was, young, nil, both},
		"the old is in it twice":        {append(bytes.Clone(was), was...), young, nil, both},
		"both":                          {both, young, nil, both},
		"nobody shows the old":          {both, grown, nil, is},
		"this replica shows it":         {is, grown, []Set{old}, both},
		"rubbish":                       {[]byte("hello"), young, nil, is},
		"a leaf":                        {filesOf(t, old)["tls.crt"], young, nil, is},
		"the old one has expired":       {bundle(renewed(t, Set{}, start.Add(-400*day)).authorities), young, nil, is},
		"the zero set adds nothing":     {nil, young, []Set{{}}, is},
		"half of what somebody put in":  {was[:100], young, nil, is},
		"rubbish between what is right": {append(append(bytes.Clone(was), "x\n"...), is...), young, nil, both},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Bundle(tc.found, tc.now, s, tc.others...)
			if !bytes.Equal(got, tc.want) {
				t.Errorf("bundle\n%swant\n%s", got, tc.want)
			}
			if again := Bundle(got, tc.now, s, tc.others...); !bytes.Equal(again, got) {
				t.Error("a second time it is another one")
			}
		})
	}
}

// FuzzParse: whatever can be read can be written, and reads as the same. Anything
// else would have replicas write the Secret for ever.
func FuzzParse(f *testing.F) {
	for _, s := range []Set{renewed(f, Set{}, start), two(f)} {
		files := filesOf(f, s)
		f.Add(files["ca.crt"], files["ca.key"], files["tls.crt"], files["tls.key"])
	}
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte{}, []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, ca, caKey, leaf, key []byte) {
		s, err := Parse(map[string][]byte{"ca.crt": ca, "ca.key": caKey, "tls.crt": leaf, "tls.key": key})
		if err != nil {
			return
		}
		again, err := Parse(filesOf(t, s))
		if err != nil || !again.Equal(s) {
			t.Errorf("read back %v, equal %t", err, again.Equal(s))
		}
	})
}
