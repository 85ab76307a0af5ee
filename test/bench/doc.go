// Package bench measures what the extender costs, in process: a filter with its
// HTTP and JSON, and beside it the same bodies decoded and encoded with no
// decision in between. The difference is the decision. `make bench` runs it.
package bench
