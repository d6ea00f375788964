package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
)

// When a sweep pauses itself (reliability.md, failure 33).
const (
	pauseAfterFailed = 5  // this many trials, from the first on, failed, whatever the reason
	pauseWindow      = 20 // or more than half of this many
)

// pauseAfterAlike is how many trials, from the first on, fail for one reason before the
// sweep pauses. Values of parameters hardly cause the first four kinds, but may be the
// cause of an exception: neighbours in a grid then fail alike.
var pauseAfterAlike = map[berth.FailureKind]int{
	berth.FailureBadCommand: 2, berth.FailureBadConfig: 2, berth.FailureNoResult: 2, berth.FailureNoDevice: 2,
	berth.FailureUserError: 3,
}

// FailureStreak counts the ends of a sweep's first trials, to notice that they fail
// whatever their values are. Infeasible trials do not count, because the search
// learns from them; canceled ones do not, because a person wanted them to end.
type FailureStreak struct {
	Ended  int            `json:"ended,omitempty"` // trials that succeeded, were stopped early or failed, up to pauseWindow
	Failed int            `json:"failed,omitempty"`
	Alike  int            `json:"alike,omitempty"` // of them, from the first on, that failed for the reason of Last
	Last   berth.TrialEnd `json:"last,omitzero"`   // the last that failed
	Told   bool           `json:"told,omitempty"`  // the sweep has paused itself: it does so once, because a person has looked since
	Why    string         `json:"why,omitempty"`   // why it is paused now; empty when it is not, or by a person
}

// count takes in the end of a trial.
func (f *FailureStreak) count(end berth.TrialEnd) {
	if f.Told || f.Ended >= pauseWindow || end.State == berth.TrialInfeasible || end.State == berth.TrialCanceled {
		return
	}

	if end.State == berth.TrialFailed {
		if f.Alike == f.Ended && (f.Ended == 0 || f.Last.FailedAlike(end)) {
			f.Alike++
		}

		f.Failed++
		f.Last = end
	}

	f.Ended++
}

// reason says why the sweep should pause; empty = it should not.
func (f *FailureStreak) reason() string {
	enough := pauseAfterAlike[f.Last.Kind]

	switch {
	case f.Told:
		return ""
	case enough > 0 && f.Alike >= enough && f.Alike == f.Ended:
		return fmt.Sprintf("the first %d trials failed for one reason: %s", f.Ended, f.Last.Message)
	case f.Failed >= pauseAfterFailed && f.Failed == f.Ended:
		return fmt.Sprintf("the first %d trials all failed; the last, trial %d: %s", f.Ended, f.Last.Number, f.Last.Message)
	case f.Failed > pauseWindow/2:
		return fmt.Sprintf("%d of the first %d trials failed; the last, trial %d: %s", f.Failed, f.Ended, f.Last.Number, f.Last.Message)
	default:
		return ""
	}
}

// pauseOnStreak pauses the sweep when its first trials say that all will fail.
func (s *sweep) pauseOnStreak(ctx workflow.Context) error {
	why := s.Streak.reason()
	if why == "" || s.Paused || s.ended() || !s.manyLeft() {
		return nil
	}

	why = fmt.Sprintf("paused by Berth: %s; to go on as it is: berth sweep resume %[2]s; to correct it: berth sweep cancel %[2]s, and submit the corrected file",
		why, s.id[:min(len(s.id), berth.DeletePrefix)])
	s.Streak.Told = true
	s.Paused, s.Streak.Why = true, why // before the step: a resume during the step counts

	if err := s.setState(ctx, berth.SweepPaused, why); err != nil || !s.Paused {
		return err
	}

	return s.pauseClock(ctx)
}

// manyLeft reports whether at least as many trials are left as have failed: a pause
// interrupts a person, so it must save as much as was lost.
func (s *sweep) manyLeft() bool {
	switch {
	case s.Ending.State != "": // everything is suggested
		return len(s.Open) >= s.Streak.Failed
	case s.plan.Planned == 0:
		return true
	default:
		return s.plan.Planned-s.finished() >= s.Streak.Failed
	}
}
