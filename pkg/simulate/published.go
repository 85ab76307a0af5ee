package simulate

// Published is what a policy reached by the experiment's own publication: held, in
// percent, when as much had arrived as there is, the mean of the seeds 42 to 51. It is
// false for what was not published.
func Published(trace, policy string) (held float64, ok bool) {
	var at figures3
	if at, ok = published[trace]; !ok {
		return 0, false
	}
	switch policy {
	case "random":
		return at.random, true
	case "bestfit":
		return at.bestFit, true
	case "fgd":
		return at.fgd, true
	}
	return 0, false
}

type figures3 struct{ random, bestFit, fgd float64 }

// published is by trace. It is read only.
var published = map[string]figures3{
	"default":     {86.30, 92.86, 95.23},
	"cpu050":      {89.02, 93.56, 95.00},
	"cpu250":      {80.00, 91.21, 93.20},
	"gpushare40":  {84.86, 91.44, 93.96},
	"gpushare100": {78.90, 84.62, 86.64},
	"gpuspec10":   {86.26, 93.10, 94.66},
	"gpuspec33":   {83.87, 80.39, 87.84},
	"multigpu20":  {86.92, 93.73, 95.53},
	"multigpu50":  {81.28, 95.62, 97.09},
}
