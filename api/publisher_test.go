package api_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// Health reports failing rounds, and their recovery.
func TestPublisher_NotesHowRoundsEnd(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.Exec("ALTER SEQUENCE event_sequence RENAME TO away")

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- (&api.Publisher{Store: store.Store, Log: slog.New(slog.DiscardHandler)}).Run(ctx) }()

	fails := func() bool {
		store.Exec("INSERT INTO events (kind, sweep_id, subject, data, created_at) VALUES ('sweep.state', $1, 'a', '1', now())", apitest.SweepID) // wakes it

		state, err := store.Health(t.Context())
		require.NoError(t, err)

		return state.FailingRounds[health.PartEvents] != ""
	}

	require.Eventually(t, fails, 20*time.Second, 20*time.Millisecond)

	store.Exec("ALTER SEQUENCE away RENAME TO event_sequence")
	require.Eventually(t, func() bool { return !fails() }, 20*time.Second, 20*time.Millisecond)

	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
}
