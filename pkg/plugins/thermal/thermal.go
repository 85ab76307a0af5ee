// Package thermal is the plugin `thermal`: work goes where it is cool.
//
// As a score it rates a node by the mean temperature of its cards: 100 up to
// fullScoreTemperature (50 degrees Celsius), from there in a straight line to 0 at
// maxMeanTemperature (82). Where the power that cards draw and the most they may draw
// are known, it is the lower of that and 100 x (1 - power/most), the mean over these
// cards. Only the cards count of which a figure is known; a node of which none is
// known is neutral.
//
// As a filter it refuses a node with Overheated whose mean is above
// maxMeanTemperature, where the pod would fit but for that. Single cards that are too
// hot are taken out by the plugin load. What is not known refuses nobody.
package thermal

import (
	"errors"
	"fmt"

	"heteroflow.io/heteroflow/pkg/gpu"
	"heteroflow.io/heteroflow/pkg/ledger"
	"heteroflow.io/heteroflow/pkg/pipeline"
)

// Name is the plugin's name in configuration, metrics and documents.
const Name = "thermal"

// Args is the plugin's part of the policy, in degrees Celsius.
type Args struct {
	// MaxMeanTemperature is the mean above which a node is refused, and at which
	// its score is 0. 1 to 150.
	MaxMeanTemperature int64 `json:"maxMeanTemperature"`
	// FullScoreTemperature is the mean up to which the score is 100. 0 or more, and
	// below MaxMeanTemperature.
	FullScoreTemperature int64 `json:"fullScoreTemperature"`
}

// hottest is more than any card stands.
const hottest = 150

// Validate reports every fault at once.
func (a Args) Validate() error {
	var errs []error
	if a.MaxMeanTemperature < 1 || a.MaxMeanTemperature > hottest {
		errs = append(errs, fmt.Errorf("maxMeanTemperature: %d is outside 1..%d", a.MaxMeanTemperature, hottest))
	}
	if a.FullScoreTemperature < 0 || a.FullScoreTemperature >= a.MaxMeanTemperature {
		errs = append(errs, fmt.Errorf("fullScoreTemperature: %d is not 0 or more and below maxMeanTemperature, %d", a.FullScoreTemperature, a.MaxMeanTemperature))
	}
	return errors.Join(errs...)
}

// Plugin implements pipeline.Filter and pipeline.Score.
type Plugin struct{ Args Args }

var (
	_ pipeline.Filter = Plugin{}
	_ pipeline.Score  = Plugin{}
)

// New reads the plugin's arguments.
func New(args []byte) (Plugin, error) {
	p := Plugin{Args{MaxMeanTemperature: 82, FullScoreTemperature: 50}}
	if err := pipeline.ReadArgs(args, &p.Args); err != nil {
		return p, err
	}
	return p, p.Args.Validate()
}

// Name returns "thermal".
func (Plugin) Name() string { return Name }

// Filter bars the cards of a node that is too hot as a whole.
func (p Plugin) Filter(_ *pipeline.Cycle, n *pipeline.Candidate) pipeline.Verdict {
	sum, of := temperatures(n.Node)
	if most := p.Args.MaxMeanTemperature; sum > most*of {
		// In whole degrees: the mean upwards, and the least that is too much.
		n.BarAll(pipeline.Verdict{Reason: gpu.Overheated, Gauge: gpu.MeanTemperature, Have: (sum + of - 1) / of, Want: most + 1})
	}
	return pipeline.Verdict{}
}

// Score is the lower of what temperature and power make of the node, as far as they
// are known.
func (p Plugin) Score(_ *pipeline.Cycle, n *ledger.Node) float64 {
	cool, measured := p.coolness(n)
	spare, metered := headroom(n)
	switch {
	case measured && metered:
		return min(cool, spare)
	case measured:
		return cool
	case metered:
		return spare
	}
	return pipeline.Neutral
}

// coolness is 0 to 100; false where no temperature is known.
func (p Plugin) coolness(n *ledger.Node) (float64, bool) {
	sum, of := temperatures(n)
	if of == 0 {
		return 0, false
	}
	mean, most, full := float64(sum)/float64(of), float64(p.Args.MaxMeanTemperature), float64(p.Args.FullScoreTemperature)
	return percent((most - mean) / (most - full)), true
}

// temperatures returns the sum of those that are known, and of how many cards.
func temperatures(n *ledger.Node) (sum, of int64) {
	for i := range n.Cards {
		if t := &n.Cards[i].Reading.Temperature; t.Known {
			sum, of = sum+t.Value, of+1
		}
	}
	return sum, of
}

// headroom is what cards may draw beyond what they do, 0 to 100, the mean over those
// of which both is known; false where there are none.
func headroom(n *ledger.Node) (float64, bool) {
	sum, of := 0.0, 0
	for i := range n.Cards {
		r := &n.Cards[i].Reading
		if r.Power.Known && r.PowerLimit.AtLeast(1) {
			sum += percent(1 - float64(r.Power.Value)/float64(r.PowerLimit.Value))
			of++
		}
	}
	if of == 0 {
		return 0, false
	}
	return sum / float64(of), true
}

// percent brings a share to 0..100.
func percent(share float64) float64 { return 100 * min(1, max(0, share)) }
