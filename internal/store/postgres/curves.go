package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/timeline"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

const (
	// mostCurvePoints is how many points Curves reads at most: about a second's
	// worth.
	mostCurvePoints = 1_000_000
	// chartsAtOnce is how many of the pool's connections charts take: placement and
	// log-ins share them.
	chartsAtOnce = 2
	// mostMetricNames bounds a list that a person reads.
	mostMetricNames = 500
)

// curvePoints reads many points, so they are not gathered first, as sqlc would.
// One statement for an attempt goes by the primary key; one for all would read the
// whole table where it is large.
const curvePoints = `SELECT step, value, status = 'finite' FROM metrics WHERE attempt_id = $1 AND name = $2 ORDER BY step LIMIT $3`

// Curves returns the points of a metric for the trials with these numbers, by
// number, each curve thinned to most points. A trial without an attempt that
// counts has no curve; a trial that did not report the metric has an empty one.
// Errors: invalid when that takes too many points to read.
func (s *Store) Curves(ctx context.Context, sweepID, name string, numbers []int, most int) ([]berth.Curve, error) {
	done, err := takeTurn(ctx, s.charts)
	if err != nil {
		return nil, err
	}
	defer done()

	rows, err := s.q.CurveAttempts(ctx, s.pool, &dbsqlc.CurveAttemptsParams{SweepID: sweepID, Name: name, Numbers: numbers})
	if err != nil {
		return nil, translate(err, "finding curves of sweep "+sweepID)
	}

	curves, thinners, attempts := make([]berth.Curve, len(rows)), make([]*timeline.Thinner, len(rows)), make([]string, len(rows))

	for i, row := range rows {
		curves[i] = berth.Curve{TrialNumber: row.TrialNumber, TrialState: berth.TrialState(row.TrialState), AttemptID: row.AttemptID}
		thinners[i], attempts[i] = timeline.NewThinner(row.Low, row.High, most), row.AttemptID
	}

	if err := s.readCurves(ctx, attempts, name, curves, thinners); err != nil {
		return nil, translate(err, "reading curves of sweep "+sweepID)
	}

	for i := range curves {
		curves[i].Points, curves[i].Total = thinners[i].Points(), thinners[i].Total()
	}

	return curves, nil
}

func (s *Store) readCurves(ctx context.Context, attempts []string, name string, curves []berth.Curve, thinners []*timeline.Thinner) error {
	return s.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		left := mostCurvePoints

		for i, attempt := range attempts {
			read, err := readCurve(ctx, conn, attempt, name, left+1, &curves[i], thinners[i])
			if err != nil {
				return err
			}

			if left -= read; left < 0 {
				return berth.Errorf(berth.KindInvalid, "the %d trials have more than %d points of %q; choose fewer trials", len(attempts), mostCurvePoints, name)
			}
		}

		return nil
	})
}

// readCurve reads at most `most` points of one attempt and returns their
// number.
func readCurve(ctx context.Context, conn *pgxpool.Conn, attempt, name string, most int, c *berth.Curve, thinner *timeline.Thinner) (read int, err error) {
	rows, err := conn.Query(ctx, curvePoints, attempt, name, most)
	if err != nil {
		return 0, err
	}

	var (
		p      berth.CurvePoint
		finite bool
	)

	_, err = pgx.ForEachRow(rows, []any{&p.Step, &p.Value, &finite}, func() error {
		read++

		switch {
		case finite:
			thinner.Add(p)
		case c.NotFinite == 0:
			c.NotFinite, c.FirstBad = 1, p.Step
		default:
			c.NotFinite++
		}

		return nil
	})

	return read, err
}

// MetricNames returns which metrics the newest berth.MostNamedTrials trials of a
// sweep reported, by name.
func (s *Store) MetricNames(ctx context.Context, sweepID string) ([]berth.MetricName, error) {
	done, err := takeTurn(ctx, s.charts)
	if err != nil {
		return nil, err
	}
	defer done()

	rows, err := s.q.MetricNames(ctx, s.pool, &dbsqlc.MetricNamesParams{SweepID: sweepID, MaxTrials: berth.MostNamedTrials, MaxRows: mostMetricNames})

	return collect(rows, err, "listing metrics of sweep "+sweepID, func(row dbsqlc.MetricNamesRow) berth.MetricName { return berth.MetricName(row) })
}
