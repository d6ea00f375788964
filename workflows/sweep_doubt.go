package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
)

// When a sweep pauses itself (reliability.md, failure 33).
const (
	pauseAfterAlike = 5  // this many trials, from the first on, failed with one kind and none ended otherwise
	pauseWindow     = 20 // or more than half of this many failed
	// pauseLeastLeft is how many trials must be left: a pause should save more than
	// was already lost.
	pauseLeastLeft = pauseAfterAlike
)

// Doubt counts the ends of a sweep's first trials, to notice that they fail
// whatever their values are. Infeasible trials do not count, because the search
// learns from them; canceled ones do not, because a person wanted them to end.
type Doubt struct {
	Ended  int               `json:"ended,omitempty"` // trials that succeeded or failed, up to pauseWindow
	Failed int               `json:"failed,omitempty"`
	Alike  int               `json:"alike,omitempty"` // of them, from the first on, that failed with one kind
	Kind   berth.FailureKind `json:"kind,omitempty"`  // of the last that failed
	Trial  int               `json:"trial,omitempty"` // its number
	Told   bool              `json:"told,omitempty"`  // the sweep has paused itself: it does so once, because a person has looked since
	Why    string            `json:"why,omitempty"`   // why it is paused now; empty when it is not, or by a person
}

// count takes in the end of a trial.
func (d *Doubt) count(end berth.TrialEnd) {
	if d.Told || d.Ended >= pauseWindow || end.State != berth.TrialSucceeded && end.State != berth.TrialFailed {
		return
	}

	if end.State == berth.TrialFailed {
		if d.Alike == d.Ended && (d.Ended == 0 || d.Kind == end.Kind) {
			d.Alike++
		}

		d.Failed++
		d.Kind, d.Trial = end.Kind, end.Number
	}

	d.Ended++
}

// reason says why the sweep should pause, and the user's next step; empty = it
// should not.
func (d *Doubt) reason() string {
	const then = "look at the message and the log of trial %d, then resume the sweep to go on as it is, or cancel it and submit a corrected one"

	switch {
	case d.Told:
		return ""
	case d.Alike >= pauseAfterAlike && d.Alike == d.Ended:
		return fmt.Sprintf("paused by Berth: the first %d trials all failed with %s; "+then, d.Ended, d.Kind, d.Trial)
	case d.Failed > pauseWindow/2:
		return fmt.Sprintf("paused by Berth: %d of the first %d trials failed, the last with %s; "+then, d.Failed, d.Ended, d.Kind, d.Trial)
	default:
		return ""
	}
}

// doubt pauses the sweep when its first trials say that all will fail.
func (s *sweep) doubt(ctx workflow.Context) error {
	why := s.Doubt.reason()
	if why == "" || s.Paused || s.ended() || !s.manyLeft() {
		return nil
	}

	s.Doubt.Told = true
	s.Paused, s.Doubt.Why = true, why // before the step: a resume during the step counts

	if err := s.setState(ctx, berth.SweepPaused, why); err != nil || !s.Paused {
		return err
	}

	return s.pauseClock(ctx)
}

// manyLeft reports whether pauseLeastLeft trials or more have not ended.
func (s *sweep) manyLeft() bool {
	switch {
	case s.Ending.State != "": // everything is suggested
		return len(s.Open) >= pauseLeastLeft
	case s.plan.Planned == 0:
		return true
	default:
		return s.plan.Planned-s.finished() >= pauseLeastLeft
	}
}
