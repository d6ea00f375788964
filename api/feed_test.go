package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/testkit/apitest"
)

// A watcher of an idle sweep reads nothing from the database, however much happens
// in others.
func TestFeed_AQuietWatcherStaysInMemory(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	f := newFeed(store.Store)
	f.readEvents(t.Context())

	quiet, seen := []string{apitest.NewID(1)}, int64(0)

	for range 3 * feedKeep / feedBatch {
		store.PublishMany(t, feedBatch, "trial.state", apitest.NewID(2), "busy", `"running"`)

		f.readEvents(t.Context())

		n, err := f.after(t.Context(), seen, quiet)
		require.NoError(t, err)
		require.Empty(t, n.events)
		require.Greater(t, n.seen, seen)

		seen = n.seen
	}

	store.Publish(t, "trial.state", apitest.NewID(1), "quiet", "running")
	f.readEvents(t.Context())

	n, err := f.after(t.Context(), 1, quiet)
	require.NoError(t, err)
	require.Len(t, n.events, 1, "one that was away for long finds it in the database")
	require.Equal(t, n.events[0].Sequence, n.seen)

	store.Close()

	n, err = f.after(t.Context(), seen, quiet)
	require.NoError(t, err, "no database is needed")
	require.Len(t, n.events, 1)
}
