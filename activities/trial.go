package activities

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
)

// TrialRef names a trial.
type TrialRef struct {
	SweepID string `json:"sweep_id"`
	Number  int    `json:"number"`
}

// StageBrief is the stage that a trial runs next.
type StageBrief struct {
	Stage      string `json:"stage"`
	StageKey   string `json:"stage_key,omitempty"` // empty = StageMain
	ShapeKey   string `json:"shape_key"`
	NeedsProbe bool   `json:"needs_probe"`
	Repeats    bool   `json:"repeats,omitempty"` // the output of the stage is there; a try runs it again to compare
	Guessed    bool   `json:"guessed,omitempty"` // an attempt has, or may have had, the size of an unmeasured shape

	Failed *berth.TrialUpdate `json:"failed,omitempty"` // how the stage failed in another trial of the sweep
}

// TrialBrief is the input of a trial's workflow.
type TrialBrief struct {
	StageBrief

	TrialID          string          `json:"trial_id"`
	Values           string          `json:"values"`           // in plain words, such as batch=16, lr=0.001
	Staged           bool            `json:"staged,omitempty"` // its sweep has stages
	ProbeMode        berth.ProbeMode `json:"probe_mode"`
	ProbeMaxDuration berth.Duration  `json:"probe_max_duration"`
	MaxAttempts      int             `json:"max_attempts"`
	MaxDuration      berth.Duration  `json:"max_duration"` // of one attempt
	Heartbeat        berth.Duration  `json:"heartbeat"`    // see Patience
	HostPatience     berth.Duration  `json:"host_patience"`
	Spills           bool            `json:"spills,omitempty"` // its sweep has gpu_memory_spill
	// Made is the number of the last attempt that the ledger has: more than 0 when
	// the workflow of the trial was lost and this one goes on.
	Made int `json:"made,omitempty"`
}

// BeginTrial returns the input of a trial's workflow.
func (a *Activities) BeginTrial(ctx context.Context, in TrialRef) (TrialBrief, error) {
	trial, err := a.planned(ctx, in.SweepID, in.Number, berth.StageMain)
	if err != nil {
		return TrialBrief{}, translate(err)
	}

	spec := trial.Spec

	stage, err := a.nextStage(ctx, in, trial, trial.Attempts > 0)
	if err != nil {
		return TrialBrief{}, translate(err)
	}

	return TrialBrief{
		StageBrief:       stage,
		TrialID:          trial.ID,
		Values:           describe(trial.Params),
		Staged:           len(spec.Stages) > 0,
		ProbeMode:        spec.Probe.Mode,
		ProbeMaxDuration: spec.Probe.MaxDuration,
		MaxAttempts:      spec.Retry.MaxAttempts,
		Spills:           spec.Resources.GPUMemorySpill,
		MaxDuration:      spec.Limits.MaxTrialDuration,
		Heartbeat:        berth.Duration(cmp.Or(a.Patience.Heartbeat, defaultHeartbeatPatience)),
		HostPatience:     berth.Duration(cmp.Or(a.Patience.Host, defaultHostPatience)),
		Made:             trial.Attempts,
	}, nil
}

// stageBrief says how a stage of a trial runs. goesOn: it may have run before.
func stageBrief(trial berth.PlannedTrial, stage string, goesOn bool) StageBrief {
	probed := trial.Spec.Probe.Mode != berth.ProbeOff

	return StageBrief{
		Stage: stage, ShapeKey: trial.ShapeKey,
		NeedsProbe: probed && !goesOn && !memory.KnownAnywhere(trial.Footprints),
		Guessed:    probed && (goesOn || memory.Predicted(trial.Footprints)), // of one that goes on, footprints measured by then are not stored
	}
}

// NextStage is the first stage of a trial whose output is not there, or which a try has to repeat,
// or StageMain.
func (a *Activities) NextStage(ctx context.Context, in TrialRef) (StageBrief, error) {
	trial, err := a.planned(ctx, in.SweepID, in.Number, berth.StageMain)
	if err != nil {
		return StageBrief{}, translate(err)
	}

	next, err := a.nextStage(ctx, in, trial, false)

	return next, translate(err)
}

// nextStage is NextStage for a trial as its own command sees it.
func (a *Activities) nextStage(ctx context.Context, in TrialRef, trial berth.PlannedTrial, goesOn bool) (StageBrief, error) {
	if len(trial.Spec.Stages) == 0 {
		return stageBrief(trial, berth.StageMain, goesOn), nil
	}

	states, err := a.Trials.StageStates(ctx, in.SweepID, in.Number)
	if err != nil {
		return StageBrief{}, err
	}

	i := slices.IndexFunc(states, func(state berth.StageState) bool {
		return !state.Known || trial.Spec.RepeatsStages() && !state.Repeated
	})
	if i < 0 {
		return stageBrief(trial, berth.StageMain, goesOn), nil
	}

	stage := trial.Spec.Stages[i].Name
	if failed := states[i].Failed; failed != nil {
		failed.Message = fmt.Sprintf("stage %s failed in trial %d: %s", stage, failed.Number, strings.TrimPrefix(failed.Message, "stage "+stage+" failed: "))

		return StageBrief{Stage: stage, StageKey: states[i].Key, Failed: failed}, nil
	}

	trial, err = a.Trials.PlannedTrial(ctx, in.SweepID, in.Number, stage)
	next := stageBrief(trial, stage, goesOn)
	next.StageKey, next.Repeats = states[i].Key, states[i].Known

	return next, err
}

// StageRef names the stage that a trial needs.
type StageRef struct {
	Key        string `json:"key"`
	Stage      string `json:"stage"`
	SweepID    string `json:"sweep_id"`
	TrialID    string `json:"trial_id"`
	WorkflowID string `json:"workflow_id"`
}

// JoinStage makes a trial wait for the output of a stage, or run it.
func (a *Activities) JoinStage(ctx context.Context, in StageRef) error {
	if _, err := a.Trials.SetTrialState(ctx, berth.TrialUpdate{
		TrialID: in.TrialID, SweepID: in.SweepID, State: berth.TrialWaiting,
		Message: "waits for stage " + in.Stage + ", " + berth.ShortKey(in.Key) + ", which another trial runs",
	}); err != nil {
		return translate(err)
	}

	return translate(a.Workflows.JoinStage(ctx, in.Key, in.WorkflowID))
}

// PausedInput names trials by their workflows.
type PausedInput struct {
	WorkflowIDs []string `json:"workflow_ids"`
}

// PausedTrials returns the trials whose sweeps are paused, by their workflows.
func (a *Activities) PausedTrials(ctx context.Context, in PausedInput) ([]string, error) {
	paused, err := a.Trials.PausedTrials(ctx, in.WorkflowIDs)

	return paused, translate(err)
}

// StageKnown reports whether the output of a stage is there.
func (a *Activities) StageKnown(ctx context.Context, in StageRef) (bool, error) {
	known, err := a.Trials.StagesKnown(ctx, []string{in.Key})

	return len(known) > 0, translate(err)
}

// describe renders an assignment on one line, at most 120 bytes, for summaries.
func describe(values berth.Assignment) string {
	const longest = 120

	parts := make([]string, 0, len(values))
	for _, name := range values.Names() {
		parts = append(parts, fmt.Sprintf("%s=%s", name, values[name]))
	}

	text := strings.Join(parts, ", ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest-1], "") + "…"
	}

	return text
}

// ProbeRef names a trial that waits for the footprint of its shape.
type ProbeRef struct {
	SweepID    string `json:"sweep_id"`
	TrialID    string `json:"trial_id"`
	ShapeKey   string `json:"shape_key"`
	WorkflowID string `json:"workflow_id"`
}

// JoinProbe makes a trial wait for, or carry out, the probe of its shape.
func (a *Activities) JoinProbe(ctx context.Context, in ProbeRef) error {
	if _, err := a.Trials.SetTrialState(ctx, berth.TrialUpdate{
		TrialID: in.TrialID, SweepID: in.SweepID, State: berth.TrialProbing,
		Message: "waits for the probe of its shape, " + berth.ShortKey(in.ShapeKey),
	}); err != nil {
		return translate(err)
	}

	return translate(a.Workflows.JoinProbe(ctx, in.ShapeKey, in.WorkflowID))
}

// ShapeRef names a shape.
type ShapeRef struct {
	ShapeKey string `json:"shape_key"`
}

// FootprintKnown reports whether a shape can be packed without a probe.
func (a *Activities) FootprintKnown(ctx context.Context, in ShapeRef) (bool, error) {
	known, err := a.Trials.Footprints(ctx, []string{in.ShapeKey})

	return memory.KnownAnywhere(known[in.ShapeKey]), translate(err)
}

// SettleTrial writes a trial's end. The first end wins.
func (a *Activities) SettleTrial(ctx context.Context, in berth.TrialUpdate) error {
	return translate(a.settle(ctx, in))
}

func (a *Activities) settle(ctx context.Context, in berth.TrialUpdate) error {
	in.TrialID = trialID(in.SweepID, in.Number)

	_, err := a.Trials.SetTrialState(ctx, in)

	return err
}

// AbandonInput names an attempt whose host does not answer.
type AbandonInput struct {
	AttemptID string `json:"attempt_id"`
	Message   string `json:"message"`
	Refused   bool   `json:"refused,omitempty"` // the host answers and cannot carry it out
}

// Abandoned is the state of an attempt whose host does not answer.
type Abandoned struct {
	Finished *berth.Outcome `json:"finished,omitempty"` // it had committed this before
}

// AbandonAttempt fences an attempt whose host was lost. Its memory stays
// booked until there is proof that it is free. An attempt that the database
// does not know, as an older copy of it was restored, holds nothing there.
func (a *Activities) AbandonAttempt(ctx context.Context, in AbandonInput) (Abandoned, error) {
	abandon := a.Trials.AbandonAttempt
	if in.Refused {
		abandon = a.Trials.RefuseAttempt
	}

	if err := abandon(ctx, in.AttemptID, in.Message); err != nil {
		return Abandoned{}, translate(err)
	}

	attempt, err := a.Trials.GetAttempt(ctx, in.AttemptID)
	if berth.KindOf(err) == berth.KindNotFound {
		return Abandoned{}, nil
	}

	if err != nil || attempt.State != berth.AttemptFinished {
		return Abandoned{}, translate(err)
	}

	outcome := attempt.Outcome()

	return Abandoned{Finished: &outcome}, nil
}
