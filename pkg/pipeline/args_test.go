package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadArgs(t *testing.T) {
	type args struct {
		Strict bool `json:"strict"`
		Most   int  `json:"most"`
	}
	tests := map[string]struct {
		text string
		want args
		err  string
	}{
		"nothing":               {"", args{Most: 7}, ""},
		"null":                  {"null", args{Most: 7}, ""},
		"no argument":           {"{}", args{Most: 7}, ""},
		"one":                   {`{"strict":true}`, args{true, 7}, ""},
		"all":                   {`{"strict":true,"most":0}`, args{true, 0}, ""},
		"none of that name":     {`{"strict":true,"least":1}`, args{}, "least: there is no such argument"},
		"in another case":       {`{"Strict":true}`, args{}, "Strict: there is no such argument"},
		"of another type":       {`{"most":"7"}`, args{}, "most: is a string, and not a int"},
		"no whole number":       {`{"most":7.5}`, args{}, "most: is a number 7.5, and not a int"},
		"without a value":       {`{"most":null}`, args{}, "most: null is no value; leave it out"},
		"not an object":         {`7`, args{}, "is not an object"},
		"no JSON":               {`{`, args{}, "is not an object"},
		"more than one of them": {`{} {}`, args{}, "is not an object"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := args{Most: 7}
			err := ReadArgs([]byte(tc.text), &got)
			switch {
			case tc.err == "" && err != nil, tc.err != "" && (err == nil || err.Error() != tc.err):
				t.Errorf("error %v, want %q", err, tc.err)
			case tc.err == "":
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("arguments (-want +got):\n%s", diff)
				}
			}
		})
	}
}
