package codec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/policy"
)

// FuzzHAMiText: no panic; what is accepted is as the text says, word for word
// where it decides (health, names), and within bounds.
func FuzzHAMiText(f *testing.F) {
	f.Add(textOfA4000)
	f.Add("DCU-1,4,65520,100,Z100,0,true:DCU-2,4,65520,100,Z100,0,false:")
	f.Add("a,1,9,0,,0,false,7,mig:b,1,9,1000,,-1,true,8,mps")
	f.Add("a,,,,,,,:")
	f.Add(":::")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.HasPrefix(text, "[") {
			return
		}
		cards := inBounds(t, nvidiaRegister, text)
		items := strings.Split(text, ":")
		for i, c := range cards {
			fields := strings.Split(items[i], ",")
			if string(c.ID) != fields[0] || c.Healthy != (fields[6] == "true") || c.Model != fields[4] {
				t.Fatalf("%q became %+v", items[i], c)
			}
		}
	})
}

// FuzzHAMiJSON: no panic; what is accepted is within bounds, and a card is
// healthy only where it says so itself.
func FuzzHAMiJSON(f *testing.F) {
	f.Add(jsonOfA4000)
	f.Add(`[{"id":"a","count":1,"devmem":9,"health":true},{"id":"b","index":1,"count":1}]`)
	f.Add(`[{"id":"a","Health":true,"count":1}]`)
	f.Add(`[{"uuid":"GPU-123","totalDevCount":16,"totalCompute":100,"totalVRam":32768,"healthy":true}]`)
	f.Add(`[null]`)
	f.Fuzz(func(t *testing.T, text string) {
		text = "[" + strings.TrimPrefix(text, "[")
		for key, word := range map[string]string{nvidiaRegister: "health", "metax-tech.com/node-gpu-devices": "healthy"} {
			cards := inBounds(t, key, text)
			var said []map[string]any
			if len(cards) > 0 && json.Unmarshal([]byte(text), &said) != nil {
				t.Fatal("accepted, but is no list of objects")
			}
			for i, c := range cards {
				if c.Healthy != (said[i][word] == true) {
					t.Fatalf("%v became %+v", said[i], c)
				}
			}
		}
	})
}

// inBounds returns the cards of a register, after judging them.
func inBounds(t *testing.T, key, text string) []gpu.Card {
	node := nodeWith(nodeAnnotated(key, text), allocatable("nvidia.com/gpu", "2000000", "metax-tech.com/sgpu", "2000000"))
	facts, err := Facts(node, policy.Default())
	again, errAgain := Facts(node, policy.Default())
	if diff := cmp.Diff(facts, again); diff != "" || (err == nil) != (errAgain == nil) {
		t.Fatalf("read twice: %v, %v (-first +second):\n%s", err, errAgain, diff)
	}
	if err != nil && len(facts.Cards) > 0 {
		t.Fatalf("cards beside %v", err)
	}
	ids, indexes := map[gpu.CardID]bool{}, map[int]bool{}
	for _, c := range facts.Cards {
		switch {
		case c.ID == "" || ids[c.ID] || indexes[c.Index] || c.Index < 0 || c.Plugin == "":
			t.Fatalf("not to be told apart: %+v", c)
		case c.Memory < 0 || c.Healthy && c.Memory < 1 || c.Memory > gpu.MostMemory || c.Usable != c.Memory:
			t.Fatalf("memory of %+v", c)
		case c.Cores < 1 || c.Cores > gpu.MostCores || c.UsableCores < c.Cores || c.UsableCores > mostCompute:
			t.Fatalf("compute of %+v", c)
		case c.MaxSlices < 0 || c.Healthy && c.MaxSlices < 1 || c.MaxSlices > mostSlices || c.NUMA < gpu.NoNUMA || c.NUMA > mostNUMA:
			t.Fatalf("bounds of %+v", c)
		case c.TakesSlices() != (c.Mode == gpu.ModeSlice):
			t.Fatalf("nothing bounds a slice of %+v", c)
		}
		ids[c.ID], indexes[c.Index] = true, true
	}
	return facts.Cards
}
