package activities

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
)

// TrialRef names a trial.
type TrialRef struct {
	SweepID string `json:"sweep_id"`
	Number  int    `json:"number"`
}

// TrialBrief is the input of a trial's workflow.
type TrialBrief struct {
	TrialID          string          `json:"trial_id"`
	Values           string          `json:"values"` // in plain words, such as batch=16, lr=0.001
	ShapeKey         string          `json:"shape_key"`
	NeedsProbe       bool            `json:"needs_probe"`
	Guessed          bool            `json:"guessed,omitempty"` // an attempt has, or may have had, the size of an unmeasured shape
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
	trial, err := a.planned(ctx, in.SweepID, in.Number)
	if err != nil {
		return TrialBrief{}, translate(err)
	}

	spec := trial.Spec
	probed, goesOn := spec.Probe.Mode != berth.ProbeOff, trial.Attempts > 0

	return TrialBrief{
		TrialID:          trial.ID,
		Values:           describe(trial.Params),
		ShapeKey:         trial.ShapeKey,
		NeedsProbe:       probed && !goesOn && !memory.KnownAnywhere(trial.Footprints),
		Guessed:          probed && (goesOn || memory.Predicted(trial.Footprints)), // of one that goes on, footprints measured by then are not stored
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
