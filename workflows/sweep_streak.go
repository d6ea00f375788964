package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
)

// When a sweep pauses itself (reliability.md, failure 33).
const (
	pauseAfterFailed = 5  // this many trials, from number 1 on, failed, whatever the reason
	pauseWindow      = 20 // or more than half of the trials up to this number
)

// pauseAfterAlike is how many trials, from number 1 on, fail for one reason before the
// sweep pauses. Values of parameters hardly cause the first four kinds, but may be the
// cause of an exception: neighbours in a grid then fail alike.
var pauseAfterAlike = map[berth.FailureKind]int{
	berth.FailureBadCommand: 2, berth.FailureBadConfig: 2, berth.FailureNoResult: 2, berth.FailureNoDevice: 2,
	berth.FailureUserError: 3,
}

// FailureStreak is how a sweep's first trials ended, to notice that they fail whatever
// their values are. The first are those with the lowest numbers: among trials that run
// at once, failures end first. Infeasible trials do not count, because the search learns
// from them; canceled ones do not, because a person wanted them to end.
type FailureStreak struct {
	Ends map[int]berth.TrialEnd `json:"ends,omitempty"` // by number, up to pauseWindow
	Told bool                   `json:"told,omitempty"` // the sweep has paused itself: it does so once, because a person has looked since
	Why  string                 `json:"why,omitempty"`  // why it is paused now; empty when it is not, or by a person
}

// add takes in the end of a trial.
func (f *FailureStreak) add(end berth.TrialEnd) {
	if f.Told || end.Number > pauseWindow {
		return
	}

	if f.Ends == nil {
		f.Ends = make(map[int]berth.TrialEnd)
	}

	f.Ends[end.Number] = end
}

// failed counts the trials that failed, and returns that with the highest number.
func (f *FailureStreak) failed() (n int, last berth.TrialEnd) {
	for number := 1; number <= pauseWindow; number++ {
		if end := f.Ends[number]; end.State == berth.TrialFailed {
			n++
			last = end
		}
	}

	return n, last
}

// reason says why the sweep should pause; empty = it should not.
func (f *FailureStreak) reason() string {
	if f.Told {
		return ""
	}

	if why := f.allFailed(); why != "" {
		return why
	}

	if n, last := f.failed(); n > pauseWindow/2 {
		return fmt.Sprintf("%d of the first %d trials failed; the last, trial %d: %s", n, last.Number, last.Number, last.Message)
	}

	return ""
}

// allFailed says that all trials failed from the first on; empty = one did not, or too few have ended.
func (f *FailureStreak) allFailed() string {
	var (
		failed int
		last   berth.TrialEnd
	)

	alike := true

	for number := 1; number <= pauseWindow; number++ {
		end := f.Ends[number]

		switch end.State {
		case berth.TrialInfeasible, berth.TrialCanceled:
			continue
		case berth.TrialFailed:
		default: // it did not fail, or has not ended
			return ""
		}

		alike = alike && (failed == 0 || last.FailedAlike(end))
		failed++
		last = end

		switch enough := pauseAfterAlike[last.Kind]; {
		case alike && enough > 0 && failed >= enough:
			return fmt.Sprintf("the first %d trials failed for one reason: %s", failed, last.Message)
		case failed >= pauseAfterFailed:
			return fmt.Sprintf("the first %d trials all failed; the last, trial %d: %s", failed, last.Number, last.Message)
		}
	}

	return ""
}

// pauseOnStreak pauses the sweep when its first trials say that all will fail.
func (s *sweep) pauseOnStreak(ctx workflow.Context) error {
	why := s.Streak.reason()
	if why == "" || s.Paused || s.ended() || !s.manyLeft() {
		return nil
	}

	why = fmt.Sprintf("paused by Berth: %s; to go on as it is: berth sweep resume %[2]s; to correct it: berth sweep cancel %[2]s, and submit the corrected file",
		why, s.id[:min(len(s.id), berth.DeletePrefix)])
	s.Streak.Told, s.Streak.Ends = true, nil
	s.Paused, s.Streak.Why = true, why // before the step: a resume during the step counts

	if err := s.setState(ctx, berth.SweepPaused, why); err != nil || !s.Paused {
		return err
	}

	return s.pauseClock(ctx)
}

// manyLeft reports whether at least as many trials are left as have failed: a pause
// interrupts a person, so it must save as much as was lost.
func (s *sweep) manyLeft() bool {
	failed, _ := s.Streak.failed()

	switch {
	case s.Ending.State != "": // everything is suggested
		return len(s.Open) >= failed
	case s.plan.Planned == 0:
		return true
	default:
		return s.plan.Planned-s.finished() >= failed
	}
}
