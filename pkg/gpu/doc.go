// Package gpu holds the words that every other package speaks: cards, requests,
// placements, reasons, and the units they are counted in.
//
// It knows nothing of Kubernetes and decides nothing about clusters. Values are
// checked where they enter the program (package codec); here they are right.
// Nothing in this package is shared or locked: everything is a plain value.
package gpu
