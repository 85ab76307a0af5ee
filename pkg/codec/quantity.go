package codec

import (
	"fmt"
	"math/big"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"heteroflow.io/heteroflow/pkg/gpu"
)

// measure says what a resource counts and how much of it one container may ask
// for.
type measure struct {
	name corev1.ResourceName
	most int64
	unit gpu.MiB // of a resource that counts memory, else 0
}

// read returns the amount of the resource in a list: 0 where it is absent.
func (m measure) read(list corev1.ResourceList) (int64, error) {
	q, ok := list[m.name]
	if m.name == "" || !ok {
		return 0, nil
	}
	if vast(q) {
		return 0, fmt.Errorf("%s: %s is outside 1..%d%s", m.name, short(q.String()), m.most, m.suffix())
	}
	v, whole := wholeNumber(q)
	switch {
	case !whole:
		return 0, fmt.Errorf("%s: %s is not a whole number", m.name, short(q.String()))
	case v.Sign() < 0 || v.Cmp(big.NewInt(m.most)) > 0:
		return 0, fmt.Errorf("%s: %s is outside 1..%d%s%s", m.name, short(v.String()), m.most, m.suffix(), m.hint(q, v))
	}
	return v.Int64(), nil
}

func (m measure) suffix() string {
	switch m.unit {
	case 0:
		return ""
	case 1:
		return " MiB"
	}
	return fmt.Sprintf(" (in units of %d MiB)", m.unit)
}

// hint helps those who wrote bytes, as one does for main memory. Nobody means
// less than 64 MiB.
func (m measure) hint(q resource.Quantity, v *big.Int) string {
	const least, perMiB = 64 << 20, 1 << 20
	if m.unit == 0 || v.Cmp(big.NewInt(least)) < 0 || !v.IsInt64() {
		return ""
	}
	meant := v.Int64() / perMiB / int64(m.unit)
	if meant < 1 || meant > m.most {
		return ""
	}
	return fmt.Sprintf(" (%s is a quantity in bytes; write %d)", short(q.String()), meant)
}

// vast reports whether a quantity has an exponent that nobody means. It parses
// at once, but takes gigabytes and minutes to compare with anything.
func vast(q resource.Quantity) bool {
	const most = 100
	if _, ok := q.AsInt64(); ok {
		return false
	}
	return q.AsDec().Scale() < -most
}

// wholeNumber returns the exact value of q, false when it has a fraction. A
// quantity may lie beyond int64, where its own methods wrap or round.
func wholeNumber(q resource.Quantity) (*big.Int, bool) {
	if v, ok := q.AsInt64(); ok {
		return big.NewInt(v), true
	}
	d := q.AsDec()
	power := new(big.Int).Exp(big.NewInt(10), new(big.Int).Abs(big.NewInt(int64(d.Scale()))), nil)
	if d.Scale() <= 0 {
		return power.Mul(power, d.UnscaledBig()), true
	}
	v, fraction := new(big.Int).QuoRem(d.UnscaledBig(), power, new(big.Int))
	return v, fraction.Sign() == 0
}

// mostCounted is where figures that are only added up end: far above any node,
// and so far below int64 that a cluster's sum does not wrap.
const mostCounted = 1 << 53

// milli and value return a quantity of a node or a pod, rounded up, kept within
// 0..mostCounted.
func milli(q resource.Quantity) int64 { return counted(q, resource.Milli) }

func value(q resource.Quantity) int64 { return counted(q, 0) }

func counted(q resource.Quantity, scale resource.Scale) int64 {
	switch {
	case q.Sign() <= 0:
		return 0
	case q.Cmp(*resource.NewScaledQuantity(mostCounted, scale)) >= 0:
		return mostCounted
	}
	return q.ScaledValue(scale)
}
