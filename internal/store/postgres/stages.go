package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// StageStates are the stages of a trial, in order, and whether their outputs are there.
func (s *Store) StageStates(ctx context.Context, sweepID string, number int) ([]berth.StageState, error) {
	rows, err := s.q.StageStates(ctx, s.pool, &dbsqlc.StageStatesParams{SweepID: sweepID, Number: number, Silent: berth.StageSilence})

	return collect(rows, err, fmt.Sprintf("reading stages of trial %d of sweep %s", number, sweepID), func(row dbsqlc.StageStatesRow) berth.StageState {
		state := berth.StageState{Key: row.Key, Known: row.Known, Repeated: row.Repeated}
		if row.FailedIn > 0 {
			state.Failed = &berth.TrialUpdate{
				Number: row.FailedIn, State: berth.TrialState(row.FailedState), Kind: berth.FailureKind(row.FailedKind), Message: row.FailedMessage,
			}
		}

		return state
	})
}

// PausedTrials returns which of these workflows are of trials whose sweeps are paused.
func (s *Store) PausedTrials(ctx context.Context, workflowIDs []string) ([]string, error) {
	paused, err := s.q.PausedTrials(ctx, s.pool, workflowIDs)

	return paused, translate(err, "reading paused sweeps")
}

// BlockedTrials is how many open trials of a sweep wait for a stage that another trial runs.
func (s *Store) BlockedTrials(ctx context.Context, sweepID string) (int, error) {
	n, err := s.q.BlockedTrials(ctx, s.pool, sweepID)

	return n, translate(err, "counting trials that wait for a stage")
}

// StagesKnown returns the keys that have an output.
func (s *Store) StagesKnown(ctx context.Context, keys []string) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}

	known, err := s.q.StagesKnown(ctx, s.pool, keys, berth.StageSilence)

	return known, translate(err, "reading stages")
}

// putStageOutput has trials share what an attempt wrote, unless they share another output of the
// stage already.
func (s *Store) putStageOutput(ctx context.Context, tx pgx.Tx, r berth.Result) error {
	put, err := s.q.PutStageOutput(ctx, tx, &dbsqlc.PutStageOutputParams{Key: r.StageKey, Stage: r.Stage, AttemptID: r.AttemptID, Silent: berth.StageSilence})
	if err != nil || put == 0 {
		return err
	}

	return s.q.DropLaterOutputs(ctx, tx, r.AttemptID, r.StageKey)
}

// DropStageOutput forgets the output of a stage that is whole nowhere any more, so that it is
// made again.
func (s *Store) DropStageOutput(ctx context.Context, attemptID string) error {
	return translate(s.q.DropStageOutput(ctx, s.pool, attemptID), "forgetting the output of attempt "+attemptID)
}

// HeldOutputs returns which of these attempts wrote what an unfinished trial needs, or a
// container that has not ended for certain.
func (s *Store) HeldOutputs(ctx context.Context, attemptIDs []string) ([]string, error) {
	held, err := s.q.HeldOutputs(ctx, s.pool, attemptIDs)

	return held, translate(err, "reading which outputs of stages are needed")
}

// addStages has an assignee see its stage: the values that this reads, its spec, the
// outputs of the stages before it, and in a try the first run of its stage.
func (s *Store) addStages(ctx context.Context, who *berth.Assignee, keys []string) error {
	if len(keys) == 0 {
		return nil
	}

	stage, whole := who.Attempt.Stage, who.Spec
	who.ImageDigest = whole.DigestFor(stage, who.ImageDigest)
	who.Spec, who.Trial.Params = whole.ForStage(stage), whole.ValuesFor(stage, who.Trial.Params)

	before := whole.StagesBefore(stage)
	if i := whole.StageIndex(stage); i >= 0 {
		who.StageKey = keys[i]
	}

	rows, err := s.q.StageInputs(ctx, s.pool, berth.StageSilence, keys)
	if err != nil {
		return translate(err, "reading inputs of attempt "+who.Attempt.ID)
	}

	wrote := make(map[string]dbsqlc.StageInputsRow, len(rows))
	for _, row := range rows {
		wrote[row.Key] = row

		if row.Key == who.StageKey && row.Known && row.AttemptID != who.Attempt.ID && whole.RepeatsStages() {
			who.FirstRun = row.AttemptID
		}
	}

	for i, name := range before {
		row := wrote[keys[i]]
		who.Inputs = append(who.Inputs, berth.StageInput{Name: name, Key: keys[i], AttemptID: row.AttemptID, HostID: row.HostID, Stored: row.Stored})
	}

	return nil
}
