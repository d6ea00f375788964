package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
)

// SweepPlan is the part of its spec that a sweep's workflow needs.
type SweepPlan struct {
	Name            string           `json:"name"`
	State           berth.SweepState `json:"state"`
	Planned         int              `json:"planned"` // 0 = not known
	MaxTrials       int              `json:"max_trials"`
	MaxParallel     int              `json:"max_parallel"`
	MaxFailedTrials int              `json:"max_failed_trials"`
	MaxDuration     berth.Duration   `json:"max_duration"`
	Objective       *berth.Objective `json:"objective,omitempty"`
	Staged          bool             `json:"staged,omitempty"`
	Learns          bool             `json:"learns,omitempty"`  // its search depends on results
	Startup         int              `json:"startup,omitempty"` // trials that it chooses without
}

// SweepRun names a run of a sweep's workflow.
type SweepRun struct {
	SweepID string `json:"sweep_id"`
	RunID   string `json:"run_id"`
}

// BeginSweep moves a pending sweep to running and returns its plan.
func (a *Activities) BeginSweep(ctx context.Context, in SweepRun) (SweepPlan, error) {
	sweep, err := a.Sweeps.BeginSweepRun(ctx, in.SweepID, in.RunID)
	if err != nil {
		return SweepPlan{}, translate(err)
	}

	limits := sweep.Spec.Limits

	return SweepPlan{
		Name:            sweep.Name,
		State:           sweep.State,
		Planned:         sweep.Counts.Planned,
		MaxTrials:       limits.MaxTrials,
		MaxParallel:     sweep.MaxParallel,
		MaxFailedTrials: limits.MaxFailedTrials,
		MaxDuration:     limits.MaxDuration,
		Objective:       sweep.Spec.Objective,
		Staged:          len(sweep.Spec.Stages) > 0,
		Learns:          sweep.Spec.Search.Learns(),
		Startup:         sweep.Spec.Search.Startup,
	}, nil
}

// SweepStateInput moves a sweep to a state.
type SweepStateInput struct {
	SweepID string           `json:"sweep_id"`
	State   berth.SweepState `json:"state"`
	Reason  string           `json:"reason,omitempty"`
	Created int              `json:"created,omitempty"` // trials that its workflow knows of, for FinishSweep
}

// SetSweepState moves a sweep to a state; an ended sweep stays as it is.
func (a *Activities) SetSweepState(ctx context.Context, in SweepStateInput) error {
	_, err := a.Sweeps.SetSweepState(ctx, in.SweepID, in.State, in.Reason)

	return translate(err)
}

// MaxParallelInput changes a sweep's limit; 0 = none.
type MaxParallelInput struct {
	SweepID     string `json:"sweep_id"`
	MaxParallel int    `json:"max_parallel"`
}

// SetMaxParallel changes how many attempts of a sweep the placer runs at once.
func (a *Activities) SetMaxParallel(ctx context.Context, in MaxParallelInput) error {
	return translate(a.Sweeps.SetMaxParallel(ctx, in.SweepID, in.MaxParallel))
}

// FinishSweep ends a sweep: it succeeded when at least one trial did, unless
// the input says otherwise. It returns the final counts. Trials that a restored
// database forgot, or that are open in it, end first, as their workflows did.
func (a *Activities) FinishSweep(ctx context.Context, in SweepStateInput) (berth.Sweep, error) {
	if err := FillTrials(ctx, a.Sweeps, in.SweepID, in.Created); err != nil {
		return berth.Sweep{}, translate(err)
	}

	if err := EachOpenTrial(ctx, a.Trials, in.SweepID, func(trial berth.Trial) error {
		_, err := a.settleClosed(ctx, in.SweepID, trial.Number)

		return err
	}); err != nil {
		return berth.Sweep{}, translate(err)
	}

	sweep, err := a.Sweeps.GetSweep(ctx, in.SweepID)
	if err != nil {
		return berth.Sweep{}, translate(err)
	}

	if n := sweep.Counts.Infeasible; n > 0 && in.State != berth.SweepCanceled {
		in.Reason += fmt.Sprintf("; %d of its trials were infeasible: they needed more than any machine has", n)
	}

	if len(sweep.Spec.Constraints) > 0 && sweep.Counts.Succeeded > 0 && sweep.BestTrial == 0 {
		in.Reason += "; each trial that succeeded breaks a constraint"
	}

	if in.State == berth.SweepSucceeded && sweep.Counts.Succeeded == 0 {
		in.State, in.Reason = berth.SweepFailed, in.Reason+"; no trial succeeded"
	}

	if _, err := a.Sweeps.SetSweepState(ctx, in.SweepID, in.State, in.Reason); err != nil {
		return berth.Sweep{}, translate(err)
	}

	sweep, err = a.Sweeps.GetSweep(ctx, in.SweepID)
	sweep.Spec = berth.Spec{Objective: sweep.Spec.Objective} // workflows carry ids and scalars, not documents

	return sweep, translate(err)
}

// SweepRef names a sweep.
type SweepRef struct {
	SweepID string `json:"sweep_id"`
}

// FirstTrialRan returns when the first trial of a sweep got its place; the zero
// time while none has.
func (a *Activities) FirstTrialRan(ctx context.Context, in SweepRef) (time.Time, error) {
	began, err := a.Sweeps.FirstTrialRan(ctx, in.SweepID)

	return began, translate(err)
}

// askedAtOnce is how many trials are looked up in Temporal in parallel. With 30 ms for a
// call, as with Temporal Cloud, a sweep's 500 open trials take one second of a step's 15
// s; one after another they would not fit.
const askedAtOnce = 16

// EndedInput names trials of a sweep that are thought to be open.
type EndedInput struct {
	SweepID string `json:"sweep_id"`
	Numbers []int  `json:"numbers"`
	Closed  bool   `json:"closed"` // also ask Temporal whether their workflows exist
}

// EndedTrials returns which of the given trials have ended, by the database:
// the answer to news that never came. With Closed, a trial whose workflow has
// ended without the database hearing of it ends as that did; canceled when a
// person ended it in Temporal.
func (a *Activities) EndedTrials(ctx context.Context, in EndedInput) ([]berth.TrialEnd, error) {
	ended, err := a.Trials.EndedTrials(ctx, in.SweepID, in.Numbers)
	if err != nil || !in.Closed {
		return ended, translate(err)
	}

	open := slices.DeleteFunc(slices.Clone(in.Numbers), func(number int) bool {
		return slices.ContainsFunc(ended, func(e berth.TrialEnd) bool { return e.Number == number })
	})
	ends := make([]*berth.TrialUpdate, len(open))
	group, ctx := errgroup.WithContext(ctx)

	group.SetLimit(askedAtOnce)

	for i, number := range open {
		group.Go(func() (err error) {
			ends[i], err = a.settleClosed(ctx, in.SweepID, number)

			return err
		})
	}

	if err := group.Wait(); err != nil {
		return nil, translate(err)
	}

	for _, end := range ends {
		if end != nil {
			ended = append(ended, end.End())
		}
	}

	return ended, nil
}

// settleClosed ends a trial as its workflow did, and returns how; nil while that
// goes on.
func (a *Activities) settleClosed(ctx context.Context, sweepID string, number int) (*berth.TrialUpdate, error) {
	end, err := a.Workflows.TrialEnd(ctx, sweepID, number)
	if err != nil || end == nil {
		return nil, err
	}

	return end, a.settle(ctx, *end)
}

// EndedInTemporal is the message of a trial whose workflow was ended from outside.
const EndedInTemporal = "its workflow was ended in Temporal, or is not there any more; its container, if it had one, is stopped"
