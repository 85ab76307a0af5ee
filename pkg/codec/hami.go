package codec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// listed is one card as a device plugin registers it for HAMi, in the words of
// HAMi's JSON (hami-protocol.md A.2). Fields that we do not know are for other
// readers. All that is 0, "" or false is left out there: a card that does not
// say that it is healthy is not.
type listed struct {
	ID      string `json:"id"`
	Index   int64  `json:"index"`
	Count   int64  `json:"count"`  // most containers at once
	Devmem  int64  `json:"devmem"` // MiB, overcommitted already
	Devcore int64  `json:"devcore"`
	Type    string `json:"type"`
	NUMA    int64  `json:"numa"` // 0 also where it is not known
	Health  bool   `json:"health"`
	Mode    string `json:"mode"`

	busID string
}

// mostCompute is all compute of a card at the largest overcommit there is.
const mostCompute = 10 * gpu.MostCores

// fromHAMi reads the registers of all device plugins that work with HAMi, and
// says which vendors have one: vendor -> annotation. None can be left out: the
// cards in one that cannot be read may be those that another plugin counts.
func fromHAMi(node *corev1.Node) (cards []gpu.Card, registered map[gpu.Vendor]string, err error) {
	registered = map[gpu.Vendor]string{}
	for i := range forms {
		f := &forms[i]
		text, ok := node.Annotations[f.register]
		if !ok || f.register == "" {
			continue
		}
		// Each register counts from 0, and so do the runtimes.
		if other := registered[f.vendor]; other != "" && !seenByUUID(f.vendor) {
			return nil, nil, fmt.Errorf("annotation %s: has the same indexes as %s, by which containers are shown these cards; annotate the node with %s",
				f.register, other, AnnotationDevices)
		}
		registered[f.vendor] = f.register
		more, err := f.registered(node, text)
		if err != nil {
			return nil, nil, fmt.Errorf("annotation %s: %w", f.register, err)
		}
		cards = append(cards, more...)
	}
	return cards, registered, nil
}

// registered reads the form's register.
func (f *form) registered(node *corev1.Node, text string) ([]gpu.Card, error) {
	if f.list == nil {
		return nil, fmt.Errorf("is not read; annotate the node with %s", AnnotationDevices)
	}
	cards, err := f.decode(text)
	if err == nil {
		err = named(cards, node, "devices", "id")
	}
	if !runs(node.Status.Allocatable[f.count], cards) {
		// The register is left over. Who is on the cards stays.
		for i := range cards {
			cards[i].Healthy = false
		}
	}
	return cards, err
}

// runs reports whether the plugin that has registered these cards is there, by
// how many of its count kubelet has allocatable. Where there is none kubelet
// passes over what a pod asks for, and starts it without the plugin and without
// any bound. Where a plugin that shares cards has no more of it than there are
// cards, it is another one by the same name, that gives out whole cards.
func runs(allocatable resource.Quantity, cards []gpu.Card) bool {
	shares := int64(0)
	for i := range cards {
		shares += int64(cards[i].MaxSlices)
	}
	n := int64(len(cards))
	return allocatable.Sign() > 0 && (shares <= n || allocatable.CmpInt64(n) > 0)
}

// decode reads the text of the form's register.
func (f *form) decode(text string) ([]gpu.Card, error) {
	list, err := f.list(text)
	if err != nil {
		return nil, err
	}
	if len(list) > mostNodeCards {
		return nil, tooMany(len(list))
	}
	enumerate(list)
	var errs []error
	cards := make([]gpu.Card, len(list))
	for i := range list {
		at := faults{at: fmt.Sprintf("devices[%d].", i)}
		cards[i] = f.card(&list[i], &at)
		errs = append(errs, at.found...)
	}
	return cards, errors.Join(append(errs, distinct(cards, "devices", "id")...)...)
}

func tooMany(n int) error { return fmt.Errorf("devices: %d are more than %d", n, mostNodeCards) }

// enumerate gives cards their places in the list as indexes where none has one.
// All plugins whose source can be read number their cards from 0 on, in the
// order of the list; the 7-field text has no place for it.
func enumerate(list []listed) {
	if slices.ContainsFunc(list, func(d listed) bool { return d.Index != 0 }) {
		return
	}
	for i := range list {
		list[i].Index = int64(i)
	}
}

// card returns the device in our words.
func (f *form) card(d *listed, at *faults) gpu.Card {
	if !cardName(d.ID) {
		at.fault("id", "%q is not 1..%d visible ASCII characters without a comma", d.ID, mostText)
	}
	offered, ok := f.modes[d.Mode]
	if !ok {
		known := slices.Sorted(maps.Keys(f.modes))
		at.fault("mode", "%q is not one of %s", d.Mode, join(slices.DeleteFunc(known, func(m string) bool { return m == "" })))
	}
	least := int64(1)
	if !d.Health {
		least = 0 // as in heteroflow.io/devices, and 0 is left out
	}
	memory := gpu.MiB(at.within("devmem", d.Devmem, least, gpu.MostMemory))
	compute := gpu.Cores(at.within("devcore", cmp.Or(d.Devcore, defaultCores), 1, mostCompute))
	if offered.mode != gpu.ModeSlice {
		compute = gpu.MostCores // of Ascend it is the number of AI cores
	}
	return gpu.Card{
		ID:          gpu.CardID(d.ID),
		Index:       int(at.within("index", d.Index, 0, mostIndex)),
		Vendor:      f.vendor,
		Model:       at.short("type", d.Type),
		Plugin:      string(f.count),
		Memory:      memory,
		Usable:      memory,
		Cores:       min(gpu.MostCores, compute),
		UsableCores: compute,
		MaxSlices:   int(at.within("count", d.Count, least, mostSlices)),
		NUMA:        int(at.within("numa", d.NUMA, gpu.NoNUMA, mostNUMA)),
		PCIBusID:    at.short("bdf", d.busID),
		Healthy:     d.Health,
		Mode:        offered.mode,
		Isolation:   offered.isolation,
	}
}

// listHAMi reads either of HAMi's encodings: JSON, or the text of older plugins.
func listHAMi(text string) ([]listed, error) {
	if !strings.HasPrefix(text, "[") {
		return listText(text)
	}
	var list []listed
	err := openJSON(text, &list)
	return list, err
}

// listText reads "<id>,<count>,<devmem>,<devcore>,<type>,<numa>,<health>:" for
// each card, with ",<index>,<mode>" before the colon or without.
func listText(text string) ([]listed, error) {
	if text == "" {
		return nil, nil // how a plugin without cards writes it
	}
	var errs []error
	items := strings.Split(strings.TrimSuffix(text, ":"), ":")
	if len(items) > mostNodeCards {
		return nil, tooMany(len(items)) // before there is a fault for each
	}
	list := make([]listed, len(items))
	for i, item := range items {
		at := faults{at: fmt.Sprintf("devices[%d]", i)}
		list[i] = listItem(strings.Split(item, ","), &at)
		errs = append(errs, at.found...)
	}
	return list, errors.Join(errs...)
}

func listItem(fields []string, at *faults) (d listed) {
	if len(fields) != 7 && len(fields) != 9 {
		at.fault("", "%d fields are neither 7 nor 9", len(fields))
		return listed{}
	}
	number := func(field, text string) int64 {
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			at.fault("."+field, "%q is not a whole number", text)
		}
		return v
	}
	d = listed{
		ID:      fields[0],
		Count:   number("count", fields[1]),
		Devmem:  number("devmem", fields[2]),
		Devcore: number("devcore", fields[3]),
		Type:    fields[4],
		NUMA:    number("numa", fields[5]),
		Health:  fields[6] == "true",
	}
	if !d.Health && fields[6] != "false" {
		at.fault(".health", "%q is not true or false", fields[6])
	}
	if len(fields) == 9 {
		d.Index, d.Mode = number("index", fields[7]), fields[8]
	}
	return d
}

// listMetax reads the register of MetaX's sgpu plugin, which is JSON of its own.
// HAMi takes its figures over as they are (pkg/device/metax/protocol.go): MiB,
// percent, and as index the place in the list.
func listMetax(text string) ([]listed, error) {
	var own []struct {
		UUID          string `json:"uuid"`
		BDF           string `json:"bdf"`
		Model         string `json:"model"`
		TotalDevCount int64  `json:"totalDevCount"`
		TotalCompute  int64  `json:"totalCompute"`
		TotalVRam     int64  `json:"totalVRam"`
		NUMA          int64  `json:"numa"`
		Healthy       bool   `json:"healthy"`
	}
	if err := openJSON(text, &own); err != nil {
		return nil, err
	}
	list := make([]listed, len(own))
	for i, d := range own {
		list[i] = listed{
			ID: d.UUID, Index: int64(i), Count: d.TotalDevCount, Devmem: d.TotalVRam, Devcore: d.TotalCompute,
			Type: d.Model, NUMA: d.NUMA, Health: d.Healthy, busID: d.BDF,
		}
	}
	return list, nil
}
