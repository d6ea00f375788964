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
	requireOpen := func(want int) {
		t.Helper()

		open, err := store.OpenSweeps(t.Context(), person)
		require.NoError(t, err)
		require.Equal(t, want, open)
	}

	requireOpen(0)

	first := submit("1")
	submit("2")
	submit("2") // is the same
	requireOpen(2)

	for _, state := range []berth.SweepState{berth.SweepRunning, berth.SweepSucceeded} {
		_, err := store.SetSweepState(t.Context(), first, state, "")
		require.NoError(t, err)
	}

	requireOpen(1)

	open, err := store.OpenSweeps(t.Context(), "somebody else")
	require.NoError(t, err)
	require.Zero(t, open)
}
