package codec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// Annotations returns what the Binding of p carries: the record of its cards,
// and for each container the values that its environment is made from.
func Annotations(p gpu.Placement, at time.Time, epoch int64) (map[string]string, error) {
	a := newAllocation(&p, at, epoch)
	text, err := a.encode()
	if err != nil {
		return nil, fmt.Errorf("allocation of pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	all := map[string]string{
		AnnotationAllocation:    text,
		AnnotationEpoch:         strconv.FormatInt(epoch, 10),
		AnnotationHAMiNode:      string(p.Node),
		AnnotationHAMiAllocated: text,
	}
	for i := range p.Grants {
		inject(all, &p.Grants[i], p.Node)
	}
	return all, nil
}

// inject adds the values for one container. There are none for cards that are
// known by number or by size alone: the device plugin picks them, and what we
// wrote would contradict it.
func inject(into map[string]string, g *gpu.Grant, node gpu.NodeID) {
	if slices.ContainsFunc(g.Shares, func(s gpu.Share) bool { return s.Card == countedID(node, s.Vendor, s.Index) }) {
		return
	}
	n := strconv.Itoa(g.Number)
	into[visibleDevices+n] = strings.Join(each(g.Shares, visible), ",")
	if g.Shares[0].Exclusive {
		return
	}
	into[memoryLimit+n] = same(each(g.Shares, func(s gpu.Share) string { return strconv.FormatInt(int64(s.Memory), 10) }))
	if slices.ContainsFunc(g.Shares, func(s gpu.Share) bool { return s.Cores > 0 }) {
		into[coreLimit+n] = same(each(g.Shares, func(s gpu.Share) string { return strconv.FormatInt(int64(s.Cores), 10) }))
	}
}

// visible is the card as its vendor's runtime wants it named.
func visible(s gpu.Share) string {
	if seenByUUID(s.Vendor) {
		return string(s.Card)
	}
	return strconv.Itoa(s.Index)
}

// same returns the one value that all have, or else all of them in the order of
// the cards: shares in percent of unequal cards differ.
func same(values []string) string {
	if len(slices.Compact(slices.Clone(values))) == 1 {
		return values[0]
	}
	return strings.Join(values, ",")
}

func each(shares []gpu.Share, text func(gpu.Share) string) []string {
	all := make([]string, len(shares))
	for i, s := range shares {
		all[i] = text(s)
	}
	return all
}

// Supersede adds to a Binding's annotations an empty value for every value that
// the pod carries from an earlier life: a copy of a bound pod would show its
// container the cards of the original.
func Supersede(added, carried map[string]string) {
	for key := range carried {
		if _, written := added[key]; !written && injected(key) {
			added[key] = ""
		}
	}
}

// injected reports whether a container's environment may be made from the key.
func injected(key string) bool {
	return slices.ContainsFunc(numbered[:], func(prefix string) bool {
		n, ok := strings.CutPrefix(key, prefix)
		return ok && digits(n)
	})
}
