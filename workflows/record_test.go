//go:build nightly

package workflows_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/workflows"
)

var record = flag.Bool("record", false, "write the histories of TestRecordHistories to testdata")

// TestRecordHistories plays the scenes of the histories in testdata. Each
// history has the content that its name promises and replays; with -record it
// goes to testdata (scripts/record-histories).
func TestRecordHistories(t *testing.T) { //nolint:tparallel // see its subtests
	t.Parallel()

	c := recordingServer(t)

	for name, play := range map[string]func(t *testing.T, s *scene){ //nolint:paralleltest // one after the other, so that none is late for the other's load
		"outcomes": playOutcomes, "given-back": playGivenBack, "canceled": playCanceled, "unheld": playUnheld, "stopped": playStopped,
		"paused": playPaused, "paused-itself": playPausedItself, "looks-again": playLooksAgain, "continued": playContinued,
		"max-duration": playMaxDuration, "passed-on": playPassedOn, "capped": playCapped,
	} {
		t.Run(name, func(t *testing.T) {
			play(t, newScene(c, name))
		})
	}
}

// keep checks the history of a workflow and, with -record, stores it under the
// newest version of its name, if that is not there yet.
func (s *scene) keep(t *testing.T, name, workflowID, runID string) {
	t.Helper()

	name = newest(name)
	require.NotEmpty(t, name, "say in contents what this history contains")

	h, err := s.history(t.Context(), workflowID, runID)
	require.NoError(t, err)
	replay(t, name, h)

	path := filepath.Join("testdata", name+".json.gz")
	if _, err := os.Stat(path); *record && err != nil {
		writeHistory(t, path, h)
	}
}

// newest is the name in contents of a scene's newest version; empty = there is none.
func newest(scene string) (name string) {
	for n := range contents {
		if _, of, _ := strings.Cut(n, "-"); of == scene {
			name = max(name, n)
		}
	}

	return name
}

func (s *scene) keepSweep(t *testing.T, name string) {
	t.Helper()
	s.keep(t, "sweep-"+name, workflows.SweepWorkflowID(s.sweepID), "")
}

func (s *scene) keepTrial(t *testing.T, name string, number int) {
	t.Helper()
	s.keep(t, "trial-"+name, s.trial(number), "")
}

func (s *scene) keepProbe(t *testing.T, name string) {
	t.Helper()
	s.keep(t, "probe-"+name, workflows.ProbeWorkflowID(s.name), "")
}

// playOutcomes lets each trial end in another way.
func playOutcomes(t *testing.T, s *scene) {
	t.Helper()

	const failed, outOfMemory, infeasible, impossible, lost, refused = 1, 2, 3, 4, 5, 6

	s.total = 6
	s.brief = func(trial int) activities.TrialBrief {
		b := s.standard()
		if trial == lost {
			b.HostPatience = berth.Duration(time.Second)
		}

		return b
	}
	s.places = func(in activities.PlaceInput) (berth.RequestState, string) {
		switch {
		case in.Trial == impossible:
			return berth.RequestImpossible, ""
		case in.Trial == lost && in.Number == 1:
			return berth.RequestPlaced, lostHost
		default:
			return berth.RequestPlaced, s.name
		}
	}
	s.runs = func(_ context.Context, in activities.PlaceInput) (berth.Outcome, error) {
		switch {
		case in.Trial == failed:
			return failedWith(berth.FailureUserError)
		case in.Trial == outOfMemory && in.Number == 1, in.Trial == infeasible:
			return failedWith(berth.FailureHostOOM)
		case in.Trial == refused && in.Number == 1:
			return berth.Outcome{}, temporal.NewNonRetryableApplicationError("it cannot be rendered", string(berth.KindInvalid), nil)
		default:
			return worked(in), nil
		}
	}

	s.play(t)
	s.finish(t, berth.SweepSucceeded)

	s.keepSweep(t, "infeasible")
	s.keepTrial(t, "out-of-memory", outOfMemory)
	s.keepTrial(t, "lost-host", lost)
	s.keepTrial(t, "refused", refused)
}

// playGivenBack stops a sweep whose trial is on a host that does not answer.
// The host comes back and gives the running attempt back.
func playGivenBack(t *testing.T, s *scene) {
	t.Helper()

	s.hasty()
	s.places = func(in activities.PlaceInput) (berth.RequestState, string) {
		if in.Number == 1 {
			return berth.RequestPlaced, lostHost
		}

		return berth.RequestPlaced, s.name
	}
	s.given = func(activities.PlaceInput) string { return workflows.AttemptID(s.trial(1), 1) }

	s.play(t)
	s.hears(t, s.trial(1), "RunTrial scheduled")
	s.update(t, workflows.UpdateStop)
	s.finish(t, berth.SweepStopped)

	s.keepTrial(t, "given-back", 1)
}

// oneRunsOneWaits has trial 1 run until the channel is closed, and trial 2 wait
// for a place.
func (s *scene) oneRunsOneWaits(t *testing.T, until <-chan struct{}) {
	t.Helper()

	s.total = 2
	s.places = func(in activities.PlaceInput) (berth.RequestState, string) {
		if in.Trial == 2 {
			return berth.RequestWaiting, ""
		}

		return berth.RequestPlaced, s.name
	}
	s.runsUntil(func(activities.PlaceInput) bool { return closed(until) })

	s.play(t)
	s.hears(t, s.trial(1), "RunTrial scheduled")
	s.hears(t, s.trial(2), "step RequestPlacement")
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func playCanceled(t *testing.T, s *scene) {
	t.Helper()

	s.oneRunsOneWaits(t, nil)
	s.cancel(t)
	s.finish(t, berth.SweepCanceled)

	s.keepSweep(t, "canceled")
	s.keepTrial(t, "canceled-running", 1)
	s.keepTrial(t, "canceled-waiting", 2)
}

// playUnheld cancels a trial whose host takes neither the trial nor the order
// to give its place back.
func playUnheld(t *testing.T, s *scene) {
	t.Helper()

	s.hasty()
	s.places = func(activities.PlaceInput) (berth.RequestState, string) { return berth.RequestPlaced, lostHost }

	s.play(t)
	s.hears(t, s.trial(1), "RunTrial scheduled")
	s.cancel(t)
	s.finish(t, berth.SweepCanceled)

	s.keepTrial(t, "unheld", 1)
}

func playStopped(t *testing.T, s *scene) {
	t.Helper()

	done := make(chan struct{})

	s.oneRunsOneWaits(t, done)
	s.update(t, workflows.UpdateSetMaxParallel, 1)
	s.update(t, workflows.UpdateStop)
	close(done)
	s.finish(t, berth.SweepStopped)

	s.keepSweep(t, "stopped")
}

// playPaused pauses a sweep with a full window and resumes it when the window
// is empty.
func playPaused(t *testing.T, s *scene) {
	t.Helper()

	const window = 16

	done := make(chan struct{})

	s.total, s.plan.MaxDuration = window+4, berth.Duration(time.Hour)
	s.runsUntil(func(activities.PlaceInput) bool { return closed(done) })

	s.play(t)
	s.hears(t, s.trial(window), "RunTrial scheduled")
	s.update(t, workflows.UpdatePause)
	close(done)
	s.until(t.Context(), func() bool { return len(s.ended) == window })
	s.update(t, workflows.UpdateResume)
	s.finish(t, berth.SweepSucceeded)

	s.keepSweep(t, "paused-and-resumed")
}

// playPausedItself lets the first trials fail alike.
func playPausedItself(t *testing.T, s *scene) {
	t.Helper()

	const window = 16

	s.total = window + 14
	s.runs = func(_ context.Context, in activities.PlaceInput) (berth.Outcome, error) {
		if in.Trial <= window {
			return failedWith(berth.FailureUserError)
		}

		return worked(in), nil
	}

	s.play(t)
	s.hears(t, workflows.SweepWorkflowID(s.sweepID), "step SetSweepState")
	s.update(t, workflows.UpdateResume)
	s.finish(t, berth.SweepSucceeded)

	s.keepSweep(t, "paused-itself")
}

// playLooksAgain ends a trial while most machines are away, and another one when
// they are back: the first narrows the window, the second opens it again.
func playLooksAgain(t *testing.T, s *scene) {
	t.Helper()

	const (
		window = 32
		away   = window - 1
		back   = window
	)

	s.total, s.capacity = 38, window/2
	s.runs = func(ctx context.Context, in activities.PlaceInput) (berth.Outcome, error) {
		switch in.Trial {
		case away:
			s.until(ctx, func() bool {
				s.capacity = 2

				return len(s.asked) >= window
			})
		case back:
			s.until(ctx, func() bool { return s.asks(window + 1) })
			s.until(ctx, func() bool {
				s.capacity = window / 2

				return true
			})
		default:
			s.until(ctx, func() bool { return s.asks(window + 2) })
		}

		return worked(in), ctx.Err()
	}

	s.play(t)
	s.finish(t, berth.SweepSucceeded)

	s.keepSweep(t, "looks-again")
}

// playContinued runs enough trials that the sweep continues as new. Its first
// trial ends in the second run, in which the search has no more.
func playContinued(t *testing.T, s *scene) {
	t.Helper()

	s.total, s.capacity = 10_000, 32
	s.runs = func(ctx context.Context, in activities.PlaceInput) (berth.Outcome, error) {
		if in.Trial == 1 {
			s.until(ctx, func() bool { return len(s.sweeps) == 2 })
		}

		if len(locked(s, func() []string { return s.sweeps })) == 2 {
			s.mu.Lock()
			s.total = 0
			s.mu.Unlock()
		}

		return worked(in), ctx.Err()
	}

	s.play(t)
	s.finish(t, berth.SweepSucceeded)

	sweep, runs := workflows.SweepWorkflowID(s.sweepID), locked(s, func() []string { return s.sweeps })
	s.keep(t, "sweep-continued-as-new", sweep, runs[0])
	s.keep(t, "sweep-taken-over", sweep, runs[1])
}

// playMaxDuration ends the time of a sweep while one trial runs and another waits.
func playMaxDuration(t *testing.T, s *scene) {
	t.Helper()

	done := make(chan struct{})

	s.plan.MaxDuration = berth.Duration(5 * time.Second)
	s.oneRunsOneWaits(t, done)
	s.hears(t, s.trial(1), "hears stop")
	close(done)
	s.finish(t, berth.SweepSucceeded)

	s.keepSweep(t, "max-duration")
}

// afterTheFirst has all trials but the first begin when that has asked for its place.
func (s *scene) afterTheFirst() {
	s.begins = func(ctx context.Context, trial int) {
		if trial > 1 {
			s.until(ctx, func() bool { return s.asks(1) })
		}
	}
}

// playPassedOn lets the measuring run fail while trial 2 runs beside it: trial 3,
// which joins then, measures the shape.
func playPassedOn(t *testing.T, s *scene) {
	t.Helper()

	ended := func(trial int) bool {
		_, is := s.ended[trial]

		return is
	}

	s.total = 3
	s.probed(berth.ProbeFull)
	s.begins = func(ctx context.Context, trial int) {
		s.until(ctx, func() bool { return trial == 1 || trial == 2 && s.asks(1) || ended(1) })
	}
	s.runs = func(ctx context.Context, in activities.PlaceInput) (berth.Outcome, error) {
		switch in.Trial {
		case 1:
			s.until(ctx, func() bool { return s.asks(2) })

			return failedWith(berth.FailureUserError)
		case 2:
			s.until(ctx, func() bool { return ended(3) })
		}

		return worked(in), ctx.Err()
	}

	s.play(t)
	s.finish(t, berth.SweepSucceeded)

	s.keepProbe(t, "passed-on")
}

// playCapped lets the measuring run take longer than it may: trial 2, which
// waits for a place, measures the shape in a short run and then runs.
func playCapped(t *testing.T, s *scene) {
	t.Helper()

	s.total = 2
	s.probed(berth.ProbeAuto)
	s.afterTheFirst()
	s.places = func(in activities.PlaceInput) (berth.RequestState, string) {
		if in.Trial == 2 && in.Number == 1 {
			return berth.RequestWaiting, s.name
		}

		return berth.RequestPlaced, s.name
	}
	s.runsUntil(func(in activities.PlaceInput) bool { return in.Trial == 2 || s.known })

	s.play(t)
	s.finish(t, berth.SweepSucceeded)

	s.keepProbe(t, "capped")
	s.keepTrial(t, "capped", 1)
	s.keepTrial(t, "short-probe", 2)
}
