package ledgertest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// again is the request for the attempt after this one.
func again(r berth.PlacementRequest) berth.PlacementRequest {
	r.AttemptID, r.Number = uuid.NewString(), r.Number+1

	return r
}

// requireRevived checks that the answer to a request is an earlier attempt, in
// force as if it had never been abandoned.
func (b *bench) requireRevived(t *testing.T, asked, first berth.PlacementRequest, token int64) {
	t.Helper()

	status, err := b.PlacementStatus(t.Context(), asked.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.RequestPlaced, status.State)
	require.Equal(t, first.AttemptID, status.AttemptID)
	require.Equal(t, token, status.Token, "its container carries this token")
	require.Equal(t, b.host.ID, status.HostID)
	b.requireReserved(t, 2, 1)

	require.NoError(t, b.AttemptRunning(t.Context(), first.AttemptID, token, "c", noon))
	require.Equal(t, berth.AttemptRunning, b.attempt(t, first.AttemptID).State)
	require.NoError(t, b.FinishAttempt(t.Context(), result(first, token, 0.5)))
	b.requireReserved(t, 0, 0)
}

// The host is back, and has shown the container, before its attempt is
// abandoned: as on a single machine, whose worker also runs the workflows.
func testRevivedAtOnce(t *testing.T, b *bench) {
	first, token := b.place(t, 2)
	ctx := t.Context()

	require.NoError(t, b.AttemptRunning(ctx, first.AttemptID, token, "c", noon))
	b.Pass(t, time.Hour)
	require.NoError(t, b.TouchHost(ctx, b.host.ID, berth.HostFree{MemoryBytes: gib}, seen(first, token)))
	require.NoError(t, b.AbandonAttempt(ctx, first.AttemptID, "host lost"))

	second := again(first)
	_, err := b.RequestPlacement(ctx, second)
	require.NoError(t, err)
	b.requireRevived(t, second, first, token)
}

// The attempt was abandoned while the host was away; it comes back before
// another host has taken the next attempt.
func testRevivedLate(t *testing.T, b *bench) {
	first, token := b.place(t, 2)
	ctx := t.Context()

	b.Pass(t, time.Hour)
	require.NoError(t, b.AbandonAttempt(ctx, first.AttemptID, "host lost"))

	second := again(first)
	status, err := b.RequestPlacement(ctx, second)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWaiting, status.State, "nobody has seen its container")

	require.NoError(t, b.TouchHost(ctx, b.host.ID, berth.HostFree{MemoryBytes: gib}, nil))

	status, err = b.PlacementStatus(ctx, second.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWaiting, status.State, "the host does not have it any more")

	require.NoError(t, b.TouchHost(ctx, b.host.ID, berth.HostFree{MemoryBytes: gib}, seen(first, token)))
	require.NoError(t, b.TouchHost(ctx, b.host.ID, berth.HostFree{MemoryBytes: gib}, seen(first, token)))
	b.requireRevived(t, second, first, token)
}

// What another attempt has replaced, or whose host has a problem, stays fenced.
func testNotRevived(t *testing.T, b *bench) {
	first, token := b.place(t, 2)
	ctx := t.Context()
	seen := seen(first, token)

	require.NoError(t, b.AbandonAttempt(ctx, first.AttemptID, "host lost"))
	require.NoError(t, b.TouchHost(ctx, b.host.ID, berth.HostFree{MemoryBytes: gib, Problem: "broken"}, seen))

	second := again(first)
	status, err := b.RequestPlacement(ctx, second)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWaiting, status.State)

	leases, err := b.HostLeases(ctx, b.host.ID)
	require.NoError(t, err)
	require.True(t, leases[0].Revivable)

	b.put(t, second)
	require.NoError(t, b.TouchHost(ctx, b.host.ID, berth.HostFree{MemoryBytes: gib}, seen))
	requireFenced(t, b.AttemptRunning(ctx, first.AttemptID, token, "c", noon))
	b.requireReserved(t, 4, 2)

	who, err := b.Assignee(ctx, second.AttemptID)
	require.NoError(t, err)
	require.Equal(t, []string{first.AttemptID}, who.Earlier, "its container may still write to the trial's checkpoint")

	leases, err = b.HostLeases(ctx, b.host.ID)
	require.NoError(t, err)
	require.False(t, leases[0].Revivable)

	require.NoError(t, b.ReleaseLease(ctx, first.AttemptID, "an operator says that the machine is gone"))

	who, err = b.Assignee(ctx, second.AttemptID)
	require.NoError(t, err)
	require.Equal(t, []string{first.AttemptID}, who.Earlier, "the machine may be back, with the container")
}

// A host that shows the container and cannot carry the attempt out would get it
// back again and again. The same holds for an attempt that its workflow is past.
func testRefused(t *testing.T, b *bench) {
	first, token := b.place(t, 2)
	ctx := t.Context()
	seen := seen(first, token)

	require.NoError(t, b.RefuseAttempt(ctx, first.AttemptID, "belongs to another launch"))
	requireFenced(t, b.AttemptRunning(ctx, first.AttemptID, token, "c", noon))

	second := again(first)
	_, err := b.RequestPlacement(ctx, second)
	require.NoError(t, err)
	require.NoError(t, b.TouchHost(ctx, b.host.ID, berth.HostFree{MemoryBytes: gib}, seen))

	status, err := b.PlacementStatus(ctx, second.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWaiting, status.State)

	leases, err := b.HostLeases(ctx, b.host.ID)
	require.NoError(t, err)
	require.False(t, leases[0].Revivable, "its container goes")

	token = b.put(t, second)

	third := again(second)
	_, err = b.RequestPlacement(ctx, third)
	require.NoError(t, err)
	requireFenced(t, b.AttemptRunning(ctx, second.AttemptID, token, "c", noon))
	require.Equal(t, berth.AttemptAbandoned, b.attempt(t, second.AttemptID).State, "its trial is past it")
	b.put(t, third)
}

func testProblem(t *testing.T, b *bench) {
	require.NoError(t, b.TouchHost(t.Context(), b.host.ID, berth.HostFree{MemoryBytes: gib, Problem: "Docker does not answer"}, nil))

	hosts, err := b.ListHosts(t.Context())
	require.NoError(t, err)
	require.Equal(t, berth.HostUnready, hosts[0].State)
	require.Equal(t, "Docker does not answer", hosts[0].Problem)

	require.NoError(t, b.TouchHost(t.Context(), b.host.ID, berth.HostFree{MemoryBytes: gib}, nil))

	hosts, err = b.ListHosts(t.Context())
	require.NoError(t, err)
	require.Equal(t, berth.HostReady, hosts[0].State)
}
