package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/postgres/dbsqlc"
)

const (
	// mostCurvePoints is what Curves reads at most: five seconds' worth, which is
	// when PostgreSQL ends a statement that a person waits for.
	mostCurvePoints = 5_000_000
	// mostMetricNames bounds a list that a person reads.
	mostMetricNames = 500
)

// curvePoints reads many points, so they are not gathered first, as sqlc would.
const curvePoints = `SELECT c.at::integer - 1, m.step, m.value, m.status = 'finite'
FROM unnest($1::uuid[]) WITH ORDINALITY AS c (attempt_id, at) JOIN metrics m ON m.attempt_id = c.attempt_id AND m.name = $2
ORDER BY c.at, m.step
LIMIT $3`

// Curves returns what the trials of these numbers reported of a metric, by
// number, each thinned to most points. A trial without an attempt that counts has
// no curve; one that did not report the metric has an empty one. Errors: invalid
// when that takes too many points to read.
func (s *Store) Curves(ctx context.Context, sweepID, name string, numbers []int, most int) ([]berth.Curve, error) {
	wanted := make([]int32, len(numbers))
	for i, n := range numbers {
		wanted[i] = int32Of(n)
	}

	rows, err := s.q.CurveAttempts(ctx, s.pool, &dbsqlc.CurveAttemptsParams{SweepID: sweepID, Name: name, Numbers: wanted})
	if err != nil {
		return nil, translate(err, "finding curves of sweep "+sweepID)
	}

	curves, thinners, attempts := make([]berth.Curve, len(rows)), make([]*berth.Thinner, len(rows)), make([]string, len(rows))

	for i, row := range rows {
		curves[i] = berth.Curve{TrialNumber: int(row.TrialNumber), TrialState: berth.TrialState(row.TrialState), AttemptID: row.AttemptID}
		thinners[i], attempts[i] = berth.NewThinner(row.Low, row.High, most), row.AttemptID
	}

	if err := s.readCurves(ctx, attempts, name, curves, thinners); err != nil {
		return nil, translate(err, "reading curves of sweep "+sweepID)
	}

	for i := range curves {
		curves[i].Points, curves[i].Total = thinners[i].Points(), thinners[i].Total()
	}

	return curves, nil
}

func (s *Store) readCurves(ctx context.Context, attempts []string, name string, curves []berth.Curve, thinners []*berth.Thinner) error {
	rows, err := s.pool.Query(ctx, curvePoints, attempts, name, mostCurvePoints+1)
	if err != nil {
		return err
	}

	var (
		i, read int
		p       berth.CurvePoint
		finite  bool
	)

	_, err = pgx.ForEachRow(rows, []any{&i, &p.Step, &p.Value, &finite}, func() error {
		if read++; read > mostCurvePoints {
			return berth.Errorf(berth.KindInvalid, "the %d trials have more than %d points of %q; choose fewer trials", len(attempts), mostCurvePoints, name)
		}

		c := &curves[i]

		switch {
		case finite:
			thinners[i].Add(p)
		case c.NotFinite == 0:
			c.NotFinite, c.FirstBad = 1, p.Step
		default:
			c.NotFinite++
		}

		return nil
	})

	return err
}

// MetricNames returns which metrics the newest berth.MostNamedTrials trials of a
// sweep reported, by name.
func (s *Store) MetricNames(ctx context.Context, sweepID string) ([]berth.MetricName, error) {
	rows, err := s.q.MetricNames(ctx, s.pool, &dbsqlc.MetricNamesParams{SweepID: sweepID, MaxTrials: berth.MostNamedTrials, MaxRows: mostMetricNames})
	if err != nil {
		return nil, translate(err, "listing metrics of sweep "+sweepID)
	}

	return convertAll(rows, func(row dbsqlc.MetricNamesRow) (berth.MetricName, error) {
		return berth.MetricName{Name: row.Name, Trials: int(row.Trials), LastStep: row.LastStep}, nil
	})
}
