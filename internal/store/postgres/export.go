package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

const (
	// exportsAtOnce is how many pages of exports are read at once: each takes a
	// connection of the pool, which placement needs as well.
	exportsAtOnce = 1
	// exportAttempts is how many attempts are read for one page of metric
	// points, with or without points.
	exportAttempts = 500
)

// ExportTrials reads the trials of a sweep that match, with a number above after, by number.
func (s *Store) ExportTrials(ctx context.Context, sweepID string, f berth.TrialFilter, after, limit int) ([]berth.ExportedTrial, error) {
	done, err := takeTurn(ctx, s.exports)
	if err != nil {
		return nil, err
	}
	defer done()

	rows, err := s.q.ExportTrials(ctx, s.pool, &dbsqlc.ExportTrialsParams{
		SweepID: sweepID, AfterNumber: after, MaxRows: limit, States: texts(f.States), ValueMin: f.ValueMin, ValueMax: f.ValueMax,
		Stage: f.Stage,
	})

	return collect(rows, err, "exporting trials of sweep "+sweepID, toExportedTrial)
}

func toExportedTrial(row dbsqlc.ExportTrialsRow) berth.ExportedTrial {
	trial := toTrial(row.Trial)
	trial.Attempts = row.Attempts
	out := berth.ExportedTrial{Trial: trial, HostName: row.HostName}

	if row.AttemptNumber == 0 {
		return out
	}

	out.Counts = &berth.Attempt{
		ID: row.AttemptID, TrialID: trial.ID, Number: row.AttemptNumber, HostID: row.HostID, DeviceID: row.DeviceID,
		Demand:   berth.Demand{MemoryBytes: row.MemoryBytes, DeviceBytes: row.DeviceBytes},
		Usage:    berth.Usage{MemoryPeakBytes: row.MemoryPeakBytes, DevicePeakBytes: row.DevicePeakBytes},
		ExitCode: row.ExitCode, Datasets: row.Datasets,
	}

	return out
}

// ExportMetrics reads the metric points of a sweep behind a key, in the order of
// keys: limit at most, and fewer where many attempts have none. next is where to
// go on; nil = there are no more. One attempt of a trial counts, also where the trial
// runs again between two pages.
func (s *Store) ExportMetrics(ctx context.Context, sweepID string, after berth.MetricKey, limit int) (points []berth.ExportedMetric, next *berth.MetricKey, err error) {
	done, err := takeTurn(ctx, s.exports)
	if err != nil {
		return nil, nil, err
	}
	defer done()

	err = s.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		attempts, err := s.q.ExportAttempts(ctx, conn, &dbsqlc.ExportAttemptsParams{
			SweepID: sweepID, FromTrial: after.Trial, FromAttempt: after.Attempt, MaxRows: exportAttempts,
		})
		if err != nil {
			return err
		}

		for i, a := range attempts {
			if a.TrialNumber == after.Trial && after.Counting > 0 {
				a.Counting = after.Counting
				attempts[i] = a
			}

			from := berth.MetricKey{Trial: a.TrialNumber, Attempt: a.AttemptNumber}
			if from.Trial == after.Trial && from.Attempt == after.Attempt {
				from = after
			}

			rows, err := s.q.ExportMetrics(ctx, conn, &dbsqlc.ExportMetricsParams{
				AttemptID: a.ID, AfterName: from.Name, AfterStep: from.Step, MaxRows: limit - len(points),
			})
			if err != nil {
				return err
			}

			for _, row := range rows {
				points = append(points, toExportedMetric(a, row))
			}

			if len(points) >= limit {
				next = new(points[len(points)-1].Key())
				next.Counting = a.Counting

				return nil
			}
		}

		if len(attempts) == exportAttempts {
			last := attempts[len(attempts)-1]
			next = &berth.MetricKey{Trial: last.TrialNumber, Attempt: last.AttemptNumber + 1, Counting: last.Counting}
		}

		return nil
	})

	return points, next, translate(err, "exporting metrics of sweep "+sweepID)
}

func toExportedMetric(a dbsqlc.ExportAttemptsRow, row dbsqlc.ExportMetricsRow) berth.ExportedMetric {
	return berth.ExportedMetric{
		TrialNumber: a.TrialNumber, AttemptNumber: a.AttemptNumber, Counts: a.AttemptNumber == a.Counting,
		MetricPoint: berth.MetricPoint{
			Name: row.Name, Step: row.Step, Value: row.Value, Status: row.Status, Final: row.Final, At: row.At,
		},
	}
}

// takeTurn waits for a place among charts or exports; the result gives it back.
func takeTurn(ctx context.Context, turns chan struct{}) (done func(), err error) {
	select {
	case turns <- struct{}{}:
		return func() { <-turns }, nil
	case <-ctx.Done():
		return nil, translate(ctx.Err(), "waiting for charts and exports of others")
	}
}
