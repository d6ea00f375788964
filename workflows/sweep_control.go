package workflows

import (
	"cmp"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// handle registers the commands that a person can send to a running sweep.
// Validators refuse with a reason and leave no history. A command that changes
// nothing is still written: a restored database may differ.
func (s *sweep) handle(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, QueryState, func() (SweepView, error) { return s.view(), nil }); err != nil {
		return err
	}

	for _, u := range []struct {
		name, does string
		handler    func(workflow.Context) (SweepView, error)
	}{
		{UpdatePause, "start no trial until resumed; running ones go on", s.pause},
		{UpdateResume, "start trials again after a pause", s.resume},
		{UpdateStop, "start no trial any more; running ones finish", s.stopNow},
	} {
		err := workflow.SetUpdateHandlerWithOptions(ctx, u.name, u.handler, workflow.UpdateHandlerOptions{
			Description: u.does, Validator: func() error { return s.checkOpen(u.name) },
		})
		if err != nil {
			return err
		}
	}

	return workflow.SetUpdateHandlerWithOptions(ctx, UpdateSetMaxParallel, s.setMaxParallel, workflow.UpdateHandlerOptions{
		Description: "change how many trials run at once; 0 = as many as fit", Validator: func(n int) error {
			if n < 0 {
				return berth.Errorf(berth.KindInvalid, "max_parallel must be 0 (as many as fit) or more, got %d", n)
			}

			return nil
		},
	})
}

// checkOpen refuses an update of a sweep that ends.
func (s *sweep) checkOpen(update string) error {
	if s.ended() {
		return berth.Errorf(berth.KindConflict, "cannot %s: the sweep is ending (%s)", update, s.Ending.Reason)
	}

	return nil
}

func (s *sweep) pause(ctx workflow.Context) (SweepView, error) {
	reason := cmp.Or(s.Streak.Why, "paused by a person; resume it to go on")
	if err := s.setState(ctx, berth.SweepPaused, reason); err != nil {
		return SweepView{}, err
	}

	s.Paused = true
	s.say(ctx)

	if err := s.pauseClock(ctx); err != nil {
		return SweepView{}, err
	}

	return s.view(), nil
}

func (s *sweep) resume(ctx workflow.Context) (SweepView, error) {
	if err := s.setState(ctx, berth.SweepRunning, ""); err != nil {
		return SweepView{}, err
	}

	s.Paused, s.Streak.Why = false, ""
	s.Clock.resume(workflow.Now(ctx))

	return s.view(), nil
}

func (s *sweep) stopNow(ctx workflow.Context) (SweepView, error) {
	if err := s.setState(ctx, berth.SweepStopping, "stopped by a person; running trials finish"); err != nil {
		return SweepView{}, err
	}

	s.Paused, s.Streak.Why = false, ""
	s.stop(ctx, berth.SweepStopped, "stopped by a person")

	return s.view(), nil
}

func (s *sweep) setMaxParallel(ctx workflow.Context, n int) (SweepView, error) {
	in := activities.MaxParallelInput{SweepID: s.id, MaxParallel: n}
	if err := step(ctx, acts.SetMaxParallel, in, nil); err != nil {
		return SweepView{}, err
	}

	s.plan.MaxParallel = n

	return s.view(), nil
}

// setState writes the state for the placer, which then starts no waiting
// trials.
func (s *sweep) setState(ctx workflow.Context, state berth.SweepState, reason string) error {
	in := activities.SweepStateInput{SweepID: s.id, State: state, Reason: reason}

	return step(ctx, acts.SetSweepState, in, nil)
}

func (s *sweep) view() SweepView {
	state := berth.SweepRunning

	switch {
	case s.Ending.State != "" && len(s.Open) == 0:
		state = s.Ending.State
	case s.Ending.State == berth.SweepStopped:
		state = berth.SweepStopping
	case s.Ending.State == berth.SweepCanceled:
		state = berth.SweepCanceling
	case s.Paused:
		state = berth.SweepPaused
	}

	return SweepView{State: state, Created: s.Created, Open: len(s.Open), MaxParallel: s.plan.MaxParallel}
}

// finished is how many trials have ended.
func (s *CarriedState) finished() int {
	return s.Succeeded + s.Failed + s.Infeasible + s.Canceled + s.Pruned
}

// say shows the sweep's progress on its page in Temporal's UI.
func (s *sweep) say(ctx workflow.Context) {
	planned := ""
	if s.plan.Planned > 0 {
		planned = fmt.Sprintf(" of %d", s.plan.Planned)
	}

	best := "none yet"
	if s.Best != nil && s.plan.Objective != nil {
		best = fmt.Sprintf("trial %d with %s = %g", s.BestTrial, s.plan.Objective.Metric, *s.Best)
	}

	text := fmt.Sprintf("**%s** is %s.\n\n%d%s trials ended: %d succeeded, %d stopped early, %d failed, %d infeasible, %d canceled; %d open.\n\nBest: %s.",
		s.plan.Name, s.view().State, s.finished(), planned, s.Succeeded, s.Pruned, s.Failed, s.Infeasible, s.Canceled, len(s.Open), best)
	if s.Streak.Why != "" {
		text += "\n\n" + s.Streak.Why
	}

	if s.Ending.Reason != "" {
		text += "\n\n" + s.Ending.Reason
	}

	workflow.SetCurrentDetails(ctx, text)
}
