package fake

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/timeline"
)

// PutMetrics stores points; one with the same name and step is replaced.
func (l *Ledger) PutMetrics(ctx context.Context, attemptID string, token int64, points []berth.MetricPoint) error {
	if len(points) == 0 {
		return nil
	}

	return l.hooked().PutMetrics.do(ctx, attemptID, l.step("PutMetrics", attemptID, func() error {
		if err := l.own(attemptID, token); err != nil {
			return err
		}

		if l.metrics[attemptID] == nil {
			l.metrics[attemptID] = make(map[metricKey]berth.MetricPoint)
		}

		for _, p := range points {
			l.metrics[attemptID][metricKey{p.Name, p.Step}] = p
		}

		return nil
	}))
}

// own checks the token of a writer, also after the attempt's end. Errors: fenced.
func (l *Ledger) own(attemptID string, token int64) error {
	if a := l.attempts[attemptID]; a == nil || a.Token != token {
		return berth.Errorf(berth.KindFenced, "attempt %s is not ours any more: token %d is not the current one", attemptID, token)
	}

	return nil
}

// JudgeRung stores a report and decide's answer, once for a trial and a rung.
func (l *Ledger) JudgeRung(
	ctx context.Context, attemptID string, token int64, report berth.RungReport, decide func([]berth.RungValue) berth.StopDecision,
) (decision berth.StopDecision, err error) {
	err = l.do(ctx, "JudgeRung", attemptID, func() error {
		if err := l.own(attemptID, token); err != nil {
			return err
		}

		trial := l.trials[l.attempts[attemptID].TrialID]
		key := rungKey{trial.ID, report.Rung}

		if judged, found := l.rungs[key]; found {
			decision = berth.StopDecision{Stop: judged.Stop, Why: judged.Why}

			return nil
		}

		var others []berth.RungValue

		for other, judged := range l.rungs {
			if other.rung == key.rung && l.trials[other.trial].SweepID == trial.SweepID {
				others = append(others, berth.RungValue{Value: judged.Value, Succeeded: l.trials[other.trial].State == berth.TrialSucceeded})
			}
		}

		decision = decide(others)
		l.rungs[key] = berth.Rung{Rung: report.Rung, Step: report.Step, Value: report.Value, Stop: decision.Stop, Why: decision.Why}

		return nil
	})

	return decision, err
}

// Rungs are where a trial was judged, in order.
func (l *Ledger) Rungs(trialID string) (rungs []berth.Rung) {
	l.mu.Lock()
	defer l.mu.Unlock()

	for key, rung := range l.rungs {
		if key.trial == trialID {
			rungs = append(rungs, rung)
		}
	}

	slices.SortFunc(rungs, func(a, b berth.Rung) int { return cmp.Compare(a.Rung, b.Rung) })

	return rungs
}

// DropMetrics removes all points of these names.
func (l *Ledger) DropMetrics(ctx context.Context, attemptID string, token int64, names []string) error {
	return l.do(ctx, "DropMetrics", attemptID, func() error {
		if err := l.own(attemptID, token); err != nil {
			return err
		}

		maps.DeleteFunc(l.metrics[attemptID], func(k metricKey, _ berth.MetricPoint) bool { return slices.Contains(names, k.name) })

		return nil
	})
}

// ListMetrics returns points by name and step. An empty name means all.
func (l *Ledger) ListMetrics(ctx context.Context, attemptID, name string, limit int) (points []berth.MetricPoint, err error) {
	err = l.do(ctx, "ListMetrics", attemptID, func() error {
		for _, p := range l.metrics[attemptID] {
			if name == "" || p.Name == name {
				points = append(points, p)
			}
		}

		return nil
	})

	slices.SortFunc(points, func(a, b berth.MetricPoint) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Step, b.Step))
	})

	return points[:min(limit, len(points))], err
}

// PutLog stores a piece. Of two at one offset the longer stays: another run of
// the worker cuts the same log elsewhere.
func (l *Ledger) PutLog(ctx context.Context, attemptID string, token int64, piece berth.LogPiece) error {
	return l.hooked().PutLog.do(ctx, attemptID, l.step("PutLog", attemptID, func() error {
		if err := l.own(attemptID, token); err != nil {
			return err
		}

		if l.logs[attemptID] == nil {
			l.logs[attemptID] = make(map[int64]berth.LogPiece)
		}

		if first, there := l.logs[attemptID][piece.Offset]; !there || first.Stream == piece.Stream && len(first.Data) < len(piece.Data) {
			piece.Data = slices.Clone(piece.Data)
			l.logs[attemptID][piece.Offset] = piece
		}

		return nil
	}))
}

// ReadLog returns at most limit pieces that reach beyond the offset.
func (l *Ledger) ReadLog(ctx context.Context, attemptID string, offset int64, limit int) (pieces []berth.LogPiece, err error) {
	err = l.do(ctx, "ReadLog", attemptID, func() error {
		for _, p := range l.logs[attemptID] {
			if p.Offset+int64(len(p.Data)) > offset {
				pieces = append(pieces, p)
			}
		}

		return nil
	})

	slices.SortFunc(pieces, func(a, b berth.LogPiece) int { return cmp.Compare(a.Offset, b.Offset) })

	return pieces[:min(limit, len(pieces))], err
}

// PutMemory stores points of an attempt's memory, ascending, and merges the stored ones
// into the intervals of the newest one, new or stored.
func (l *Ledger) PutMemory(ctx context.Context, attemptID string, token int64, points []berth.MemoryPoint) error {
	if len(points) == 0 {
		return nil
	}

	return l.hooked().PutMemory.do(ctx, attemptID, l.step("PutMemory", attemptID, func() error {
		if err := l.own(attemptID, token); err != nil {
			return err
		}

		newest := points[len(points)-1].Second
		if stored := l.memory[attemptID]; len(stored) > 0 {
			newest = max(newest, stored[len(stored)-1].Second)
		}

		l.memory[attemptID] = timeline.ThinMemory(slices.Concat(l.memory[attemptID], points), timeline.MemoryInterval(newest))

		return nil
	}))
}

// ListMemory returns an attempt's memory over time, ascending.
func (l *Ledger) ListMemory(ctx context.Context, attemptID string) (points []berth.MemoryPoint, err error) {
	err = l.do(ctx, "ListMemory", attemptID, func() error {
		for _, p := range l.memory[attemptID] {
			a := l.attempts[attemptID]
			p.At = cmp.Or(given(a.StartedAt), a.PlacedAt).Add(time.Duration(p.Second) * time.Second)
			points = append(points, p)
		}

		return nil
	})

	return points, err
}

func given(at *time.Time) time.Time {
	if at == nil {
		return time.Time{}
	}

	return *at
}
