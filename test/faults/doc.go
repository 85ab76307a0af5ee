// Package faults lets a test decide what becomes of requests on their way: a
// Proxy stands between a client and an API server, or between kube-scheduler and
// the extender, and delays, drops or answers what its rules say, stops a request
// at a step until the test goes on, cuts watches, and lets old events come again.
//
// What no rule is for passes as if the proxy were not there.
package faults
