package postgres

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

const (
	// mostCompared is how many outputs of a stage its key is compared with: each brings its sweep's file.
	mostCompared = 100
	// forgottenWhy is why the files of a forgotten stage are removed.
	forgottenWhy = "its stage was forgotten"
	// afterKeys sorts after all keys.
	afterKeys = "g"
)

// ListStages returns up to limit stages with an output after a position, newest output first.
// With a sweep it returns the stages that its trials use; stages without an output come first.
func (s *Store) ListStages(ctx context.Context, sweepID string, after berth.StagePosition, limit int) ([]berth.StageRecord, error) {
	const doing = "listing stages"

	at, key := after.At, cmp.Or(after.Key, afterKeys)
	if at.IsZero() {
		at = berth.NoOutput
	}

	var (
		rows []dbsqlc.PageOutputsRow
		err  error
	)

	if sweepID == "" {
		rows, err = s.q.PageOutputs(ctx, s.pool, &dbsqlc.PageOutputsParams{BeforeAt: at, BeforeKey: key, MaxRows: limit})
	} else {
		var used []dbsqlc.PageSweepStagesRow

		used, err = s.q.PageSweepStages(ctx, s.pool, &dbsqlc.PageSweepStagesParams{
			None: berth.NoOutput, SweepID: sweepID, BeforeAt: at, BeforeKey: key, MaxRows: limit,
		})
		rows = convertAll(used, func(row dbsqlc.PageSweepStagesRow) dbsqlc.PageOutputsRow { return dbsqlc.PageOutputsRow(row) })
	}

	if err != nil {
		return nil, translate(err, doing)
	}

	keys := convertAll(rows, func(row dbsqlc.PageOutputsRow) string { return row.Key })
	stages, err := s.q.StagesByKey(ctx, s.pool, berth.StageSilence, keys)

	return collect(inOrder(keys, stages, func(row dbsqlc.StagesByKeyRow) string { return row.Key }), err, doing, toStageRecord)
}

// FindStage returns the one stage whose key starts with prefix. Errors: not_found; conflict
// when several do.
func (s *Store) FindStage(ctx context.Context, prefix string) (berth.StageRecord, error) {
	keys, err := s.q.FindStages(ctx, s.pool, prefix)
	if err != nil {
		return berth.StageRecord{}, translate(err, "finding stage")
	}

	key, err := onlyOne(keys, "stages have a key", prefix)
	if err != nil {
		return berth.StageRecord{}, err
	}

	rows, err := s.q.StagesByKey(ctx, s.pool, berth.StageSilence, []string{key})
	if err != nil {
		return berth.StageRecord{}, translate(err, "reading stage "+key)
	}

	return onlyOne(convertAll(rows, toStageRecord), "stages have a key", prefix)
}

func toStageRecord(row dbsqlc.StagesByKeyRow) berth.StageRecord {
	stage := berth.StageRecord{
		Key: row.Key, Stage: row.Stage, SweepID: row.SweepID, SweepName: row.SweepName, Trial: row.Trial,
		OpenTrials: row.OpenTrials, EndedTrials: row.EndedTrials, Held: row.Held || row.OpenTrials > 0,
	}

	if row.AttemptID != "" {
		stage.Output = &berth.StageOutput{
			AttemptID: row.AttemptID, HostID: row.HostID, HostName: row.HostName, MadeAt: row.MadeAt, Took: row.Took,
			Files: row.Files, Bytes: row.Bytes, Lost: row.Lost,
		}
	}

	return stage
}

// StageSources returns the source of a stage's key, and after it the sources of the newest other
// outputs of the same stage, up to 100.
func (s *Store) StageSources(ctx context.Context, stage berth.StageRecord) ([]berth.StageSource, error) {
	rows, err := s.q.StageSources(ctx, s.pool, &dbsqlc.StageSourcesParams{
		Key: stage.Key, SweepID: stage.SweepID, Trial: stage.Trial, Stage: stage.Stage, MaxRows: mostCompared,
	})

	return collect(rows, err, "comparing stage "+stage.Key, func(row dbsqlc.StageSourcesRow) berth.StageSource {
		return berth.StageSource{Key: row.Key, Sweep: toSweep(row.Sweep), Trial: row.Trial, Params: row.Params}
	})
}

// ForgetStage forgets the output of a stage, and has its host remove the files: the next
// trial that needs it runs the stage again. Errors: not_found without an output; conflict while
// an unfinished trial needs it, or a container may read it.
func (s *Store) ForgetStage(ctx context.Context, key string) error {
	return s.inTx(ctx, "forgetting stage "+key, func(tx pgx.Tx) error {
		forgotten, err := s.q.ForgetStageOutput(ctx, tx, key, forgottenWhy)
		if err != nil {
			return err
		}

		if forgotten > 0 {
			return s.forgetLater(ctx, tx, key)
		}

		holders, err := s.q.StageHolders(ctx, tx, key)

		switch {
		case err != nil:
			return err
		case len(holders) == 0:
			return berth.Errorf(berth.KindNotFound, "stage %s has no output", key)
		case holders[0].Open:
			return berth.Errorf(berth.KindConflict, "trials of sweep %s (%s) that have not ended need it; forget it when they have ended, or cancel that sweep",
				holders[0].Name, holders[0].ID)
		default:
			return berth.Errorf(berth.KindConflict, "containers of sweep %s (%s) that read it are still being removed; try again in a moment",
				holders[0].Name, holders[0].ID)
		}
	})
}

// forgetLater forgets what later stages made of a forgotten output.
func (s *Store) forgetLater(ctx context.Context, tx pgx.Tx, key string) error {
	later, err := s.q.LaterOutputs(ctx, tx, key)

	for _, output := range later {
		if err == nil {
			_, err = s.q.ForgetStageOutput(ctx, tx, output.Key, forgottenWhy)
		}
	}

	return err
}
