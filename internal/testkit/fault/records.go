package fault

import (
	"context"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/reconcile"
	"github.com/berthml/berth/internal/agent/runtrial"
)

// LedgerPort is the database as hosts, the placer and a trial's workflow use it.
type LedgerPort interface {
	runtrial.Records
	reconcile.Ledger

	RequestPlacement(ctx context.Context, r berth.PlacementRequest) (berth.PlacementStatus, error)
	PlacementStatus(ctx context.Context, attemptID string) (berth.PlacementStatus, error)
	Place(ctx context.Context, decisions map[string]berth.Placement) ([]string, error)
	AbandonAttempt(ctx context.Context, attemptID, message string) error
	SuspectLeases(ctx context.Context) ([]string, error)
}

// Records is a database that fails.
type Records struct {
	*Injector

	next LedgerPort
	life *Life
}

var _ LedgerPort = (*Records)(nil)

// Records wraps the database of one process.
func (i *Injector) Records(next LedgerPort, life *Life) *Records {
	return &Records{next: next, Injector: i, life: life}
}

// ask does a call that returns something.
func ask[T any](ctx context.Context, r *Records, method, subject string, work func() (T, error)) (T, error) {
	return call(ctx, r.Injector, r.life, Ledger, method, subject, work, nil)
}

// tell wraps a call that cannot be done by half.
func (r *Records) tell(ctx context.Context, method, subject string, work func() error) error {
	_, err := ask(ctx, r, method, subject, func() (struct{}, error) { return struct{}{}, work() })

	return err
}

// Assignee is next's, or fails.
func (r *Records) Assignee(ctx context.Context, attemptID string) (berth.Assignee, error) {
	return ask(ctx, r, "Assignee", attemptID, func() (berth.Assignee, error) { return r.next.Assignee(ctx, attemptID) })
}

// AttemptRunning is next's, or fails.
func (r *Records) AttemptRunning(ctx context.Context, attemptID string, token int64, containerID string, startedAt time.Time) error {
	return r.tell(ctx, "AttemptRunning", attemptID, func() error {
		return r.next.AttemptRunning(ctx, attemptID, token, containerID, startedAt)
	})
}

// MeasureRunning is next's, or fails.
func (r *Records) MeasureRunning(ctx context.Context, attemptID string, token int64, u berth.Usage, most int64) (int64, error) {
	return ask(ctx, r, "MeasureRunning", attemptID, func() (int64, error) { return r.next.MeasureRunning(ctx, attemptID, token, u, most) })
}

// NoteWait is next's, or fails.
func (r *Records) NoteWait(ctx context.Context, attemptID string, token int64, text string) error {
	return r.tell(ctx, "NoteWait", attemptID, func() error { return r.next.NoteWait(ctx, attemptID, token, text) })
}

// EarlierCheckpoints is next's, or fails.
func (r *Records) EarlierCheckpoints(ctx context.Context, attemptID string) ([]berth.EarlierCheckpoint, error) {
	return ask(ctx, r, "EarlierCheckpoints", attemptID, func() ([]berth.EarlierCheckpoint, error) { return r.next.EarlierCheckpoints(ctx, attemptID) })
}

// NoteResumed is next's, or fails.
func (r *Records) NoteResumed(ctx context.Context, attemptID string, token int64, text string) error {
	return r.tell(ctx, "NoteResumed", attemptID, func() error { return r.next.NoteResumed(ctx, attemptID, token, text) })
}

// FinishAttempt is next's, or fails.
func (r *Records) FinishAttempt(ctx context.Context, result berth.Result) error {
	return r.tell(ctx, "FinishAttempt", result.AttemptID, func() error { return r.next.FinishAttempt(ctx, result) })
}

// PutMetrics is next's, or fails.
func (r *Records) PutMetrics(ctx context.Context, attemptID string, token int64, points []berth.MetricPoint) error {
	return r.tell(ctx, "PutMetrics", attemptID, func() error { return r.next.PutMetrics(ctx, attemptID, token, points) })
}

// DropMetrics is next's, or fails.
func (r *Records) DropMetrics(ctx context.Context, attemptID string, token int64, names []string) error {
	return r.tell(ctx, "DropMetrics", attemptID, func() error { return r.next.DropMetrics(ctx, attemptID, token, names) })
}

// PutLog is next's, or fails.
func (r *Records) PutLog(ctx context.Context, attemptID string, token int64, piece berth.LogPiece) error {
	return r.tell(ctx, "PutLog", attemptID, func() error { return r.next.PutLog(ctx, attemptID, token, piece) })
}

// PutMemory is next's, or fails.
func (r *Records) PutMemory(ctx context.Context, attemptID string, token int64, points []berth.MemoryPoint) error {
	return r.tell(ctx, "PutMemory", attemptID, func() error { return r.next.PutMemory(ctx, attemptID, token, points) })
}

// RegisterHost is next's, or fails.
func (r *Records) RegisterHost(ctx context.Context, h berth.Host, version string) error {
	return r.tell(ctx, "RegisterHost", h.ID, func() error { return r.next.RegisterHost(ctx, h, version) })
}

// TouchHost is next's, or fails.
func (r *Records) TouchHost(ctx context.Context, hostID string, free berth.HostFree, seen []berth.SeenAttempt) error {
	return r.tell(ctx, "TouchHost", hostID, func() error { return r.next.TouchHost(ctx, hostID, free, seen) })
}

// HostLeases is next's, or fails.
func (r *Records) HostLeases(ctx context.Context, hostID string) ([]berth.HostLease, error) {
	return ask(ctx, r, "HostLeases", hostID, func() ([]berth.HostLease, error) { return r.next.HostLeases(ctx, hostID) })
}

// LeasesOf is next's, or fails.
func (r *Records) LeasesOf(ctx context.Context, attemptIDs []string) ([]berth.HostLease, error) {
	return ask(ctx, r, "LeasesOf", strings.Join(attemptIDs, " "), func() ([]berth.HostLease, error) { return r.next.LeasesOf(ctx, attemptIDs) })
}

// ReleaseLease is next's, or fails.
func (r *Records) ReleaseLease(ctx context.Context, attemptID, proof string) error {
	return r.tell(ctx, "ReleaseLease", attemptID, func() error { return r.next.ReleaseLease(ctx, attemptID, proof) })
}

// RequestPlacement is next's, or fails.
func (r *Records) RequestPlacement(ctx context.Context, p berth.PlacementRequest) (berth.PlacementStatus, error) {
	return ask(ctx, r, "RequestPlacement", p.AttemptID, func() (berth.PlacementStatus, error) { return r.next.RequestPlacement(ctx, p) })
}

// PlacementStatus is next's, or fails.
func (r *Records) PlacementStatus(ctx context.Context, attemptID string) (berth.PlacementStatus, error) {
	return ask(ctx, r, "PlacementStatus", attemptID, func() (berth.PlacementStatus, error) { return r.next.PlacementStatus(ctx, attemptID) })
}

// Place is next's, or fails.
func (r *Records) Place(ctx context.Context, decisions map[string]berth.Placement) ([]string, error) {
	return ask(ctx, r, "Place", "", func() ([]string, error) { return r.next.Place(ctx, decisions) })
}

// AbandonAttempt is next's, or fails.
func (r *Records) AbandonAttempt(ctx context.Context, attemptID, message string) error {
	return r.tell(ctx, "AbandonAttempt", attemptID, func() error { return r.next.AbandonAttempt(ctx, attemptID, message) })
}

// SuspectLeases is next's, or fails.
func (r *Records) SuspectLeases(ctx context.Context) ([]string, error) {
	return ask(ctx, r, "SuspectLeases", "", func() ([]string, error) { return r.next.SuspectLeases(ctx) })
}
