package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// JudgeRung stores what an attempt reported at a rung with decide's answer, and returns
// that. A trial is judged at a rung once: later reports, also of a later attempt, get the
// stored answer. decide sees what other trials of the sweep reported there. Errors: fenced.
func (s *Store) JudgeRung(
	ctx context.Context, attemptID string, token int64, report berth.RungReport, decide func(others []berth.RungValue) berth.StopDecision,
) (decision berth.StopDecision, err error) {
	err = s.inTx(ctx, "judging attempt "+attemptID, func(tx pgx.Tx) error {
		owners, err := s.q.RungOwner(ctx, tx, attemptID, token)
		if err := fencedError(int64(len(owners)), err, attemptID, token); err != nil {
			return err
		}

		owner := owners[0]
		if err := s.q.LockRung(ctx, tx, owner.SweepID, report.Rung); err != nil {
			return err
		}

		answers, err := s.q.RungAnswer(ctx, tx, owner.TrialID, report.Rung)
		if err != nil {
			return err
		}

		if len(answers) > 0 {
			decision = berth.StopDecision(answers[0])

			return nil
		}

		rows, err := s.q.RungValues(ctx, tx, &dbsqlc.RungValuesParams{SweepID: owner.SweepID, Rung: report.Rung, TrialID: owner.TrialID})
		if err != nil {
			return err
		}

		decision = decide(convertAll(rows, func(row dbsqlc.RungValuesRow) berth.RungValue { return berth.RungValue(row) }))

		return s.q.InsertRung(ctx, tx, &dbsqlc.InsertRungParams{
			TrialID: owner.TrialID, Rung: report.Rung, SweepID: owner.SweepID, Step: report.Step, Value: report.Value,
			Stop: decision.Stop, Ended: report.Ended, Why: decision.Why,
		})
	})

	return decision, err
}

// ListRungs returns where a trial was judged by early stopping, in order.
func (s *Store) ListRungs(ctx context.Context, trialID string) ([]berth.Rung, error) {
	rows, err := s.q.ListRungs(ctx, s.pool, trialID)

	return collect(rows, err, "listing rungs of trial "+trialID, func(row dbsqlc.ListRungsRow) berth.Rung { return berth.Rung(row) })
}
