package oracle

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

const prefix = "heteroflow.io/"

// role says when a container runs.
type role int

const (
	app      role = iota
	ordinary      // init container that ends before the app starts
	sidecar       // init container that runs beside the app
)

// ask is what one container wants of each of its cards.
type ask struct {
	container string
	place     int // among all containers of the pod, init containers first
	role      role
	vendor    string // "" for any
	model     string // part of the card's model; "" for any
	plugin    string // the count by which a device plugin gives it cards; "" if none does
	count     int64
	whole     bool
	memory    int64 // MiB of a slice; the least a whole card must have
	percent   int64 // of the usable memory, instead of memory
	cores     int64
	propCores bool // compute in proportion to memory where none is named
}

// bounds of a request: outside, it is invalid.
const (
	mostCards  = 64
	mostMemory = 1 << 20
	mostShare  = 100
)

// asks reads what all containers of a pod want; an error means that the request
// is invalid, no asks that it is for no card.
func asks(pod *corev1.Pod) ([]ask, error) {
	var all []ask
	place := 0
	for _, list := range []struct {
		init       bool
		containers []corev1.Container
	}{{true, pod.Spec.InitContainers}, {false, pod.Spec.Containers}} {
		for i := range list.containers {
			c := &list.containers[i]
			a, err := askOf(c)
			if err != nil {
				return nil, fmt.Errorf("container %s: %w", c.Name, err)
			}
			a.container, a.place, a.role = c.Name, place, roleOf(c, list.init)
			if place++; a.count > 0 {
				all = append(all, a)
			}
		}
	}
	return all, nil
}

func roleOf(c *corev1.Container, init bool) role {
	switch {
	case !init:
		return app
	case c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways:
		return sidecar
	}
	return ordinary
}

// askOf reads one container's limits. The ask of a container that wants no card
// has count 0.
func askOf(c *corev1.Container) (ask, error) {
	neutral, err := neutralAsk(c)
	if err != nil {
		return ask{}, err
	}
	found := neutral
	for _, n := range vendorNames {
		a, err := vendorAsk(c, n)
		if err != nil {
			return ask{}, err
		}
		if a.count > 0 && found.count > 0 {
			return ask{}, fmt.Errorf("%s: two forms in one container", n.count)
		}
		if a.count > 0 {
			found = a
		}
	}
	return found, nil
}

func neutralAsk(c *corev1.Container) (ask, error) {
	r, err := amounts(c, neutralNames)
	switch {
	case err != nil:
		return ask{}, err
	case r.count > 0 && r.cores > 0:
		return ask{}, fmt.Errorf("%s with %s", neutralNames.cores, neutralNames.count)
	case r.count > 0:
		return ask{count: r.count, whole: true, memory: r.memory}, nil
	case r.memory > 0 || r.cores > 0:
		return ask{count: 1, memory: r.memory, cores: r.cores, propCores: true}, nil
	}
	return ask{}, nil
}

func vendorAsk(c *corev1.Container, n names) (ask, error) {
	r, err := amounts(c, n)
	if err != nil || r == (amountsOf{}) {
		return ask{}, err
	}
	a := ask{vendor: n.vendor, model: n.model, count: max(1, r.count), memory: r.memory, percent: r.percent, cores: r.cores}
	if r.count > 0 || n.always {
		a.plugin = n.count
	}
	allMemory := a.memory == 0 && (a.percent == 0 || a.percent == 100 && r.count > 0)
	a.whole = a.cores == 100 || a.cores == 0 && allMemory
	if err := n.forbids(a, r.count, r.units); err != nil {
		return ask{}, err
	}
	if !a.whole && a.memory == 0 && a.percent == 0 {
		a.percent = 100 // memory absent: all of it
	}
	return a, nil
}

// amountsOf is what one container asks for in one form; 0 is absent.
type amountsOf struct{ count, units, memory, percent, cores int64 }

func amounts(c *corev1.Container, n names) (r amountsOf, err error) {
	unit, full := max(1, n.unit), cmp.Or(n.full, mostShare)
	var alias int64
	for _, line := range []struct {
		name string
		most int64
		into *int64
	}{
		{n.count, mostCards, &r.count}, {n.memory, mostMemory / unit, &r.units}, {n.percent, mostShare, &r.percent},
		{n.cores, full, &r.cores}, {n.coresAlias, full, &alias},
	} {
		if *line.into, err = amount(c, line.name, line.most); err != nil {
			return amountsOf{}, err
		}
	}
	if alias > 0 && r.cores > 0 && alias != r.cores {
		return amountsOf{}, fmt.Errorf("%s: differs from %s", n.coresAlias, n.cores)
	}
	r.memory = r.units * unit
	r.cores = (max(r.cores, alias)*mostShare + full - 1) / full // rounded up
	return r, nil
}

// amount reads a whole number from 0 to most; absent is 0.
func amount(c *corev1.Container, name string, most int64) (int64, error) {
	q, found := c.Resources.Limits[corev1.ResourceName(name)]
	if !found {
		return 0, nil
	}
	v, exact := q.AsInt64()
	if !exact || v < 0 || v > most {
		return 0, fmt.Errorf("%s: %s is outside 0..%d", name, q.String(), most)
	}
	return v, nil
}

// use is what one holder takes of one card.
type use struct {
	memory, cores int64
	slots         int
	exclusive     bool
}

func (u use) plus(v use) use {
	return use{u.memory + v.memory, u.cores + v.cores, u.slots + v.slots, u.exclusive || v.exclusive}
}

func (u use) larger(v use) use {
	return use{max(u.memory, v.memory), max(u.cores, v.cores), max(u.slots, v.slots), u.exclusive || v.exclusive}
}

// on is what one device of the ask takes of card c, to be placed or judged. What is computed is rounded
// down, and is at least 1.
func (a *ask) on(c *card) use {
	if a.whole {
		return use{c.MemoryMiB, 100, 1, true}
	}
	u := use{memory: a.memory, cores: a.cores, slots: 1}
	if a.percent > 0 && u.memory == 0 {
		u.memory = max(1, c.usable*a.percent/100)
	}
	if u.memory == 0 {
		u.memory = max(1, c.usable*a.cores/100)
	}
	if u.cores == 0 && a.propCores {
		u.cores = min(100, max(1, u.memory*100/max(1, c.usable)))
	}
	return u
}
