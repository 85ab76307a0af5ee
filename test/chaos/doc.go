// Package chaos has pods come and go while everything around the scheduler goes
// wrong, at random: Bindings that are delayed, dropped, refused, or whose answer
// is lost; watches that are cut or tell old news again; a scheduler that is
// killed. The oracle looks on. In the end, when all is quiet, nothing may be
// oversold, bound by half, lost or leaked.
//
// What is done follows from a seed, which is printed; what comes of it depends on
// timing, as in a cluster.
package chaos
