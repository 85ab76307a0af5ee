package e2e

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strconv"

	"heteroflow.io/heteroflow/test/cluster"
)

// Outcomes count binds of ours by how they ended.
type Outcomes map[string]int

// Binds are all of them.
func (o Outcomes) Binds() (n int) {
	for v := range maps.Values(o) {
		n += v
	}
	return n
}

// Conflicts are those that were not answered with success.
func (o Outcomes) Conflicts() int { return o.Binds() - o["bound"] - o["already"] }

// over reports whether binds that may have bound so many pods are counted.
func (o Outcomes) over(pods int) bool { return o["bound"]+o["already"]+o["unknown"] >= pods }

func (o Outcomes) add(more Outcomes) {
	for how, n := range more {
		o[how] += n
	}
}

var (
	outcomeLine = regexp.MustCompile(`(?m)^heteroflow_bind_outcomes_total\{outcome="([a-z]+)"\} (\d+)$`)
	flightLine  = regexp.MustCompile(`(?m)^heteroflow_bind_in_flight (\d+)$`)
)

// parseOutcomes reads the metrics of an extender; it fails while binds are under
// way.
func parseOutcomes(metrics string) (Outcomes, error) {
	flight := flightLine.FindStringSubmatch(metrics)
	if flight == nil {
		return nil, fmt.Errorf("no line %s", flightLine)
	}
	if flight[1] != "0" {
		return nil, fmt.Errorf("%s binds are under way", flight[1])
	}
	o := Outcomes{}
	for _, m := range outcomeLine.FindAllStringSubmatch(metrics, -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, err
		}
		o[m[1]] = n
	}
	if len(o) == 0 {
		return nil, fmt.Errorf("no line %s", outcomeLine)
	}
	return o, nil
}

// outcomes reads them from the extender's metrics, when the binds of so many
// pods have been answered: the last may be seen bound before that.
func outcomes(ctx context.Context, url string, pods int) (o Outcomes, err error) {
	err = cluster.Eventually(ctx, "all binds to be answered", func(ctx context.Context) error {
		metrics, err := fetch(ctx, url)
		if err != nil {
			return err
		}
		if o, err = parseOutcomes(metrics); err == nil && !o.over(pods) {
			err = fmt.Errorf("%d pods are bound, and the binds counted are %v", pods, o)
		}
		return err
	})
	return o, err
}

func fetch(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, response.Status)
	}
	return string(text), err
}
