package kube

import (
	"fmt"
	"testing"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

func TestDepartures(t *testing.T) {
	at := func(d time.Duration) time.Time { return start().Add(d) }
	for name, tc := range map[string]struct {
		do    func(*departures)
		since time.Duration
		want  bool
	}{
		"nobody has left":          {func(*departures) {}, 0, false},
		"left at that moment":      {func(d *departures) { d.add("p", at(time.Second)) }, time.Second, true},
		"left after":               {func(d *departures) { d.add("p", at(time.Second)) }, 0, true},
		"left before":              {func(d *departures) { d.add("p", at(0)) }, time.Second, false},
		"another has left":         {func(d *departures) { d.add("q", at(0)) }, 0, false},
		"ended before, gone after": {func(d *departures) { d.add("p", at(0)); d.add("p", at(time.Minute)) }, time.Second, false},
		"came back":                {func(d *departures) { d.add("p", at(0)); d.remove("p") }, 0, false},
		"came back and left again": {func(d *departures) { d.add("p", at(0)); d.remove("p"); d.add("p", at(time.Minute)) }, time.Second, true},
		"remembered long enough":   {func(d *departures) { d.add("p", at(0)); d.add("q", at(leftFor)) }, 0, true},
		"forgotten after a while":  {func(d *departures) { d.add("p", at(0)); d.add("q", at(leftFor+1)) }, 0, false},
		"again, the older forgotten": {func(d *departures) {
			d.add("p", at(0))
			d.remove("p")
			d.add("p", at(time.Minute))
			d.add("q", at(leftFor+1))
		}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			var d departures
			tc.do(&d)
			if got := d.since("p", at(tc.since)); got != tc.want {
				t.Errorf("has left since: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestDeparturesAreBounded(t *testing.T) {
	var d departures
	for i := range 3 * mostLeft {
		pod := gpu.PodID(fmt.Sprint(i))
		d.add(pod, start())
		if i%2 == 0 {
			d.remove(pod)
		}
	}
	if len(d.at) > mostLeft || len(d.order) > mostLeft {
		t.Errorf("%d pods in %d departures are remembered, want %d at most", len(d.at), len(d.order), mostLeft)
	}
	if last := gpu.PodID(fmt.Sprint(3*mostLeft - 1)); !d.since(last, start()) {
		t.Error("the newest has been forgotten")
	}
}
