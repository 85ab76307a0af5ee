package demand

import (
	"testing"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// What makes no difference to packing makes no other shape.
func TestShapesThatAreTheSame(t *testing.T) {
	in := func(container string, number int, role gpu.Role, a gpu.Ask) gpu.Ask {
		a.Container, a.Number, a.Role = container, number, role
		return a
	}
	base := func() *gpu.Request { return request(1000, slice(300), whole(1)) }
	tests := map[string]struct {
		change func(*gpu.Request)
		same   bool
	}{
		"another pod":               {func(r *gpu.Request) { r.Pod, r.Namespace, r.Name, r.Tenant = "u", "n", "p", "t" }, true},
		"main memory":               {func(r *gpu.Request) { r.Memory = 5 }, true},
		"priority and group":        {func(r *gpu.Request) { r.Priority, r.Group = 5, "g" }, true},
		"containers' names":         {func(r *gpu.Request) { r.Asks[0] = in("c", 3, gpu.App, r.Asks[0]) }, true},
		"the order of containers":   {func(r *gpu.Request) { r.Asks[0], r.Asks[1] = r.Asks[1], r.Asks[0] }, true},
		"an init container besides": {func(r *gpu.Request) { r.Asks = append(r.Asks, in("i", 0, gpu.Init, whole(1))) }, true},
		"a sidecar is a container":  {func(r *gpu.Request) { r.Asks[0].Role = gpu.Sidecar }, true},
		"processors":                {func(r *gpu.Request) { r.CPU++ }, false},
		"one MiB":                   {func(r *gpu.Request) { r.Asks[0].Memory++ }, false},
		"compute":                   {func(r *gpu.Request) { r.Asks[0].Cores++ }, false},
		"in proportion":             {func(r *gpu.Request) { r.Asks[0].ProportionalCores = true }, false},
		"one more card":             {func(r *gpu.Request) { r.Asks[1].Count++ }, false},
		"a container's vendor":      {func(r *gpu.Request) { r.Asks[0].Vendor = gpu.Ascend }, false},
		"a container's model":       {func(r *gpu.Request) { r.Asks[0].Model = "A" }, false},
		"a device plugin":           {func(r *gpu.Request) { r.Asks[0].Plugin = "x/y" }, false},
		"the pod's vendor":          {func(r *gpu.Request) { r.Vendor = gpu.Ascend }, false},
		"models":                    {func(r *gpu.Request) { r.Models = []string{"A"} }, false},
		"models it will not have":   {func(r *gpu.Request) { r.NotModels = []string{"A"} }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := base()
			tc.change(r)
			a, b := shapeOf(base()), shapeOf(r)
			if same := a.key() == b.key(); same != tc.same {
				t.Errorf("the same: %v, want %v:\n%s\n%s", same, tc.same, a.key(), b.key())
			}
		})
	}
	a, b := shapeOf(named(base(), "a", "B", "b")), shapeOf(named(base(), "b", "A"))
	if a.key() != b.key() {
		t.Errorf("models in another order and case make %s of %s", b.key(), a.key())
	}
}

// Init containers alone run one after the other.
func TestInitContainersAlone(t *testing.T) {
	r := request(0, whole(1), whole(2))
	r.Asks[0].Role, r.Asks[1].Role = gpu.Init, gpu.Init
	if s := shapeOf(r); len(s.asks) != 1 || s.asks[0].Count != 2 {
		t.Errorf("asks %+v, want the harder one alone", s.asks)
	}
}

func TestTerm(t *testing.T) {
	none := term{memory: never}
	with := func(change func(*gpu.Card)) gpu.Card { c := model("Tesla T4"); change(&c); return c }
	same := func(*gpu.Card) {}
	tests := map[string]struct {
		request *gpu.Request
		card    gpu.Card
		want    term
	}{
		"whole":                        {request(0, whole(2)), with(same), term{full, full, full}},
		"whole of a card in one piece": {request(0, whole(1)), with(func(c *gpu.Card) { c.Mode = gpu.ModeWhole }), term{full, full, full}},
		"whole of a partition":         {request(0, whole(1)), with(func(c *gpu.Card) { c.Mode = gpu.ModeMIG }), none},
		"whole, large enough":          {request(0, gpu.Ask{Count: 1, Whole: true, Memory: 1000}), with(func(c *gpu.Card) { c.Usable = 900 }), term{full, full, full}},
		"whole, too small":             {request(0, gpu.Ask{Count: 1, Whole: true, Memory: 1001}), with(same), none},
		"slice":                        {request(0, slice(470)), with(same), term{470, 470, 470}},
		"slice of the smaller half":    {request(0, slice(250)), with(func(c *gpu.Card) { c.Usable = 500 }), term{500, 250, 250}},
		"slice, rounded down":          {request(0, gpu.Ask{Count: 1, Memory: 2}), with(func(c *gpu.Card) { c.Usable = 3 }), term{666, 0, 1}},
		"slice that is hardly there":   {request(0, gpu.Ask{Count: 1, Memory: 1}), with(func(c *gpu.Card) { c.Usable = 9999 }), term{1, 0, 1}},
		"slice, too large":             {request(0, slice(1001)), with(same), none},
		"slice without compute":        {request(0, gpu.Ask{Count: 1, Memory: 500}), with(same), term{500, 0, 1}},
		"slice in proportion":          {request(0, gpu.Ask{Count: 1, MemoryPercent: 25, ProportionalCores: true}), with(same), term{250, 250, 250}},
		"slice of overcommitted cores": {request(0, slice(500)), with(func(c *gpu.Card) { c.UsableCores = 200 }), term{500, 250, 250}},
		"slice where nothing bounds":   {request(0, slice(500)), with(func(c *gpu.Card) { c.Isolation = gpu.IsolationNone }), none},
		"slice of nothing":             {request(0, slice(500)), with(func(c *gpu.Card) { c.Usable = 0 }), none},
		"of another vendor":            {&gpu.Request{Vendor: gpu.Ascend, Asks: []gpu.Ask{whole(1)}}, with(same), none},
		"a container of another":       {request(0, gpu.Ask{Count: 1, Whole: true, Vendor: gpu.Ascend}), with(same), none},
		"a container's model":          {request(0, gpu.Ask{Count: 1, Whole: true, Model: "t4"}), with(same), term{full, full, full}},
		"a container's other model":    {request(0, gpu.Ask{Count: 1, Whole: true, Model: "P100"}), with(same), none},
		"the model is one of these":    {named(request(0, whole(1)), "P100", "t4"), with(same), term{full, full, full}},
		"the model is none of these":   {named(request(0, whole(1)), "P100"), with(same), none},
		"the model is excluded":        {&gpu.Request{NotModels: []string{"T4"}, Asks: []gpu.Ask{whole(1)}}, with(same), none},
		"a device plugin's card":       {request(0, whole(1)), with(func(c *gpu.Card) { c.Plugin = "nvidia.com/gpu" }), none},
		"asked for by its name":        {request(0, gpu.Ask{Count: 1, Whole: true, Plugin: "nvidia.com/gpu"}), with(func(c *gpu.Card) { c.Plugin = "nvidia.com/gpu" }), term{full, full, full}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := shapeOf(tc.request)
			if got := s.on(&s.asks[0], &tc.card); got != tc.want {
				t.Errorf("term %+v, want %+v", got, tc.want)
			}
		})
	}
}
