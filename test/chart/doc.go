// Command chart prints what Helm makes of charts/heteroflow, for tests that
// apply it to a control plane:
//
//	chart [-namespace NAME] [-values FILE] [-only NAMES] CHART
//
// Values are checked against the chart's schema, as Helm does. Nothing is
// installed and no cluster is asked: what the chart looks up in one is absent.
// The tests of this package hold the chart to what it promises without a cluster.
package main
