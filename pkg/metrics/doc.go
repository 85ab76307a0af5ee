// Package metrics holds every metric of the scheduler: its name, its help, its
// labels and their values, in one table (Families) from which docs/metrics.md
// is made.
//
// The pure packages return outcomes; the edges count them here, through methods
// that take typed values, so that no caller spells a name or a label. Figures
// about cards and holds are not counted but read: a collector looks at a frozen
// snapshot of the ledger when it is scraped. Everything is registered on a
// registry of its own; there is no global one.
package metrics
