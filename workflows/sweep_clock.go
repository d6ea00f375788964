package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth/activities"
)

// Clock counts the time in which a sweep may run, for limits.max_duration: from
// the first trial that got a place, without the pauses after it. A sweep behind
// a backlog or paused over a weekend is not over before it ran anything.
type Clock struct {
	Began  time.Time     `json:"began,omitzero"`  // when the first trial ran; zero = none is known to have
	Paused time.Duration `json:"paused,omitzero"` // all pauses since that have ended
	Since  time.Time     `json:"since,omitzero"`  // of the pause that goes on; zero = none does
}

// ran is how long the sweep could run until now, counted from other while no
// trial is known to have run.
func (c *Clock) ran(now, other time.Time) time.Duration {
	began := c.Began
	if began.IsZero() {
		began = other
	}

	ran := now.Sub(began) - c.Paused
	if !c.Since.IsZero() {
		ran -= now.Sub(c.Since)
	}

	return ran
}

// pause stops the clock.
func (c *Clock) pause(now time.Time) {
	if !c.Began.IsZero() && c.Since.IsZero() {
		c.Since = now
	}
}

// resume starts it again.
func (c *Clock) resume(now time.Time) {
	if !c.Since.IsZero() {
		c.Paused += now.Sub(c.Since)
		c.Since = time.Time{}
	}
}

// timeLeft is the rest of limits.max_duration; 0 without a limit or after it.
func (s *sweep) timeLeft(ctx workflow.Context) time.Duration {
	if s.plan.MaxDuration == 0 {
		return 0
	}

	return max(time.Duration(s.plan.MaxDuration)-s.Clock.ran(workflow.Now(ctx), s.StartedAt), 0)
}

// timeUp reports whether limits.max_duration is over.
func (s *sweep) timeUp(ctx workflow.Context) bool {
	return s.plan.MaxDuration > 0 && s.timeLeft(ctx) == 0 && !s.Clock.Began.IsZero()
}

// readClock finds out when the first trial ran, once the time would be up
// without knowing. While none has, the time counts from now.
func (s *sweep) readClock(ctx workflow.Context) error {
	if s.plan.MaxDuration == 0 || !s.Clock.Began.IsZero() || s.timeLeft(ctx) > 0 {
		return nil
	}

	if err := s.lookUpBeginning(ctx); err != nil {
		return err
	}

	if s.Paused { // the trial was being placed when the sweep was paused
		s.Clock.pause(s.Clock.Began)
	}

	return nil
}

func (s *sweep) lookUpBeginning(ctx workflow.Context) error {
	var began time.Time

	err := step(ctx, acts.FirstTrialRan, activities.SweepRef{SweepID: s.id}, &began)
	if err != nil {
		return err
	}

	s.Clock.Began = began
	if began.IsZero() {
		s.StartedAt = workflow.Now(ctx)
	}

	return nil
}

// pauseClock stops the clock while the sweep is paused.
func (s *sweep) pauseClock(ctx workflow.Context) error {
	if s.plan.MaxDuration == 0 {
		return nil
	}

	if s.Clock.Began.IsZero() {
		if err := s.lookUpBeginning(ctx); err != nil {
			return err
		}
	}

	if s.Paused { // it may have been resumed since
		s.Clock.pause(workflow.Now(ctx))
	}

	return nil
}
