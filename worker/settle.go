package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/temporal"
)

// pastIt is how old the lease of an attempt must be before its open but idle
// workflow counts as past it: a workflow that missed the news of its place
// looks for itself within 10 minutes.
const pastIt = 15 * time.Minute

// TrialRuns is Temporal's record of trials.
type TrialRuns interface {
	TrialRun(ctx context.Context, sweepID string, number int) (temporal.TrialRun, error)
}

// Attempts is how attempts end in the ledger.
type Attempts interface {
	AbandonAttempt(ctx context.Context, attemptID, message string) error
	FinishAttempt(ctx context.Context, r berth.Result) error
	SetTrialState(ctx context.Context, u berth.TrialUpdate) (changed bool, err error)
}

// Settler ends attempts that are open in the ledger, have no container on their
// host, and that no workflow will run: the database came back with a state from
// before their end. The trial ends as its workflow did. The host's reconciler
// releases the place.
type Settler struct {
	Runs   TrialRuns
	Ledger Attempts
	Log    *slog.Logger
}

// Settle settles an attempt without a container, unless something may still
// start one.
func (s *Settler) Settle(ctx context.Context, lease berth.HostLease) error {
	run, err := s.Runs.TrialRun(ctx, lease.SweepID, lease.TrialNumber)
	if err != nil {
		return err
	}

	switch {
	case !run.Known: // Temporal's own store may be the older one, or another: no reason to judge
		return nil
	case run.Open && (run.Runs || lease.Age < pastIt):
		return nil
	case run.Open:
		return s.abandon(ctx, lease, "its trial's workflow is past it, and nothing of it is on its host")
	}

	end := run.End()
	if end.State == berth.TrialSucceeded && run.Result.Attempts == lease.Number {
		if err := s.finish(ctx, lease, end); err != nil {
			return err
		}
	}

	return s.end(ctx, lease, end)
}

func (s *Settler) abandon(ctx context.Context, lease berth.HostLease, why string) error {
	s.Log.Warn("ending an attempt that nothing runs", "attempt", lease.AttemptID, "reason", why)

	return s.Ledger.AbandonAttempt(ctx, lease.AttemptID, why)
}

// finish gives an attempt the result that its workflow keeps. Its measurements
// are lost.
func (s *Settler) finish(ctx context.Context, lease berth.HostLease, end berth.TrialUpdate) error {
	now := time.Now().UTC()

	err := s.Ledger.FinishAttempt(ctx, berth.Result{
		AttemptID: lease.AttemptID, TrialID: lease.TrialID, SweepID: lease.SweepID, Token: lease.Token,
		Outcome: berth.Outcome{Kind: end.Kind, Message: end.Message, Value: end.Value, FinishedAt: now},
		Source:  berth.FootprintShort, Proof: "its trial's workflow has ended, and no container of it is on its host",
	})
	if berth.KindOf(err) == berth.KindFenced { // settled since
		return nil
	}

	return err
}

// end ends the trial, which fences its attempts in the ledger.
func (s *Settler) end(ctx context.Context, lease berth.HostLease, end berth.TrialUpdate) error {
	end.TrialID, end.SweepID, end.Number = lease.TrialID, lease.SweepID, lease.TrialNumber

	changed, err := s.Ledger.SetTrialState(ctx, end)
	if changed {
		s.Log.Warn("ended a trial as its workflow did; the database did not know", "sweep_id", lease.SweepID, "trial", lease.TrialNumber,
			"state", end.State)
	}

	if err != nil || changed {
		return err
	}

	return s.abandon(ctx, lease, "its trial has ended, and nothing of it is on its host")
}
