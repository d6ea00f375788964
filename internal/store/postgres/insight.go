package postgres

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/insight"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// InsightInput reads the input of a sweep's insight, in the order of charts.
func (s *Store) InsightInput(ctx context.Context, sweep berth.Sweep) (insight.Input, error) {
	in := insight.Input{Objective: sweep.Spec.Objective, Parameters: sweep.Spec.Parameters, From: 1}

	done, err := takeTurn(ctx, s.charts)
	if err != nil {
		return in, err
	}
	defer done()

	err = s.inSnapshot(ctx, "reading trials of sweep "+sweep.ID, func(tx pgx.Tx) error {
		oldest, err := s.q.OldestOfEnded(ctx, tx, sweep.ID, insight.MaxEnded-1)
		if err != nil {
			return err
		}

		for _, number := range oldest { // one, or none
			in.From = number
		}

		trials, err := s.q.InsightTrials(ctx, tx, sweep.ID, in.From)
		if err != nil {
			return err
		}

		in.Trials = convertAll(trials, func(row dbsqlc.InsightTrialsRow) insight.Trial { return insight.Trial(row) })

		rungs, err := s.q.InsightRungs(ctx, tx, &dbsqlc.InsightRungsParams{
			Maximize: in.Objective != nil && in.Objective.Goal == berth.GoalMaximize,
			SweepID:  sweep.ID, MaxRungs: insight.MaxRungs, FromNumber: in.From,
		})
		in.Rungs = convertAll(rungs, toInsightRung)

		return err
	})

	return in, err
}

func toInsightRung(row dbsqlc.InsightRungsRow) insight.Rung {
	return insight.Rung{
		Rung: row.Rung, Step: row.Step, LastStep: row.LastStep, Trials: row.Trials, Stopped: row.Stopped,
		Best: numberOrNil(row.Best), Cut: numberOrNil(row.Cut),
	}
}

func numberOrNil(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}

	return &v
}
