package metrics

// Forgery is in what way somebody has written on a pod what only the scheduler
// writes.
type Forgery string

// Early: before the pod was bound. Doubted: it is bound with a record of cards
// that is not believed. Changed: after we had bound it.
const (
	ForgeryEarly   Forgery = "early"
	ForgeryDoubted Forgery = "doubted"
	ForgeryChanged Forgery = "changed"
)

func forgeries() []Forgery { return []Forgery{ForgeryEarly, ForgeryDoubted, ForgeryChanged} }

// Forged counts a forgery that was seen on a pod.
func (m *Metrics) Forged(f Forgery) { m.forgeries.WithLabelValues(string(f)).Inc() }
