package postgres_test

import (
	"log/slog"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/placer"
)

// again asks for a place for another attempt of a trial.
func (b *bundle) again(t *testing.T, r berth.PlacementRequest, number int) berth.PlacementRequest {
	t.Helper()

	r.AttemptID, r.Number = uuid.NewString(), number
	_, err := b.store.RequestPlacement(t.Context(), r)
	require.NoError(t, err)

	return r
}

// reasons are why the bundle's trial waits, as the API shows them.
func (b *bundle) reasons(t *testing.T, number int) []string {
	t.Helper()

	trial, err := b.store.GetTrial(t.Context(), b.sweep, number)
	require.NoError(t, err)

	texts := []string{}
	for _, r := range trial.Waiting {
		texts = append(texts, r.Reason)
	}

	return texts
}

// poisons are requests that cannot be placed. Each returns the request and the
// expected report; empty = none, because it is placed after all.
var poisons = map[string]func(t *testing.T, b *bundle, pool *pgxpool.Pool) (berth.PlacementRequest, string){
	"the trial has an open attempt": func(t *testing.T, b *bundle, pool *pgxpool.Pool) (berth.PlacementRequest, string) {
		r := b.request(t, gib)
		b.place(t, r)

		second := b.again(t, r, 2) // fences the first, which an older version did not
		_, err := pool.Exec(t.Context(), "UPDATE attempts SET state = 'placed', failure_kind = '', finished_at = NULL, refused = false WHERE id = $1", r.AttemptID)
		require.NoError(t, err)

		return second, "attempt 1 of the trial is still open on host a"
	},
	"the attempt's number is taken": func(t *testing.T, b *bundle, _ *pgxpool.Pool) (berth.PlacementRequest, string) {
		r := b.request(t, gib)
		b.place(t, r)
		require.NoError(t, b.store.AbandonAttempt(t.Context(), r.AttemptID, "lost"))

		return b.again(t, r, 1), "attempts_number"
	},
	"a CHECK of one row": func(t *testing.T, b *bundle, pool *pgxpool.Pool) (berth.PlacementRequest, string) {
		r := b.request(t, gib)
		_, err := pool.Exec(t.Context(), "UPDATE placement_requests SET purpose = 'unheard of' WHERE attempt_id = $1", r.AttemptID)
		require.NoError(t, err)

		return r, "attempts_purpose"
	},
	"stored reasons that nothing can read": func(t *testing.T, b *bundle, pool *pgxpool.Pool) (berth.PlacementRequest, string) {
		r := b.request(t, gib)
		_, err := pool.Exec(t.Context(), `UPDATE placement_requests SET reasons = '{"not": "a list"}' WHERE attempt_id = $1`, r.AttemptID)
		require.NoError(t, err)

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

			url := pgtest.URL(t)
			b, pool := setupOn(t, url), openPool(t, url)
			b.host.CPUMilli, b.host.MemoryBytes, b.host.MemoryFreeBytes = 64_000, 64*gib, 64*gib
			require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

			bad, why := poison(t, b, pool)
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

			_, err := pool.Exec(t.Context(), "UPDATE placement_requests SET requested_at = now() - interval '2 minutes'")
			require.NoError(t, err)

			health, err := b.store.Health(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, health.StuckTrials)
			require.Equal(t, number, health.Stuck[0].Number)
			require.Equal(t, b.sweep, health.Stuck[0].SweepID)
			require.Contains(t, health.Stuck[0].Reason, why)
		})
	}
}

// A request set aside is tried again with growing back-off, and placed once the
// ledger takes it.
func TestPlacer_TriesAgainWhatWasSetAside(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	bad, _ := poisons["a CHECK of one row"](t, b, pool)
	p := placer.New(b.store, slog.New(slog.DiscardHandler))

	var before float64

	for range 3 {
		require.NoError(t, p.Round(t.Context()))
		require.NoError(t, p.Round(t.Context()), "it is not in the queue now")

		var pause float64

		require.NoError(t, pool.QueryRow(t.Context(), "SELECT extract(epoch FROM not_before - now())::float8 FROM placement_requests").Scan(&pause))
		require.Greater(t, pause, before)
		before = pause

		_, err := pool.Exec(t.Context(), "UPDATE placement_requests SET not_before = now()")
		require.NoError(t, err)
	}

	_, err := pool.Exec(t.Context(), "UPDATE placement_requests SET purpose = 'run'")
	require.NoError(t, err)
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.RequestPlaced, b.status(t, bad))

	health, err := b.store.Health(t.Context())
	require.NoError(t, err)
	require.Zero(t, health.StuckTrials)
}

// A request that was set aside and now only waits for room is not stuck.
func TestPlacer_ForgetsARefusalThatIsOver(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	bad, _ := poisons["a CHECK of one row"](t, b, pool)
	number := b.trial

	require.NoError(t, placer.New(b.store, slog.New(slog.DiscardHandler)).Round(t.Context()))

	health, err := b.store.Health(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, health.StuckTrials)

	b.place(t, b.request(t, 8*gib)) // all that there is
	_, err = pool.Exec(t.Context(), "UPDATE placement_requests SET not_before = now() WHERE attempt_id = $1", bad.AttemptID)
	require.NoError(t, err)
	require.NoError(t, placer.New(b.store, slog.New(slog.DiscardHandler)).Round(t.Context()))
	require.Contains(t, b.reasons(t, number)[0], "needs 2,048 MiB of memory")

	health, err = b.store.Health(t.Context())
	require.NoError(t, err)
	require.Zero(t, health.StuckTrials, health.Stuck)
}

func (b *bundle) status(t *testing.T, r berth.PlacementRequest) berth.RequestState {
	t.Helper()

	status, err := b.store.PlacementStatus(t.Context(), r.AttemptID)
	require.NoError(t, err)

	return status.State
}

// A database that was restored waits for a place for an attempt that its trial
// is past. Placed after the next one was asked for, it would hold that one up.
func TestRequestPlacement_WithdrawsWhatTheTrialIsPast(t *testing.T) {
	t.Parallel()

	b := setup(t)
	first := b.request(t, gib)
	second := b.again(t, first, 2)

	status, err := b.store.PlacementStatus(t.Context(), first.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWithdrawn, status.State)

	status, err = b.store.PlacementStatus(t.Context(), second.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWaiting, status.State)
}
