package retention_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/retention"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// removals is a database that asks for removals.
type removals struct {
	mu    sync.Mutex
	asked []berth.OutputRemoval
	done  []string

	failed []string
}

func (r *removals) OutputRemovals(context.Context, string, int) ([]berth.OutputRemoval, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.asked, nil
}

func (r *removals) OutputsRemoved(_ context.Context, _ string, ids, failed []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.done, r.failed = append(r.done, ids...), failed

	return nil
}

// files remove everything but the attempt "stuck".
type files struct{}

func (files) RemoveOutputs(r berth.OutputRemoval) error {
	if r.AttemptID == "stuck" {
		return errors.New("device busy")
	}

	return nil
}

// One attempt whose files cannot be removed keeps no other from it, and is
// asked for again.
func TestRemover(t *testing.T) {
	t.Parallel()

	ledger := &removals{asked: []berth.OutputRemoval{{AttemptID: "stuck"}, {AttemptID: "a"}}}
	remover := &retention.Remover{Removals: ledger, Files: files{}, HostID: "h", Every: time.Millisecond, Log: slog.New(slog.DiscardHandler)}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)

	go func() { ended <- remover.Run(ctx) }()

	require.Eventually(t, func() bool {
		ledger.mu.Lock()
		defer ledger.mu.Unlock()

		return len(ledger.done) >= 2
	}, 10*time.Second, time.Millisecond)

	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NotContains(t, ledger.done, "stuck")
	require.Contains(t, ledger.done, "a")
	require.Equal(t, []string{"stuck"}, ledger.failed, "asked for again after all others")
}

// limits is a database with so many steps of work.
type limits struct {
	steps int
	calls chan berth.Retention
}

func (l *limits) Lead(ctx context.Context, _ string, lead func(context.Context) error) error {
	return lead(ctx)
}

func (l *limits) Retain(_ context.Context, keep berth.Retention) (bool, error) {
	l.steps--
	l.calls <- keep

	return l.steps > 0, nil
}

func TestKeeper_GoesOnUntilNothingIsOverItsLimit(t *testing.T) {
	t.Parallel()

	ledger := &limits{steps: 3, calls: make(chan berth.Retention)}
	keeper := &retention.Keeper{Ledger: ledger, Keep: berth.Retention{Logs: time.Hour}, Every: time.Hour, Log: slog.New(slog.DiscardHandler)}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)

	go func() { ended <- keeper.Run(ctx) }()

	for range 3 {
		require.Equal(t, time.Hour, (<-ledger.calls).Logs)
	}

	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Zero(t, ledger.steps, "and then waits")
}
