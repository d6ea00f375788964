package postgres

import (
	"context"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/postgres/dbsqlc"
)

// ListMarks reads how everything stands that hints tell of, by one statement: of these
// sweeps, none given means of all, and of every host.
func (s *Store) ListMarks(ctx context.Context, sweepIDs []string) ([]berth.Mark, error) {
	rows, err := s.q.ListMarks(ctx, s.pool, append([]string{}, sweepIDs...), berth.HostLostAfter)
	if err != nil {
		return nil, translate(err, "looking for what is fresh")
	}

	marks := make([]berth.Mark, 0, 2*len(rows))

	for _, row := range rows {
		mark := berth.Mark{Subject: row.Subject, SweepID: row.SweepID, Value: row.Value, At: row.At.UTC()}

		switch row.Kind {
		case "host":
			mark.Kind = berth.HintHostSilent
		case "waiting":
			mark.Kind = berth.HintWaiting
		default:
			mark.Kind = berth.HintMemory
			mark.Value = row.Memory

			if row.Value != 0 {
				metrics := mark
				metrics.Kind, metrics.Value = berth.HintMetrics, row.Value
				marks = append(marks, metrics)
			}
		}

		if row.Kind != "points" || row.Memory != 0 {
			marks = append(marks, mark)
		}
	}

	return marks, nil
}

// ListHints says what marks that have changed are about, by at most two statements. What
// is not there any more is left out.
func (s *Store) ListHints(ctx context.Context, changed []berth.Mark) ([]berth.Hint, error) {
	var (
		hints            []berth.Hint
		attempts, queued []string
	)

	wanted := make(map[string]map[berth.HintKind]bool)

	for _, m := range changed {
		switch m.Kind {
		case berth.HintHostSilent:
			hints = append(hints, hostHint(m))
		case berth.HintWaiting:
			queued = append(queued, m.Subject)
		default:
			if wanted[m.Subject] == nil {
				wanted[m.Subject] = make(map[berth.HintKind]bool, 2)
				attempts = append(attempts, m.Subject)
			}

			wanted[m.Subject][m.Kind] = true
		}
	}

	if len(queued) > 0 {
		rows, err := s.q.ListWaitingReasons(ctx, s.pool, queued)
		if err != nil {
			return nil, translate(err, "reading why attempts wait")
		}

		for _, row := range rows {
			hints = append(hints, berth.Hint{
				Kind: berth.HintWaiting, Subject: row.AttemptID, SweepID: row.SweepID, TrialNumber: int(row.TrialNumber),
				At: row.At.UTC(), Waiting: toReasons(row.Reasons),
			})
		}
	}

	if len(attempts) == 0 {
		return hints, nil
	}

	rows, err := s.q.ListNewestPoints(ctx, s.pool, attempts)
	if err != nil {
		return nil, translate(err, "reading the newest points of attempts")
	}

	for _, row := range rows {
		if wanted[row.ID][berth.HintMetrics] {
			hints = append(hints, metricsHint(row))
		}

		if wanted[row.ID][berth.HintMemory] {
			hints = append(hints, memoryHint(row))
		}
	}

	return hints, nil
}

func hostHint(m berth.Mark) berth.Hint {
	kind := berth.HintHostBack
	if m.Value != 0 {
		kind = berth.HintHostSilent
	}

	return berth.Hint{Kind: kind, Subject: m.Subject, At: m.At}
}

func metricsHint(row dbsqlc.ListNewestPointsRow) berth.Hint {
	h := berth.Hint{
		Kind: berth.HintMetrics, Subject: row.ID, SweepID: row.SweepID, TrialNumber: int(row.TrialNumber), At: deref(row.MetricsAt).UTC(),
	}

	if row.Status != "" {
		h.Metric = &berth.MetricPoint{
			Name: row.Name, Step: row.Step, Value: row.Value, Status: berth.MetricStatus(row.Status), Final: row.Final, At: row.At.UTC(),
		}
	}

	return h
}

func memoryHint(row dbsqlc.ListNewestPointsRow) berth.Hint {
	h := berth.Hint{
		Kind: berth.HintMemory, Subject: row.ID, SweepID: row.SweepID, TrialNumber: int(row.TrialNumber), At: deref(row.MemoryAt).UTC(),
	}

	if row.AtSecond != notMeasured {
		h.Memory = &berth.MemoryPoint{
			Second: int(row.AtSecond), At: row.MemoryFrom.UTC(), HostBytes: measured(row.HostBytes), DeviceBytes: measured(row.DeviceBytes),
		}
	}

	return h
}
