package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/testkit/pgtest"
)

// Readers follow the sequence, so a batch must keep the order of one thing's
// events.
func TestPublishEvents_KeepsTheOrder(t *testing.T) {
	t.Parallel()

	b := bare(t)
	b.exec(t, `INSERT INTO events (kind, subject, data) SELECT 'trial.state', 'x', to_jsonb(n) FROM generate_series(1, 25) n`)

	for n := 10; n == 10; {
		var err error

		n, err = b.store.PublishEvents(t.Context(), 10)
		require.NoError(t, err)
	}

	events, err := b.store.ListEvents(t.Context(), 0, nil, 100)
	require.NoError(t, err)
	require.Len(t, events, 25)

	for i, e := range events {
		require.Equal(t, fmt.Sprint(i+1), fmt.Sprintf("%s", e.Data))
	}
}

// A database was restored from a copy while its original went on. The copy keeps no
// event after any sequence of the original, nor of another copy.
func TestBeginHistory_KnowsNoSequenceOfBefore(t *testing.T) {
	t.Parallel()

	b := bare(t)
	publish := func() {
		b.exec(t, "INSERT INTO events (kind, subject) VALUES ('trial.state', 'x'), ('trial.state', 'y')")

		_, err := b.store.PublishEvents(t.Context(), 100)
		require.NoError(t, err)
	}

	publish()

	_, copied, err := b.store.EventRange(t.Context())
	require.NoError(t, err)
	b.exec(t, "INSERT INTO events (kind, subject) VALUES ('trial.state', 'not published')")
	require.NoError(t, b.store.BeginHistory(t.Context()))

	first, last, err := b.store.EventRange(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, last)
	require.Greater(t, first, copied+100_000_000, "more than the original gave since the copy")

	publish()

	events, err := b.store.ListEvents(t.Context(), first, nil, 100)
	require.NoError(t, err)
	require.Len(t, events, 3)
	require.Equal(t, "not published", events[0].Subject)
	require.Equal(t, first+1, events[0].Sequence)

	second := pgtest.Store(t)
	require.NoError(t, second.BeginHistory(t.Context()))

	other, _, err := second.EventRange(t.Context())
	require.NoError(t, err)
	require.Greater(t, other, first+1000, "another copy made a database meanwhile")
}

// Many notifications that came while a round ran wake once or twice, not each.
func TestListen_GathersNotifications(t *testing.T) {
	t.Parallel()

	const notifications, most = 300, 20

	b := bare(t)
	ctx, stop := context.WithCancel(t.Context())
	listening, sent, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)

	var wakes atomic.Int64

	go func() {
		done <- b.store.ListenPlacer(ctx, time.Minute, func() {
			if wakes.Add(1) == 1 {
				close(listening)
				<-sent
			}
		})
	}()

	<-listening

	for range notifications {
		b.exec(t, "SELECT pg_notify('berth_placer', '')")
	}

	close(sent)

	require.Eventually(t, func() bool { return wakes.Load() > 1 }, 10*time.Second, time.Millisecond)
	require.Never(t, func() bool { return wakes.Load() > most }, 300*time.Millisecond, 10*time.Millisecond) //nolint:forbidigo // reads a number only

	stop()
	require.ErrorIs(t, <-done, context.Canceled)
}
