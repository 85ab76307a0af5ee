// Package telemetry reads what cards really do, memory in use, utilisation,
// temperature, power, and tells the ledger, out of the way of every request.
//
//	Source (Prometheus, or another) -> samples -> Feeder: newest figure by card, with its age
//	    -> ledger.SetReadings, for nodes of which something that matters has changed
//
// A figure that is too old is taken out again, by the clock and whether or not the
// source answers: decisions look at no clock, and what is not known changes none of
// them. Sources are asked once a period, with a time limit, and ever less often
// while they do not answer.
package telemetry
