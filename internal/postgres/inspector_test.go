package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
)

func inspect(t *testing.T, url string) *pgtest.Inspector {
	t.Helper()

	inspector, err := pgtest.Inspect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { inspector.Close(context.WithoutCancel(t.Context())) })

	return inspector
}

// A sweep whose only attempt was abandoned waits for a place as one does that
// never had any. One with a place is not started before its container is.
func TestInspector_Canaries(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, inspector := setupOn(t, url), inspect(t, url)
	canary := func() pgtest.Canary {
		found, err := inspector.Canaries(t.Context(), []string{b.sweep})
		require.NoError(t, err)
		require.Len(t, found, 1)

		return found[0]
	}

	r := b.request(t, gib)
	require.Equal(t, pgtest.Canary{Sweep: b.sweep}, canary())

	status := b.place(t, r)
	require.NotEmpty(t, canary().Host)
	require.False(t, canary().Started)

	require.NoError(t, b.store.AttemptRunning(t.Context(), r.AttemptID, status.Token, "container", time.Now()))
	require.True(t, canary().Started)

	begun, err := inspector.BegunTrials(t.Context())
	require.NoError(t, err)
	require.Len(t, begun, 1)

	reserved, err := inspector.Reserved(t.Context(), []string{r.AttemptID})
	require.NoError(t, err)
	require.Equal(t, map[string]int64{r.AttemptID: gib}, reserved)

	require.NoError(t, b.store.AbandonAttempt(t.Context(), r.AttemptID, "host lost"))
	require.Equal(t, pgtest.Canary{Sweep: b.sweep}, canary())
}

// Only live attempts of sweeps with max_parallel are bounded.
func TestInspector_Bounded(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, inspector := setupOn(t, url), inspect(t, url)
	bounded := func() []pgtest.Bounded {
		found, now, err := inspector.Bounded(t.Context())
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), now, time.Minute)

		return found
	}

	r := b.request(t, gib)
	b.place(t, r)
	require.Empty(t, bounded(), "it has no max_parallel")

	require.NoError(t, b.store.SetMaxParallel(t.Context(), b.sweep, 2))

	found := bounded()
	require.Len(t, found, 1)
	require.Equal(t, r.AttemptID, found[0].Attempt)
	require.Equal(t, b.sweep, found[0].Sweep)
	require.Equal(t, 2, found[0].MaxParallel)

	require.NoError(t, b.store.AbandonAttempt(t.Context(), r.AttemptID, "host lost"))
	require.Empty(t, bounded())
}

// A host that is cordoned for one sweep takes others, and one that is cordoned
// for all is no room. None stays cordoned once a container has started there.
func TestInspector_Cordoned(t *testing.T) {
	t.Parallel()

	s := setupSick(t)
	inspector := inspect(t, s.pool.Config().ConnString())
	roomy := func() int {
		names, _, err := inspector.Roomy(t.Context(), gib, 100)
		require.NoError(t, err)

		return len(names)
	}
	cordoned := func() []string {
		found, err := inspector.Cordoned(t.Context())
		require.NoError(t, err)

		return found
	}

	first := s.request(t, gib)
	s.fail(t, first, berth.FailureInfra)

	for range berth.HostCordonAfter - 1 {
		s.fail(t, s.request(t, gib), berth.FailureInfra)
	}

	require.Equal(t, 1, roomy(), "others may run there")

	s.other(t)
	s.fail(t, s.request(t, gib), berth.FailureInfra)
	require.Zero(t, roomy())
	require.Empty(t, cordoned())

	for minutes, wronged := range map[int]int{30: 0, 31: 1} {
		_, err := s.pool.Exec(t.Context(), "UPDATE hosts SET test_at = now() + $1 * interval '1 minute' WHERE cordoned_at IS NOT NULL", minutes)
		require.NoError(t, err)
		require.Len(t, cordoned(), wronged, "its next test is in %d minutes", minutes)
	}

	require.NoError(t, inspector.TestCordoned(t.Context()))

	r := s.request(t, gib)
	status := s.place(t, r)
	_, err := s.pool.Exec(t.Context(), "UPDATE attempts SET started_at = now(), container_id = 'container' WHERE id = $1", r.AttemptID)
	require.NoError(t, err)
	require.Len(t, cordoned(), 1, "it has started, and nothing ended the cordon")

	require.NoError(t, s.store.AttemptRunning(t.Context(), r.AttemptID, status.Token, "container", time.Now()))
	require.Empty(t, cordoned())
	require.Equal(t, 1, roomy())
}
