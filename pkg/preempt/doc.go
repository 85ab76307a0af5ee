// Package preempt decides who is ended so that another can run: the fewest, never in
// vain. It is pure: what it goes by is handed to it, and it changes nothing.
package preempt
