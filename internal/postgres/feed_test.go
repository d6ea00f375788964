package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/pgtest"
)

// Readers follow the sequence, so a batch must keep the order of one thing's
// events.
func TestPublishEvents_KeepsTheOrder(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	pool := openPool(t, url)
	b := setupOn(t, url)

	_, err := pool.Exec(t.Context(), `INSERT INTO events (kind, sweep_id, subject, data)
		SELECT 'trial.state', $1, 'x', to_jsonb(n) FROM generate_series(1, 25) n`, b.sweep)
	require.NoError(t, err)

	for {
		n, err := b.store.PublishEvents(t.Context(), 10)
		require.NoError(t, err)

		if n < 10 {
			break
		}
	}

	events, err := b.store.ListEvents(t.Context(), 0, []string{b.sweep}, 100)
	require.NoError(t, err)

	got := make([]string, 0, 25)
	for _, e := range events {
		if e.Subject == "x" {
			got = append(got, fmt.Sprintf("%s", e.Data))
		}
	}

	require.Len(t, got, 25)

	for i, data := range got {
		require.Equal(t, fmt.Sprint(i+1), data)
	}
}

// A database was restored from a copy while its original went on. The copy keeps no
// event after any sequence of the original.
func TestBeginHistory_KnowsNoSequenceOfBefore(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	pool := openPool(t, url)
	b := setupOn(t, url)
	publish := func() {
		_, err := pool.Exec(t.Context(), "INSERT INTO events (kind, subject) VALUES ('trial.state', 'x'), ('trial.state', 'y')")
		require.NoError(t, err)

		_, err = b.store.PublishEvents(t.Context(), 100)
		require.NoError(t, err)
	}

	publish()

	_, copied, err := b.store.EventRange(t.Context())
	require.NoError(t, err)

	_, err = pool.Exec(t.Context(), "INSERT INTO events (kind, subject) VALUES ('trial.state', 'not published')")
	require.NoError(t, err)
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

	begin, _, err := b.store.EventRange(t.Context())
	require.NoError(t, err)
	require.Equal(t, first, begin)
}

// Two databases restored from one dump, one after the other, never give the same sequences.
func TestBeginHistory_OfTwoRestoresOfOneDump(t *testing.T) {
	t.Parallel()

	began := func() int64 {
		store := pgtest.Store(t)
		require.NoError(t, store.BeginHistory(t.Context()))

		first, _, err := store.EventRange(t.Context())
		require.NoError(t, err)

		return first
	}

	first := began()
	require.Greater(t, began(), first+1000, "it made a database meanwhile")
}

// Many notifications that came while a round ran wake once or twice, not each.
func TestListen_GathersNotifications(t *testing.T) {
	t.Parallel()

	const notifications, most = 300, 20

	url := pgtest.URL(t)
	store, pool := open(t, url), openPool(t, url)
	ctx, stop := context.WithCancel(t.Context())
	listening, sent, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)

	var wakes atomic.Int64

	go func() {
		done <- store.ListenPlacer(ctx, time.Minute, func() {
			if wakes.Add(1) == 1 {
				close(listening)
				<-sent
			}
		})
	}()

	<-listening

	for range notifications {
		_, err := pool.Exec(t.Context(), "SELECT pg_notify('berth_placer', '')")
		require.NoError(t, err)
	}

	close(sent)

	require.Eventually(t, func() bool { return wakes.Load() > 1 }, 10*time.Second, time.Millisecond)
	require.Never(t, func() bool { return wakes.Load() > most }, 300*time.Millisecond, 10*time.Millisecond) //nolint:forbidigo // reads a number only

	stop()
	require.ErrorIs(t, <-done, context.Canceled)
}
