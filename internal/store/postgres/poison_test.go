package postgres_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/placer"
)

// poisons are requests that cannot be placed. Each returns the request and the
// expected report; empty = none, because it is placed after all.
var poisons = map[string]func(t *testing.T, b *bundle) (berth.PlacementRequest, string){
	"the trial has an open attempt": func(t *testing.T, b *bundle) (berth.PlacementRequest, string) {
		r := b.request(t, gib)
		b.place(t, r)

		second := b.again(t, r, 2) // fences the first, which an older version did not
		b.exec(t, "UPDATE attempts SET state = 'placed', failure_kind = '', finished_at = NULL, refused = false WHERE id = $1", r.AttemptID)

		return second, "attempt 1 of the trial is still open on host a"
	},
	"the attempt's number is taken": func(t *testing.T, b *bundle) (berth.PlacementRequest, string) {
		r := b.request(t, gib)
		b.place(t, r)
		require.NoError(t, b.store.AbandonAttempt(t.Context(), r.AttemptID, "lost"))

		return b.again(t, r, 1), "attempts_number"
	},
	"a CHECK of one row": func(t *testing.T, b *bundle) (berth.PlacementRequest, string) {
		r := b.request(t, gib)
		b.exec(t, "UPDATE placement_requests SET purpose = 'unheard of' WHERE attempt_id = $1", r.AttemptID)

		return r, "attempts_purpose"
	},
	"stored reasons that nothing can read": func(t *testing.T, b *bundle) (berth.PlacementRequest, string) {
		r := b.request(t, gib)
		b.exec(t, `UPDATE placement_requests SET reasons = '{"not": "a list"}' WHERE attempt_id = $1`, r.AttemptID)

		return r, ""
	},
}

// One request that cannot be placed must not keep others from it: all of them
// are placed in the same round, and the trial says why it waits.
func TestPlacer_OneBadRequestStopsNoOther(t *testing.T) {
	t.Parallel()

	for name, poison := range poisons {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			const good = 20

			b := setup(t)
			b.host.CPUMilli, b.host.MemoryBytes, b.host.MemoryFreeBytes = 64_000, 64*gib, 64*gib
			b.register(t)

			bad, why := poison(t, b)
			number := b.trial
			requests := make([]berth.PlacementRequest, good)

			for i := range requests {
				requests[i] = b.request(t, gib)
			}

			p := placer.New(b.store, slog.New(slog.DiscardHandler))
			require.NoError(t, p.Round(t.Context()))

			for _, r := range requests {
				require.Equal(t, berth.RequestPlaced, b.status(t, r), "in the first round")
			}

			if why == "" {
				require.Equal(t, berth.RequestPlaced, b.status(t, bad))

				return
			}

			require.Equal(t, berth.RequestWaiting, b.status(t, bad))
			require.Len(t, b.reasons(t, number), 1)
			require.Contains(t, b.reasons(t, number)[0], why)

			b.exec(t, "UPDATE placement_requests SET requested_at = now() - interval '2 minutes'")

			health := b.health(t)
			require.Equal(t, 1, health.StuckTrials)
			require.Equal(t, number, health.Stuck[0].Number)
			require.Equal(t, b.sweep, health.Stuck[0].SweepID)
			require.Contains(t, health.Stuck[0].Reason, why)
		})
	}
}

// A request set aside is tried again with growing back-off, and placed once the
// ledger takes it. While it only waits for room it is not stuck.
func TestPlacer_TriesAgainWhatWasSetAside(t *testing.T) {
	t.Parallel()

	b := setup(t)
	bad, _ := poisons["a CHECK of one row"](t, b)
	p := placer.New(b.store, slog.New(slog.DiscardHandler))

	var before float64

	for range 3 {
		require.NoError(t, p.Round(t.Context()))
		require.NoError(t, p.Round(t.Context()), "it is not in the queue now")

		pause := number[float64](t, b.pool, "SELECT extract(epoch FROM not_before - now())::float8 FROM placement_requests")
		require.Greater(t, pause, before)
		before = pause

		b.exec(t, "UPDATE placement_requests SET not_before = now()")
	}

	require.Equal(t, 1, b.health(t).StuckTrials)
	b.exec(t, "UPDATE placement_requests SET purpose = 'run'")

	all := b.request(t, 8*gib)
	b.place(t, all)
	require.NoError(t, p.Round(t.Context()))
	require.Contains(t, b.reasons(t, 1)[0], "needs 2,048 MiB of memory")
	require.Zero(t, b.health(t).StuckTrials)

	b.end(t, all)
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.RequestPlaced, b.status(t, bad))
}
