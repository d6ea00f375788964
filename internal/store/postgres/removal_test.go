package postgres_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/placer"
)

// What a lost host still holds must not keep the sweep from going on elsewhere.
func TestQueue_MaxParallelLeavesOutWhatWasLost(t *testing.T) {
	t.Parallel()

	b := setup(t)
	lost, open := b.request(t, gib), b.request(t, gib)
	b.place(t, lost)
	b.place(t, open)
	b.request(t, gib)
	require.Equal(t, 2, b.running(t))

	require.NoError(t, b.store.AbandonAttempt(t.Context(), lost.AttemptID, "host lost"))
	require.Equal(t, 2, b.running(t), "its container may still run there")

	b.lose(t)
	require.Equal(t, 1, b.running(t), "the other attempt goes on, for all that is known")

	memory, _ := b.reserved(t)
	require.Equal(t, int64(2*gib), memory, "what it holds stays booked")
}

// A host whose worker reaches PostgreSQL but not Temporal still sends heartbeats
// and keeps its leases. The sweep goes on elsewhere all the same: the places of attempts
// that a cut-off host holds go to their retries, not to siblings that wait for longer.
// Once the host is back, no more attempts are open than the sweep allows.
func TestPlacer_MaxParallelHoldsOnceACutOffHostIsBack(t *testing.T) {
	t.Parallel()

	for name, room := range map[string]bool{"the retry runs elsewhere": true, "there is no other host": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			p := placer.New(b.store, slog.New(slog.DiscardHandler))
			require.NoError(t, b.store.SetMaxParallel(t.Context(), b.sweep, 1))

			cut := b.request(t, gib)
			seen := berth.SeenAttempt{AttemptID: cut.AttemptID, Token: b.place(t, cut).Token}
			sibling := b.request(t, gib)

			if room {
				other := b.host
				other.ID, other.Name = uuid.NewString(), "b"
				require.NoError(t, b.store.RegisterHost(t.Context(), other, "test"))
			}

			b.touch(t, berth.HostFree{MemoryBytes: 8 * gib, Problem: "its worker does not reach Temporal"}, seen)
			require.Equal(t, 1, b.running(t), "it runs, as its workflow has not given it up")
			require.NoError(t, b.store.AbandonAttempt(t.Context(), cut.AttemptID, "its worker does not answer"))
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, berth.RequestWaiting, b.status(t, sibling), "the retry was not asked for yet")

			retry := b.again(t, cut, 2)
			require.Zero(t, b.running(t))
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, room, b.status(t, retry) == berth.RequestPlaced)
			require.Equal(t, berth.RequestWaiting, b.status(t, sibling))

			b.touch(t, berth.HostFree{MemoryBytes: 8 * gib}, seen)
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, 1, b.rows(t, "attempts WHERE state IN ('placed', 'running')"))
			require.Equal(t, berth.RequestWaiting, b.status(t, sibling))

			if room { // the reconciler stops the old one
				require.NoError(t, b.store.ReleaseLease(t.Context(), cut.AttemptID, "no container"))
			} else {
				require.Equal(t, berth.AttemptPlaced, b.attempt(t, cut.AttemptID).State, "the host got it back")
			}

			require.Equal(t, 1, b.running(t))
		})
	}
}

// Requests that cannot start, however old, hide no requests of other sweeps. The
// placer reads none of a paused sweep and one behind max_parallel. They all say why
// they wait.
func TestQueue_EachSweepOffersWhatMayStart(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ask := func(requests int) (made []string) {
		for range requests {
			made = append(made, b.request(t, gib).AttemptID)
		}

		return made
	}
	read := func(limit int) []string {
		q, err := b.store.Queue(t.Context(), limit)
		require.NoError(t, err)

		return ids(q.Waiting)
	}

	paused := ask(3)
	require.NoError(t, b.store.HoldRequests(t.Context())) // they are offered, and wait for a round
	b.setState(t, berth.SweepPaused)

	b.begin(t, berth.Spec{Name: "narrow", Limits: berth.Limits{MaxParallel: 1}})
	narrowSweep := b.sweep
	runs := b.request(t, gib) // can start
	b.place(t, runs)

	narrow := ask(12)

	b.begin(t, berth.Spec{Name: "wide"})
	wide := ask(12)

	require.Equal(t, slices.Concat(narrow[:1], wide), read(100))
	require.Equal(t, slices.Concat(narrow[:1], wide[:3]), read(4), "of too many each sweep's oldest")

	require.NoError(t, b.store.SetMaxParallel(t.Context(), narrowSweep, 2))
	require.ElementsMatch(t, slices.Concat(narrow[:9], wide), read(100), "one may start, and where it cannot, one of eight behind it")

	require.NoError(t, b.store.SetMaxParallel(t.Context(), narrowSweep, 1))
	require.NoError(t, b.store.AbandonAttempt(t.Context(), runs.AttemptID, "host lost")) // whose lease stays, and is not renewed
	b.exec(t, "UPDATE leases SET state = 'suspect'")
	require.ElementsMatch(t, slices.Concat(narrow[:9], wide), read(100), "its place is free, as in a round")

	b.place(t, berth.PlacementRequest{AttemptID: narrow[0], Demand: runs.Demand})
	narrow = narrow[1:]
	require.NoError(t, b.store.HoldRequests(t.Context()))

	for reason, held := range map[string][]string{"the sweep takes no new trials now": paused, "earlier trials of the sweep go first": narrow[1:]} {
		for _, id := range held {
			require.Equal(t, []string{reason}, b.placement(t, berth.PlacementRequest{AttemptID: id}).Reasons)
		}
	}

	require.Empty(t, b.placement(t, berth.PlacementRequest{AttemptID: narrow[0]}).Reasons, "its reason is the placer's")
}

func TestRemoveHost(t *testing.T) {
	t.Parallel()

	b, ctx := setup(t), t.Context()
	b.register(t, "GPU-1")

	open, done, waiting := b.request(t, gib), b.request(t, gib), b.request(t, gib)
	status := b.placeOn(t, open, "GPU-1")
	b.place(t, done)
	b.finish(t, done, berth.Outcome{Kind: berth.FailureOK})

	require.Equal(t, berth.KindNotFound, berth.KindOf(b.store.RemoveHost(ctx, uuid.NewString(), true)))
	require.Equal(t, berth.KindConflict, berth.KindOf(b.store.RemoveHost(ctx, b.host.ID, false)), "its worker answers")

	b.lose(t)
	require.NoError(t, b.store.RemoveHost(ctx, b.host.ID, false))

	hosts, err := b.store.ListHosts(ctx)
	require.NoError(t, err)
	require.Empty(t, hosts)
	require.Equal(t, berth.AttemptAbandoned, b.attempt(t, open.AttemptID).State)
	require.Equal(t, berth.KindFenced, berth.KindOf(b.store.AttemptRunning(ctx, open.AttemptID, status.Token, "c", time.Now())))
	require.Equal(t, berth.AttemptFinished, b.attempt(t, done.AttemptID).State, "history stays")

	_, err = b.store.Place(ctx, map[string]berth.Placement{waiting.AttemptID: {HostID: b.host.ID, Demand: waiting.Demand}})
	require.Equal(t, berth.KindExhausted, berth.KindOf(err), "nothing is placed on a removed host: %v", err)

	// The machine comes back after all: its worker registers, with nothing booked.
	require.Equal(t, berth.KindNotFound, berth.KindOf(b.store.TouchHost(ctx, b.host.ID, berth.HostFree{}, nil)))
	b.register(t)
	b.touch(t, berth.HostFree{})

	host := b.first(t)
	require.Equal(t, []int64{0, 0, 0}, []int64{host.MemoryReservedBytes, host.CPUMilliReserved, host.Devices[0].ReservedBytes})

	b.place(t, waiting)
	require.NoError(t, b.store.RemoveHost(ctx, b.host.ID, true), "by force, although it answers")

	leases, err := b.store.HostLeases(ctx, b.host.ID)
	require.NoError(t, err)
	require.Empty(t, leases)
}

// An attempt that had ended for good keeps its reason and its token (invariant
// I3); one that could still go back to its host is given up with it.
func TestRemoveHost_KeepsHowAttemptsEnded(t *testing.T) {
	t.Parallel()

	b, ctx := setup(t), t.Context()
	refused, silent := b.request(t, gib), b.request(t, gib)
	b.place(t, refused)
	b.place(t, silent)
	require.NoError(t, b.store.RefuseAttempt(ctx, refused.AttemptID, "no such image"))
	require.NoError(t, b.store.AbandonAttempt(ctx, silent.AttemptID, "its host is silent"))

	before := b.attempt(t, refused.AttemptID)
	b.lose(t)
	require.NoError(t, b.store.RemoveHost(ctx, b.host.ID, false))
	require.Equal(t, before, b.attempt(t, refused.AttemptID))
	require.Contains(t, b.attempt(t, silent.AttemptID).Message, "its host was removed")
}
