package codec

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Bounds of an inventory, above any machine.
const (
	mostNodeCards = 1024
	mostIndex     = 1 << 16
	mostSlices    = 1024
	mostText      = 256 // of a UUID, a model, a bus address
)

// What an inventory that leaves them out means. Health is not among them: who
// does not say that a card is healthy has not checked.
const (
	defaultCores  = 100
	defaultSlices = 10
)

// devices is the JSON of the annotation heteroflow.io/devices. Fields that we do
// not know are for other readers.
type devices struct {
	Version int      `json:"version"`
	Cards   []device `json:"cards"`
}

type device struct {
	UUID      string `json:"uuid"`
	Index     int64  `json:"index"`
	Vendor    string `json:"vendor"`
	Model     string `json:"model"`
	MemoryMiB int64  `json:"memoryMiB"`
	Cores     *int64 `json:"cores,omitempty"`
	NUMA      *int64 `json:"numa,omitempty"`
	PCIBusID  string `json:"pciBusID"`
	Healthy   bool   `json:"healthy"`
	Mode      string `json:"mode"`
	MaxSlices *int64 `json:"maxSlices,omitempty"`
	Isolation string `json:"isolation"`
	Parent    string `json:"parent"`
	Profile   string `json:"profile"`
}

// fromDevices reads the node agent's annotation.
func fromDevices(node *corev1.Node) (cards []gpu.Card, found bool, err error) {
	text, ok := node.Annotations[AnnotationDevices]
	if !ok {
		return nil, false, nil
	}
	cards, err = decodeDevices(text)
	if err == nil {
		err = named(cards, node, "cards", "uuid")
	}
	if err != nil {
		return nil, true, fmt.Errorf("annotation %s: %w", AnnotationDevices, err)
	}
	return cards, true, nil
}

func decodeDevices(text string) ([]gpu.Card, error) {
	var d devices
	if err := openJSON(text, &d); err != nil {
		return nil, err
	}
	if d.Version != 1 {
		return nil, fmt.Errorf("version: %d is not 1", d.Version)
	}
	if len(d.Cards) > mostNodeCards {
		return nil, fmt.Errorf("cards: %d are more than %d", len(d.Cards), mostNodeCards)
	}
	var errs []error
	cards := make([]gpu.Card, len(d.Cards))
	for i := range d.Cards {
		at := faults{at: fmt.Sprintf("cards[%d].", i)}
		cards[i] = d.Cards[i].card(&at)
		errs = append(errs, at.found...)
	}
	return cards, errors.Join(append(errs, distinct(cards, "cards", "uuid")...)...)
}

// card returns the device in our words.
func (d *device) card(at *faults) gpu.Card {
	vendor, ok := gpu.ParseVendor(d.Vendor)
	if !ok {
		at.fault("vendor", "%q is not one of %s", d.Vendor, join(gpu.Vendors()))
	}
	if !cardName(d.UUID) {
		at.fault("uuid", "%q is not 1..%d visible ASCII characters without a comma", d.UUID, mostText)
	}
	if d.Parent != "" && (!cardName(d.Parent) || d.Parent == d.UUID) {
		at.fault("parent", "%q is not another card's UUID", d.Parent)
	}
	least := int64(1)
	if !d.Healthy {
		least = 0 // a card that has fallen off the bus tells nothing
	}
	return gpu.Card{
		ID:        gpu.CardID(d.UUID),
		Index:     int(at.within("index", d.Index, 0, mostIndex)),
		Vendor:    vendor,
		Model:     at.short("model", d.Model),
		Memory:    gpu.MiB(at.within("memoryMiB", d.MemoryMiB, least, gpu.MostMemory)),
		Cores:     gpu.Cores(at.within("cores", or(d.Cores, defaultCores), 1, gpu.MostCores)),
		MaxSlices: int(at.within("maxSlices", or(d.MaxSlices, defaultSlices), 1, mostSlices)),
		NUMA:      int(at.within("numa", or(d.NUMA, gpu.NoNUMA), gpu.NoNUMA, mostNUMA)),
		PCIBusID:  at.short("pciBusID", d.PCIBusID),
		Healthy:   d.Healthy,
		Mode:      oneOf(at, "mode", d.Mode, gpu.ModeWhole, gpu.ModeSlice, gpu.ModeMIG, gpu.ModeVNPU),
		Isolation: oneOf(at, "isolation", d.Isolation, gpu.IsolationNone, gpu.IsolationHard, gpu.IsolationDriver, gpu.IsolationSoft),
		Parent:    gpu.CardID(d.Parent),
		Profile:   at.short("profile", d.Profile),
	}
}

// faults collects what is wrong with the fields of one object.
type faults struct {
	at    string // put before the field's name
	found []error
}

func (f *faults) fault(field, format string, args ...any) {
	f.found = append(f.found, fmt.Errorf("%s%s: %s", f.at, field, fmt.Sprintf(format, args...)))
}

func (f *faults) within(field string, v, least, most int64) int64 {
	if v < least || v > most {
		f.fault(field, "%d is outside %d..%d", v, least, most)
	}
	return v
}

func (f *faults) short(field, text string) string {
	if len(text) > mostText {
		f.fault(field, "is longer than %d bytes", mostText)
	}
	return text
}

// oneOf reads a word; the first allowed one stands for none.
func oneOf[T ~string](f *faults, field, word string, allowed ...T) T {
	if word == "" {
		return allowed[0]
	}
	if !slices.Contains(allowed, T(word)) {
		f.fault(field, "%q is not one of %s", word, join(allowed))
	}
	return T(word)
}

func or[T any](given *T, otherwise T) T {
	if given == nil {
		return otherwise
	}
	return *given
}

// cardName reports whether a UUID can stand in the comma lists that runtimes
// read.
func cardName(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == ',' {
			return false
		}
	}
	return s != "" && len(s) <= mostText
}

// distinct finds cards that could be taken for one another: by UUID, or by the
// vendor's index, which is what some runtimes are told. Partitions may carry the
// index of the card they are on. The faults name the list and its field.
func distinct(cards []gpu.Card, list, uuid string) (errs []error) {
	type slot struct {
		vendor gpu.Vendor
		index  int
	}
	byID, byIndex := map[gpu.CardID]int{}, map[slot]int{}
	for i := range cards {
		c := &cards[i]
		if j, ok := byID[c.ID]; ok {
			errs = append(errs, fmt.Errorf("%s[%d].%s: %q is that of %[1]s[%[5]d] too", list, i, uuid, c.ID, j))
		}
		byID[c.ID] = i
		if c.Parent != "" {
			continue
		}
		at := slot{c.Vendor, c.Index}
		if j, ok := byIndex[at]; ok {
			errs = append(errs, fmt.Errorf("%s[%d].index: %d is that of %[1]s[%[4]d] too, of the same vendor", list, i, c.Index, j))
		}
		byIndex[at] = i
	}
	return errs
}
