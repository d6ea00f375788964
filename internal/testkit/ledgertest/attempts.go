package ledgertest

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func testAssignee(t *testing.T, b *bench) {
	_, err := b.Assignee(t.Context(), uuid.NewString())
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))

	first, token := b.place(t, 1)

	who, err := b.Assignee(t.Context(), first.AttemptID)
	require.NoError(t, err)
	require.Equal(t, first.AttemptID, who.Attempt.ID)
	require.Equal(t, token, who.Attempt.Token)
	require.Equal(t, first.Demand, who.Attempt.Demand)
	require.Equal(t, first.TrialID, who.Trial.ID)
	require.Equal(t, first.ShapeKey, who.Trial.ShapeKey)
	require.Equal(t, first.SweepID, who.SweepID)
	require.NotEmpty(t, who.LeaseID)
	require.NotEmpty(t, who.ImageDigest)
	require.Zero(t, who.LogOffset)

	require.NoError(t, b.AttemptRunning(t.Context(), first.AttemptID, token, "c", noon))
	b.Pass(t, time.Minute)
	require.NoError(t, b.AbandonAttempt(t.Context(), first.AttemptID, "host lost"))

	second, _ := b.again(t, first, 2, b.host)

	who, err = b.Assignee(t.Context(), second.AttemptID)
	require.NoError(t, err)
	require.Equal(t, []string{first.AttemptID}, who.Earlier, "its lease is not released")
	b.Pass(t, time.Minute)
	require.NoError(t, b.AbandonAttempt(t.Context(), second.AttemptID, "host lost"))

	other := b.host
	other.ID, other.Name = uuid.NewString(), "other"
	require.NoError(t, b.RegisterHost(t.Context(), other, "test"))

	third, _ := b.again(t, first, 3, other)

	who, err = b.Assignee(t.Context(), third.AttemptID)
	require.NoError(t, err)
	require.Empty(t, who.Earlier, "no attempt had that host")
}

// again places one more attempt of a trial on a host.
func (b *bench) again(t *testing.T, of berth.PlacementRequest, number int, host berth.Host) (berth.PlacementRequest, int64) {
	t.Helper()

	of.AttemptID, of.Number = uuid.NewString(), number
	_, err := b.RequestPlacement(t.Context(), of)
	require.NoError(t, err)

	placed, err := b.Place(t.Context(), map[string]berth.Placement{of.AttemptID: {HostID: host.ID, Demand: of.Demand}})
	require.NoError(t, err)
	require.Equal(t, []string{of.AttemptID}, placed)

	status, err := b.PlacementStatus(t.Context(), of.AttemptID)
	require.NoError(t, err)

	return of, status.Token
}

func testRunning(t *testing.T, b *bench) {
	r, token := b.place(t, 1)
	ctx := t.Context()

	requireFenced(t, b.AttemptRunning(ctx, r.AttemptID, token-1, "c", noon))
	requireFenced(t, b.AttemptRunning(ctx, uuid.NewString(), token, "c", noon))
	require.Equal(t, berth.AttemptPlaced, b.attempt(t, r.AttemptID).State)

	require.NoError(t, b.AttemptRunning(ctx, r.AttemptID, token, "c", noon))
	require.NoError(t, b.AttemptRunning(ctx, r.AttemptID, token, "c", noon.Add(time.Hour)))

	a := b.attempt(t, r.AttemptID)
	require.Equal(t, berth.AttemptRunning, a.State)
	require.Equal(t, "c", a.ContainerID)
	require.True(t, noon.Equal(*a.StartedAt), "the first start stands")

	require.NoError(t, b.FinishAttempt(ctx, result(r, token, 1)))
	requireFenced(t, b.AttemptRunning(ctx, r.AttemptID, token, "c", noon))
}

func testFinish(t *testing.T, b *bench) {
	r, token := b.place(t, 2)
	ctx := t.Context()

	requireFenced(t, b.FinishAttempt(ctx, result(r, token-1, 0.5)))
	b.requireReserved(t, 2, 1)

	require.NoError(t, b.FinishAttempt(ctx, result(r, token, 0.5)))
	b.requireReserved(t, 0, 0)
	require.NoError(t, b.FinishAttempt(ctx, result(r, token, 0.7)), "a repeated commit is harmless")
	requireFenced(t, b.FinishAttempt(ctx, result(r, token+1, 0.7)))
	b.requireReserved(t, 0, 0)

	a := b.attempt(t, r.AttemptID)
	require.Equal(t, berth.AttemptFinished, a.State)
	require.Equal(t, berth.FailureOK, a.Kind)
	require.Equal(t, "c", a.ContainerID, "the result is the first that names it")
	require.InDelta(t, 0.5, *a.Value, 0, "the first result stands")
	require.Zero(t, *a.ExitCode)
	require.Equal(t, result(r, token, 0).Outcome.Usage, a.Usage)
	require.True(t, noon.Equal(*a.StartedAt))
	require.True(t, noon.Add(time.Minute).Equal(*a.FinishedAt))

	require.NoError(t, b.AbandonAttempt(ctx, r.AttemptID, "too late"))
	require.Equal(t, token, b.attempt(t, r.AttemptID).Token, "what has ended is not fenced")
}

func testAbandon(t *testing.T, b *bench) {
	r, token := b.place(t, 2)
	ctx := t.Context()

	require.NoError(t, b.AbandonAttempt(ctx, r.AttemptID, "host lost"))

	a := b.attempt(t, r.AttemptID)
	require.Equal(t, berth.AttemptAbandoned, a.State)
	require.Equal(t, berth.FailureInfra, a.Kind)
	require.Greater(t, a.Token, token)
	require.NotNil(t, a.FinishedAt)
	b.requireReserved(t, 2, 1)

	requireFenced(t, b.AttemptRunning(ctx, r.AttemptID, token, "c", noon))
	requireFenced(t, b.FinishAttempt(ctx, result(r, token, 1)))
	requireFenced(t, b.FinishAttempt(ctx, result(r, a.Token, 1)))
	b.requireReserved(t, 2, 1)

	require.NoError(t, b.AbandonAttempt(ctx, r.AttemptID, "again"))
	require.Equal(t, a.Token, b.attempt(t, r.AttemptID).Token)
	require.NoError(t, b.AbandonAttempt(ctx, uuid.NewString(), "unknown"))
}

func testFinishedAtOnce(t *testing.T, b *bench) {
	r, token := b.place(t, 2)

	const callers = 4

	var (
		group sync.WaitGroup
		errs  [callers]error
	)

	for i := range callers {
		group.Go(func() { errs[i] = b.FinishAttempt(t.Context(), result(r, token, float64(i))) })
	}

	group.Wait()

	for _, err := range errs {
		require.NoError(t, err)
	}

	b.requireReserved(t, 0, 0)
}
