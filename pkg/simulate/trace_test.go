package simulate

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const (
	nodeColumns  = "sn,cpu_milli,memory_mib,gpu,model\n"
	podColumns   = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
	shortColumns = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"

	someNodes = nodeColumns + "n0,8000,4096,2,T4\nn1,16000,8192,1,V100M16\n"
	somePods  = podColumns +
		"p2,1000,512,1,500,T4|V100M16,LS,Running,0,9,0\n" +
		"p0,2000,1024,2,1000,,BE,Running,0,9,0\n" +
		"p1,4000,2048,0,0,,BE,Running,0,9,0\n"
)

// files is a folder with one trace, t.
func files(nodes, pods string) fstest.MapFS {
	return fstest.MapFS{
		"openb_node_list_gpu_node.csv": {Data: []byte(nodes)},
		"openb_pod_list_t.csv":         {Data: []byte(pods)},
	}
}

func TestRead(t *testing.T) {
	tests := map[string]struct {
		pods string
		want []Pod
	}{
		"with models, ordered by name": {somePods, []Pod{
			{"p0", Shape{CPU: 2000, Memory: 1024, Cards: 2, Milli: 1000}},
			{"p1", Shape{CPU: 4000, Memory: 2048}},
			{"p2", Shape{CPU: 1000, Memory: 512, Cards: 1, Milli: 500, Models: "T4|V100M16"}},
		}},
		"without models": {shortColumns + "p0,2000,1024,8,1000\n", []Pod{
			{"p0", Shape{CPU: 2000, Memory: 1024, Cards: 8, Milli: 1000}},
		}},
		"what is said of cards that are not asked for is left out": {somePods[:len(podColumns)] + "p0,1,1,0,500,T4,LS,Running,0,9,0\n", []Pod{
			{"p0", Shape{CPU: 1, Memory: 1}},
		}},
		"nobody": {shortColumns, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Read(files(someNodes, tc.pods), "t")
			if err != nil {
				t.Fatal(err)
			}
			want := &Trace{Name: "t", Pods: tc.want, Nodes: []Node{{"n0", 8000, 4096, 2, "T4"}, {"n1", 16000, 8192, 1, "V100M16"}}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("trace (-want +got):\n%s", diff)
			}
			if got.Capacity() != 3000 {
				t.Errorf("Capacity = %d", got.Capacity())
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	const in = "openb_pod_list_t.csv: "
	tests := map[string]struct{ nodes, pods, want string }{
		"a number that is none":      {someNodes, shortColumns + "a,1,1,0,0\nb,1,1,x,0\n", in + `line 3: column num_gpu: "x" is no whole number`},
		"a number out of range":      {someNodes, shortColumns + "a,-1,1,0,0\n", in + "line 2: column cpu_milli: -1 is outside 0..10000000"},
		"more of a card than it has": {someNodes, shortColumns + "a,1,1,1,1001\n", in + "line 2: column gpu_milli: 1001 is outside 1..1000"},
		"parts of several cards":     {someNodes, shortColumns + "a,1,1,2,500\n", in + "line 2: column gpu_milli: 500 is outside 1000..1000"},
		"a card of which nothing":    {someNodes, shortColumns + "a,1,1,1,0\n", in + "line 2: column gpu_milli: 0 is outside 1..1000"},
		"a column that is not there": {someNodes, "name,cpu_milli\na,1\n", in + "line 2: column memory_mib: there is no such column"},
		"a line that is too short":   {someNodes, shortColumns + "a,1\n", in + "record on line 2: wrong number of fields"},
		"nothing":                    {someNodes, "", in + "no line with the names of columns: EOF"},
		"an empty model":             {someNodes, podColumns + "a,1,1,1,500,T4|,LS,Running,0,9,0\n", in + `line 2: column gpu_spec: "T4|" has an empty model`},
		"a node without a model":     {nodeColumns + "n,1,1,1,\n", somePods, "openb_node_list_gpu_node.csv: line 2: column model: is empty"},
		"a node with nine cards":     {nodeColumns + "n,1,1,9,T4\n", somePods, "openb_node_list_gpu_node.csv: line 2: column gpu: 9 is outside 1..8"},
		"a pod that is there twice":  {someNodes, shortColumns + "a,1,1,0,0\na,1,1,0,0\n", in + "pod a is there twice"},
		"a model's name in another": {
			nodeColumns + "n,1,1,1,v100\n", podColumns + "a,1,1,1,500,V100M16,LS,Running,0,9,0\n", in + "model v100 would also mean V100M16",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Read(files(tc.nodes, tc.pods), "t")
			if err == nil || err.Error() != tc.want {
				t.Errorf("Read = %v, want %s", err, tc.want)
			}
		})
	}
}

func TestNames(t *testing.T) {
	there := files(someNodes, somePods)
	there["openb_pod_list_a.csv"] = there["openb_pod_list_t.csv"]
	there["README.md"] = &fstest.MapFile{}
	got, err := Names(there)
	if diff := cmp.Diff([]string{"a", "t"}, got); diff != "" || err != nil {
		t.Errorf("Names = %v, %v", got, err)
	}
	delete(there, "openb_node_list_gpu_node.csv")
	for name, folder := range map[string]fstest.MapFS{"no nodes": there, "nothing": {}} {
		if _, err := Names(folder); !errors.Is(err, ErrNoTrace) {
			t.Errorf("%s: Names = %v, want ErrNoTrace", name, err)
		}
	}
	if _, err := Read(files(someNodes, somePods), "other"); !errors.Is(err, ErrNoTrace) {
		t.Errorf("Read of another = %v, want ErrNoTrace", err)
	}
}
