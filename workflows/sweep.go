package workflows

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
)

// lostCheck is how long a sweep with open trials waits without news before it
// looks up trials that earlier runs started: a person may have ended one in
// Temporal.
const lostCheck = 5 * time.Minute

// SweepInput names the sweep of a SweepWorkflow; the rest is carried over by
// continue-as-new.
type SweepInput struct {
	SweepID string        `json:"sweep_id"`
	Carried *CarriedState `json:"carried,omitempty"`
	// Restored is set when the sweep's workflow was lost and this one goes on from
	// the database: workflows of its trials may have ended without it.
	Restored bool `json:"restored,omitempty"`
}

// CarriedState is the state that a SweepWorkflow carries: ids and counts only.
type CarriedState struct {
	activities.Room

	StartedAt time.Time `json:"started_at"`
	Created   int       `json:"created"` // trials suggested so far; the last number
	Open      []int     `json:"open"`    // numbers of trials that have not ended, ascending
	Succeeded int       `json:"succeeded"`
	Failed    int       `json:"failed"`
	// Infeasible trials need more memory than any machine has: the search
	// learns it, and limits.max_failed_trials does not count them.
	Infeasible int           `json:"infeasible,omitempty"`
	Canceled   int           `json:"canceled"`
	Pruned     int           `json:"pruned,omitempty"` // stopped early
	Exhausted  bool          `json:"exhausted"`        // the search has no more
	Reason     string        `json:"reason,omitempty"` // why not; empty = every combination was tried
	Paused     bool          `json:"paused"`
	Ending     Ending        `json:"ending"` // zero until the sweep starts no more trials
	Best       *float64      `json:"best,omitempty"`
	BestTrial  int           `json:"best_trial,omitempty"`
	Streak     FailureStreak `json:"failure_streak,omitzero"`
	Clock      Clock         `json:"clock,omitzero"`
}

// Ending says why a sweep starts no more trials, and how it ends.
type Ending struct {
	State  berth.SweepState `json:"state,omitempty"` // empty = goes on
	Reason string           `json:"reason,omitempty"`
	Soft   bool             `json:"soft,omitempty"` // nothing is left to suggest, but open trials still start
}

// SweepView answers the state query and the updates.
type SweepView struct {
	State       berth.SweepState `json:"state"`
	Created     int              `json:"created"`
	Open        int              `json:"open"`
	MaxParallel int              `json:"max_parallel"`
}

// SweepWorkflow keeps a window of a sweep's trials open until its rules, the
// search or a person end it. Canceling it cancels its trials.
func SweepWorkflow(ctx workflow.Context, in SweepInput) (SweepView, error) {
	s := &sweep{id: in.SweepID}
	if in.Carried != nil {
		s.CarriedState = *in.Carried
	} else {
		s.StartedAt = workflow.Now(ctx)
	}

	if err := s.begin(ctx); err != nil {
		return SweepView{}, err
	}

	tag(ctx, attrSweepID.ValueSet(in.SweepID))

	if err := s.handle(ctx); err != nil {
		return SweepView{}, err
	}

	err := s.lookUp(ctx, s.Open, in.Restored) // trials that ended between two runs told the earlier one
	if err == nil {
		err = s.run(ctx)
	}

	switch {
	case workflow.IsContinueAsNewError(err):
		return SweepView{}, err
	case temporal.IsCanceledError(err):
		return s.cancel(ctx)
	case err != nil:
		return SweepView{}, err
	}

	return s.finish(ctx)
}

// begin takes the sweep over for this run, also when it is canceled already:
// its end has to be written.
func (s *sweep) begin(ctx workflow.Context) error {
	clean, _ := workflow.NewDisconnectedContext(ctx)
	run := activities.SweepRun{SweepID: s.id, RunID: workflow.GetInfo(ctx).WorkflowExecution.RunID}

	return step(clean, acts.BeginSweep, run, &s.plan)
}

// sweep is the state of one SweepWorkflow run.
type sweep struct {
	CarriedState

	id    string
	plan  activities.SweepPlan
	news  []berth.TrialEnd  // of trials that this run started
	mine  []int             // trials whose ends Temporal tells this run
	seen  time.Time         // when the database was last asked for ends
	asked bool              // to look up which trials have ended
	sent  []workflow.Future // requests to trials; Temporal drops requests that a run leaves unanswered

	roomSince time.Time // the window has not been full; zero = it is

	// Of a search that learns: it chooses no more trials before this time, or a trial's end;
	// zero = it does.
	askAt    time.Time
	askPause time.Duration // before askAt

	// A sweep with stages whose window is full looks at lookAt how many trials wait for one.
	lookAt    time.Time
	lookPause time.Duration // before lookAt

	looked bool // at the hosts, since a trial ended and no longer than lostCheck ago
}

// run starts trials and takes in their ends until none is open and none will
// follow.
func (s *sweep) run(ctx workflow.Context) error {
	finished := workflow.GetSignalChannel(ctx, SignalTrialFinished)

	for {
		acted := s.wishes() // the next round acts on later changes
		s.receive(ctx, finished)

		if err := s.readClock(ctx); err != nil {
			return err
		}

		s.decide(ctx)

		if s.Ending.State != "" && len(s.Open) == 0 {
			return nil
		}

		if err := s.pauseOnStreak(ctx); err != nil {
			return err
		}

		more, err := s.fill(ctx)
		if err != nil {
			return err
		}

		s.say(ctx)

		if longHistory(ctx) {
			return s.continueAsNew(ctx, finished)
		}

		if more {
			continue // with the trials that ended since
		}

		if err := s.await(ctx, finished, acted); err != nil {
			return err
		}
	}
}

// wishes are the values that a person or a rule may change during a step.
type wishes struct {
	ending      Ending
	paused      bool
	maxParallel int
}

func (s *sweep) wishes() wishes { return wishes{s.Ending, s.Paused, s.plan.MaxParallel} }

// await waits for news, or for wishes that differ from the last round's. From
// time to time it asks the database and Temporal which of the open trials have
// ended silently, however much news of others comes.
func (s *sweep) await(ctx workflow.Context, finished workflow.ReceiveChannel, acted wishes) error {
	if s.asked {
		s.asked = false

		return s.lookUp(ctx, without(s.Open, s.mine...), true)
	}

	patience := lostCheck
	if left := s.timeLeft(ctx); left > 0 && s.Clock.Since.IsZero() {
		patience = min(patience, left)
	}

	if left := s.dueIn(ctx); left > 0 {
		patience = min(patience, left)
	}

	news, err := awaitFor(ctx, patience, "look up trials that ended without a word", func() bool {
		return finished.Len() > 0 || len(s.news) > 0 || s.wishes() != acted || (s.room() > 0 && len(s.Open) == 0)
	})
	if err != nil || len(s.Open) == 0 {
		return err
	}

	silent := !news && patience == lostCheck
	s.looked = s.looked && !silent

	if !silent && workflow.Now(ctx).Sub(s.seen) < lostCheck {
		return nil
	}

	return s.lookUp(ctx, without(s.Open, s.mine...), true)
}

// decide ends the sweep when one of its rules says so. The first reason stays.
func (s *sweep) decide(ctx workflow.Context) {
	if s.ended() {
		return
	}

	plan := s.plan

	switch {
	case plan.Objective != nil && plan.Objective.Target != nil && s.Best != nil && !plan.Objective.Better(*plan.Objective.Target, *s.Best):
		s.stop(ctx, berth.SweepSucceeded, fmt.Sprintf("trial %d reached the target: %g", s.BestTrial, *s.Best))
	case plan.MaxFailedTrials > 0 && s.Failed > plan.MaxFailedTrials:
		s.stop(ctx, berth.SweepFailed, fmt.Sprintf("%d trials failed, more than limits.max_failed_trials (%d)", s.Failed, plan.MaxFailedTrials))
	case s.timeUp(ctx):
		s.stop(ctx, berth.SweepSucceeded, "limits.max_duration has passed")
	case s.Exhausted:
		s.Ending = Ending{State: berth.SweepSucceeded, Reason: cmp.Or(s.Reason, "every combination was tried"), Soft: true}
	case plan.MaxTrials > 0 && s.Created >= plan.MaxTrials:
		s.Ending = Ending{State: berth.SweepSucceeded, Reason: "limits.max_trials is reached", Soft: true}
	}
}

// ended reports whether the sweep starts no more trials, for good.
func (s *sweep) ended() bool { return s.Ending.State != "" && !s.Ending.Soft }

// stop ends the sweep early: trials that have not started do not start.
func (s *sweep) stop(ctx workflow.Context, state berth.SweepState, reason string) {
	s.Ending = Ending{State: state, Reason: reason}

	for _, number := range s.Open {
		s.signalStop(ctx, number)
	}
}

func (s *sweep) signalStop(ctx workflow.Context, number int) {
	s.sent = append(s.sent, workflow.SignalExternalWorkflow(ctx, TrialWorkflowID(s.id, number), "", SignalStop, nil))
}

// continueAsNew starts over with a short history. It first takes in the pending
// signals; later ones reach the new run. It waits for requests to trials, and
// this run carries out a cancellation: Temporal passes neither on.
func (s *sweep) continueAsNew(ctx workflow.Context, finished workflow.ReceiveChannel) error {
	err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) && s.answered() })
	if err == nil {
		err = ctx.Err()
	}

	if err != nil {
		return err
	}

	s.receive(ctx, finished)

	return workflow.NewContinueAsNewError(ctx, SweepWorkflow, SweepInput{SweepID: s.id, Carried: &s.CarriedState})
}

// answered reports whether every request to a trial has reached it, or found
// that it has ended.
func (s *sweep) answered() bool {
	return !slices.ContainsFunc(s.sent, func(f workflow.Future) bool { return !f.IsReady() })
}

// cancel cancels all open trials, waits for their ends and ends the sweep.
func (s *sweep) cancel(ctx workflow.Context) (SweepView, error) {
	clean, _ := workflow.NewDisconnectedContext(ctx)
	s.Ending = Ending{State: berth.SweepCanceled, Reason: "canceled"}

	in := activities.SweepStateInput{SweepID: s.id, State: berth.SweepCanceling}
	if err := step(clean, acts.SetSweepState, in, nil); err != nil {
		return SweepView{}, err
	}

	for _, number := range s.Open {
		s.sent = append(s.sent, workflow.RequestCancelExternalWorkflow(clean, TrialWorkflowID(s.id, number), ""))
	}

	if err := s.run(clean); err != nil {
		return SweepView{}, err
	}

	return s.finish(ctx)
}

// finish writes the sweep's end. A cancellation that comes now is too late: the
// first end wins.
func (s *sweep) finish(ctx workflow.Context) (SweepView, error) {
	var end berth.Sweep

	ctx, _ = workflow.NewDisconnectedContext(ctx)

	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return SweepView{}, err
	}

	in := activities.SweepStateInput{SweepID: s.id, State: s.Ending.State, Reason: s.Ending.Reason, Created: s.Created}
	if err := step(ctx, acts.FinishSweep, in, &end); err != nil {
		return SweepView{}, err
	}

	s.Ending = Ending{State: end.State, Reason: end.Reason}
	s.say(ctx)

	return s.view(), nil
}
