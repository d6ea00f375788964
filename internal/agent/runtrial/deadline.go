package runtrial

import (
	"context"
	"time"

	"github.com/berthml/berth"
)

// recordTimeout bounds one call of the database: its statements end after 5 s,
// connecting takes 3 s and asking a connection whether it lives 2 s at most
// (internal/store/postgres). A connection into a black hole ends by nothing else:
// pgxpool sets no limit of its own.
const recordTimeout = 10 * time.Second

// timely gives every call of the records a deadline, so that none can hold an
// attempt for ever.
type timely struct{ records Records }

func timed(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()

	return call(ctx)
}

func (t timely) Assignee(ctx context.Context, attemptID string) (berth.Assignee, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()

	return t.records.Assignee(ctx, attemptID)
}

func (t timely) AttemptRunning(ctx context.Context, attemptID string, token int64, containerID string, startedAt time.Time) error {
	return timed(ctx, func(ctx context.Context) error {
		return t.records.AttemptRunning(ctx, attemptID, token, containerID, startedAt)
	})
}

func (t timely) MeasureRunning(ctx context.Context, attemptID string, token int64, u berth.Usage, most int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()

	return t.records.MeasureRunning(ctx, attemptID, token, u, most)
}

func (t timely) NoteWait(ctx context.Context, attemptID string, token int64, text string) error {
	return timed(ctx, func(ctx context.Context) error { return t.records.NoteWait(ctx, attemptID, token, text) })
}

func (t timely) EarlierCheckpoints(ctx context.Context, attemptID string) ([]berth.EarlierCheckpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()

	return t.records.EarlierCheckpoints(ctx, attemptID)
}

func (t timely) NoteResumed(ctx context.Context, attemptID string, token int64, text string) error {
	return timed(ctx, func(ctx context.Context) error { return t.records.NoteResumed(ctx, attemptID, token, text) })
}

func (t timely) FinishAttempt(ctx context.Context, r berth.Result) error {
	return timed(ctx, func(ctx context.Context) error { return t.records.FinishAttempt(ctx, r) })
}

func (t timely) DropStageOutput(ctx context.Context, attemptID string) error {
	return timed(ctx, func(ctx context.Context) error { return t.records.DropStageOutput(ctx, attemptID) })
}

func (t timely) HeldOutputs(ctx context.Context, attemptIDs []string) (held []string, err error) {
	err = timed(ctx, func(ctx context.Context) error {
		held, err = t.records.HeldOutputs(ctx, attemptIDs)

		return err
	})

	return held, err
}

func (t timely) ListFiles(ctx context.Context, attemptID, after string, limit int) (files []berth.Artifact, err error) {
	err = timed(ctx, func(ctx context.Context) error {
		files, err = t.records.ListFiles(ctx, attemptID, after, limit)

		return err
	})

	return files, err
}

func (t timely) PutMetrics(ctx context.Context, attemptID string, token int64, points []berth.MetricPoint) error {
	return timed(ctx, func(ctx context.Context) error { return t.records.PutMetrics(ctx, attemptID, token, points) })
}

func (t timely) JudgeRung(
	ctx context.Context, attemptID string, token int64, report berth.RungReport, decide func([]berth.RungValue) berth.StopDecision,
) (berth.StopDecision, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()

	return t.records.JudgeRung(ctx, attemptID, token, report, decide)
}

func (t timely) DropMetrics(ctx context.Context, attemptID string, token int64, names []string) error {
	return timed(ctx, func(ctx context.Context) error { return t.records.DropMetrics(ctx, attemptID, token, names) })
}

func (t timely) PutLog(ctx context.Context, attemptID string, token int64, piece berth.LogPiece) error {
	return timed(ctx, func(ctx context.Context) error { return t.records.PutLog(ctx, attemptID, token, piece) })
}

func (t timely) PutMemory(ctx context.Context, attemptID string, token int64, points []berth.MemoryPoint) error {
	return timed(ctx, func(ctx context.Context) error { return t.records.PutMemory(ctx, attemptID, token, points) })
}
