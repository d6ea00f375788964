package postgres_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

func TestOpenSweeps(t *testing.T) {
	t.Parallel()

	store := pgtest.Store(t)
	person := "person " + uuid.NewString()
	submit := func(key string) string {
		id, _, err := store.CreateSweep(t.Context(), berth.NewSweep{
			ID: uuid.NewString(), Spec: berth.Spec{Name: "s"}, ImageDigest: "sha256:1", CreatedBy: person, Route: "POST /sweeps", Key: key, BodyHash: []byte("b"),
		})
		require.NoError(t, err)

		return id
	}
	requireOpen := func(open int, known bool, route, key string) {
		t.Helper()

		gotOpen, gotKnown, err := store.OpenSweeps(t.Context(), person, route, key)
		require.NoError(t, err)
		require.Equal(t, open, gotOpen)
		require.Equal(t, known, gotKnown)
	}

	requireOpen(0, false, "POST /sweeps", "1")

	first := submit("1")
	submit("2")
	submit("2") // is the same
	requireOpen(2, true, "POST /sweeps", "1")
	requireOpen(2, false, "POST /sweeps", "3")
	requireOpen(2, false, "POST /other", "1")

	for _, state := range []berth.SweepState{berth.SweepRunning, berth.SweepSucceeded} {
		_, err := store.SetSweepState(t.Context(), first, state, "")
		require.NoError(t, err)
	}

	requireOpen(1, true, "POST /sweeps", "1")

	open, known, err := store.OpenSweeps(t.Context(), "somebody else", "POST /sweeps", "1")
	require.NoError(t, err)
	require.Zero(t, open)
	require.False(t, known)
}
