package postgres_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/placer"
)

// lose lets the bundle's host fall silent.
func (b *bundle) lose(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()

	_, err := pool.Exec(t.Context(), "UPDATE hosts SET last_seen_at = now() - interval '1 hour' WHERE id = $1", b.host.ID)
	require.NoError(t, err)
}

// running is how many attempts of the bundle's sweep count for max_parallel.
func (b *bundle) running(t *testing.T) int {
	t.Helper()

	q, err := b.store.Queue(t.Context(), 10)
	use := q.Sweeps
	require.NoError(t, err)

	return use[b.sweep].Running
}

// What a lost host still holds must not keep the sweep from going on elsewhere.
func TestQueue_MaxParallelLeavesOutWhatWasLost(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	lost, open := b.request(t, gib), b.request(t, gib)
	b.place(t, lost)
	b.place(t, open)
	b.request(t, gib)

	require.Equal(t, 2, b.running(t))

	require.NoError(t, b.store.AbandonAttempt(t.Context(), lost.AttemptID, "host lost"))
	require.Equal(t, 2, b.running(t), "its container may still run there")

	b.lose(t, pool)
	require.Equal(t, 1, b.running(t), "the other attempt goes on, for all that is known")

	memory, _ := b.reserved(t)
	require.Equal(t, int64(2*gib), memory, "what it holds stays booked")
}

// A host whose worker reaches PostgreSQL but not Temporal still sends heartbeats
// and keeps its leases. The sweep goes on elsewhere all the same.
func TestQueue_MaxParallelLeavesOutWhatAHostWithAProblemHolds(t *testing.T) {
	t.Parallel()

	b := setup(t)
	cut := b.request(t, gib)
	seen := []berth.SeenAttempt{{AttemptID: cut.AttemptID, Token: b.place(t, cut).Token}}
	problem := berth.HostFree{MemoryBytes: 8 * gib, Problem: "its worker does not reach Temporal"}

	require.NoError(t, b.store.TouchHost(t.Context(), b.host.ID, problem, seen))
	b.request(t, gib)
	require.Equal(t, 1, b.running(t), "it runs, as its workflow has not given it up")

	require.NoError(t, b.store.AbandonAttempt(t.Context(), cut.AttemptID, "its worker does not answer"))
	b.again(t, cut, 2)
	require.NoError(t, b.store.TouchHost(t.Context(), b.host.ID, problem, seen))
	require.Zero(t, b.running(t))

	memory, _ := b.reserved(t)
	require.Equal(t, int64(gib), memory, "what it holds stays booked")

	require.NoError(t, b.store.TouchHost(t.Context(), b.host.ID, berth.HostFree{MemoryBytes: 8 * gib}, seen))
	require.Equal(t, 1, b.running(t), "the host got it back")

	back, err := b.store.GetAttempt(t.Context(), cut.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.AttemptPlaced, back.State)
}

// The places of attempts that a cut-off host holds go to their retries, not to
// siblings that wait for longer: once the host is back, no more attempts are open
// than the sweep allows.
func TestPlacer_MaxParallelHoldsOnceACutOffHostIsBack(t *testing.T) {
	t.Parallel()

	for name, room := range map[string]bool{"the retry runs elsewhere": true, "there is no other host": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := pgtest.URL(t)
			b, pool := setupOn(t, url), openPool(t, url)
			p := placer.New(b.store, slog.New(slog.DiscardHandler))
			require.NoError(t, b.store.SetMaxParallel(t.Context(), b.sweep, 1))

			cut := b.request(t, gib)
			seen := []berth.SeenAttempt{{AttemptID: cut.AttemptID, Token: b.place(t, cut).Token}}
			sibling := b.request(t, gib)
			problem := berth.HostFree{MemoryBytes: 8 * gib, Problem: "its worker does not reach Temporal"}

			if room {
				other := b.host
				other.ID, other.Name = uuid.NewString(), "b"
				require.NoError(t, b.store.RegisterHost(t.Context(), other, "test"))
			}

			require.NoError(t, b.store.TouchHost(t.Context(), b.host.ID, problem, seen))
			require.NoError(t, b.store.AbandonAttempt(t.Context(), cut.AttemptID, "its worker does not answer"))
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, berth.RequestWaiting, b.status(t, sibling), "the retry was not asked for yet")

			retry := b.again(t, cut, 2)
			require.NoError(t, p.Round(t.Context()))
			require.Equal(t, room, b.status(t, retry) == berth.RequestPlaced)
			require.Equal(t, berth.RequestWaiting, b.status(t, sibling))

			require.NoError(t, b.store.TouchHost(t.Context(), b.host.ID, berth.HostFree{MemoryBytes: 8 * gib}, seen))
			require.NoError(t, p.Round(t.Context()))

			var open int

			require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM attempts WHERE state IN ('placed', 'running')").Scan(&open))
			require.Equal(t, 1, open)
			require.Equal(t, berth.RequestWaiting, b.status(t, sibling))

			if room { // the reconciler stops the old one
				require.NoError(t, b.store.ReleaseLease(t.Context(), cut.AttemptID, "no container"))
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

	url := pgtest.URL(t)
	b := setupOn(t, url)
	own, spec := b.sweep, berth.Spec{Name: "narrow", Limits: berth.Limits{MaxParallel: 1}}

	var paused, narrow, wide []string

	for range 3 {
		paused = append(paused, b.request(t, gib).AttemptID)
	}

	require.NoError(t, b.store.HoldRequests(t.Context())) // they are offered, and wait for a round
	_, err := b.store.SetSweepState(t.Context(), own, berth.SweepPaused, "")
	require.NoError(t, err)

	b.sweep, b.trial = uuid.NewString(), 0
	_, _, err = b.store.CreateSweep(t.Context(), berth.NewSweep{ID: b.sweep, Spec: spec, ImageDigest: "sha256:x", CreatedBy: "local"})
	require.NoError(t, err)

	narrowSweep := b.sweep
	runs := b.request(t, gib) // can start
	b.place(t, runs)

	for range 12 {
		narrow = append(narrow, b.request(t, gib).AttemptID)
	}

	b.sweep, b.trial = uuid.NewString(), 0
	_, _, err = b.store.CreateSweep(t.Context(), berth.NewSweep{ID: b.sweep, Spec: berth.Spec{Name: "wide"}, ImageDigest: "sha256:x", CreatedBy: "local"})
	require.NoError(t, err)

	for range 12 {
		wide = append(wide, b.request(t, gib).AttemptID)
	}

	q, err := b.store.Queue(t.Context(), 100)
	require.NoError(t, err)
	require.Equal(t, slices.Concat(narrow[:1], wide), ids(q.Waiting))

	q, err = b.store.Queue(t.Context(), 4) // of too many each sweep's oldest
	require.NoError(t, err)
	require.Equal(t, slices.Concat(narrow[:1], wide[:3]), ids(q.Waiting))

	require.NoError(t, b.store.SetMaxParallel(t.Context(), narrowSweep, 2))

	q, err = b.store.Queue(t.Context(), 100) // one may start, and where it cannot, one of eight behind it
	require.NoError(t, err)
	require.ElementsMatch(t, slices.Concat(narrow[:9], wide), ids(q.Waiting))

	require.NoError(t, b.store.SetMaxParallel(t.Context(), narrowSweep, 1))
	require.NoError(t, b.store.AbandonAttempt(t.Context(), runs.AttemptID, "host lost")) // whose lease stays, and is not renewed
	pgtest.Exec(t, url, "UPDATE leases SET state = 'suspect'")

	q, err = b.store.Queue(t.Context(), 100)
	require.NoError(t, err)
	require.ElementsMatch(t, slices.Concat(narrow[:9], wide), ids(q.Waiting), "its place is free, as in a round")

	b.place(t, berth.PlacementRequest{AttemptID: narrow[0], Demand: runs.Demand})
	narrow = narrow[1:]
	require.NoError(t, b.store.HoldRequests(t.Context()))

	for reason, held := range map[string][]string{"the sweep takes no new trials now": paused, "earlier trials of the sweep go first": narrow[1:]} {
		for _, id := range held {
			status, err := b.store.PlacementStatus(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, []string{reason}, status.Reasons)
		}
	}

	status, err := b.store.PlacementStatus(t.Context(), narrow[0])
	require.NoError(t, err)
	require.Empty(t, status.Reasons, "its reason is the placer's")
}

// Siblings of a trial that ran out of memory must not ask for more than the
// open hosts have.
func TestFinishAttempt_RaisesSiblingsToWhatIsThere(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		gone string
		want int64
	}{
		"lost":                  {"last_seen_at = now() - interval '1 hour'", 8 * gib},
		"with fault":            {"problem = 'its worker does not reach Temporal'", 8 * gib},
		"cordoned":              {"cordoned_at = now(), test_at = now()", 8 * gib},
		"cordoned for another":  {"cordoned_at = now(), test_at = now(), failed_sweeps = ARRAY[gen_random_uuid()]", 12 * gib},
		"cordoned for two more": {"cordoned_at = now(), test_at = now(), failed_sweeps = ARRAY[gen_random_uuid(), gen_random_uuid()]", 8 * gib},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := pgtest.URL(t)
			b, pool := setupOn(t, url), openPool(t, url)

			large := b.host
			large.ID, large.Name, large.MemoryBytes = uuid.NewString(), "large", 64*gib
			require.NoError(t, b.store.RegisterHost(t.Context(), large, "test"))
			_, err := pool.Exec(t.Context(), "UPDATE hosts SET "+tt.gone+" WHERE id = $1", large.ID)
			require.NoError(t, err)

			r := b.request(t, 8*gib)
			status := b.place(t, r)
			sibling := b.request(t, gib)

			require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, status.Token, berth.Outcome{
				Kind: berth.FailureHostOOM, Message: "oom", FinishedAt: time.Now(), Usage: berth.Usage{MemoryPeakBytes: 8 * gib, Samples: 3},
			})))

			require.Equal(t, map[string]int64{sibling.AttemptID: tt.want}, b.waiting(t))
		})
	}
}

// A shape measured to need more than the open hosts have waits for the host
// that fits it: with less, its trials would be killed.
func TestFinishAttempt_CutsNoSiblingBelowWhatWasMeasured(t *testing.T) {
	t.Parallel()

	for name, gone := range map[string]string{
		"drained":    "state = 'draining'",
		"lost":       "last_seen_at = now() - interval '1 hour'",
		"cordoned":   "cordoned_at = now(), test_at = now()",
		"with fault": "problem = 'its worker does not reach Temporal'",
		"smaller":    "memory_bytes_target = 8::bigint << 30, former_memory_bytes = 64::bigint << 30, former_cpu_milli = 4000, shrunk_at = now()",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			url := pgtest.URL(t)
			b, pool := setupOn(t, url), openPool(t, url)

			b.host.ID, b.host.Name, b.host.MemoryBytes = uuid.NewString(), "large", 64*gib
			require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))

			runs := []berth.PlacementRequest{b.request(t, 20*gib), b.request(t, 20*gib), b.request(t, 20*gib)}
			tokens := make([]int64, len(runs))

			for i, r := range runs {
				tokens[i] = b.place(t, r).Token
			}

			sibling := b.request(t, 20*gib)

			_, err := pool.Exec(t.Context(), "UPDATE hosts SET "+gone+" WHERE id = $1", b.host.ID)
			require.NoError(t, err)

			for i, r := range runs {
				require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, tokens[i], berth.Outcome{
					Kind: berth.FailureOK, FinishedAt: time.Now(), Usage: berth.Usage{MemoryPeakBytes: 18 * gib, Samples: 3},
				})))
			}

			size := b.waiting(t)[sibling.AttemptID]
			require.GreaterOrEqual(t, size, int64(18*gib))
			require.Less(t, size, int64(20*gib), "what was measured, with the margin of three runs")
		})
	}
}

func TestRemoveHost(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	ctx := t.Context()

	_, err := pool.Exec(ctx, `INSERT INTO devices (id, host_id, model, memory_bytes, headroom_bytes, free_bytes, max_contexts)
		VALUES ('gpu', $1, 'm', $2, 0, $2, 4)`, b.host.ID, int64(8*gib))
	require.NoError(t, err)

	open, done, waiting := b.request(t, gib), b.request(t, gib), b.request(t, gib)
	open.Demand.DeviceBytes = 1024
	_, err = b.store.Place(ctx, map[string]berth.Placement{open.AttemptID: {HostID: b.host.ID, DeviceID: "gpu", Demand: open.Demand}})
	require.NoError(t, err)

	status, err := b.store.PlacementStatus(ctx, open.AttemptID)
	require.NoError(t, err)

	ended := b.place(t, done)
	require.NoError(t, b.store.FinishAttempt(ctx, result(done, ended.Token, berth.Outcome{Kind: berth.FailureOK, FinishedAt: time.Now()})))

	require.Equal(t, berth.KindNotFound, berth.KindOf(b.store.RemoveHost(ctx, uuid.NewString(), true)))
	require.Equal(t, berth.KindConflict, berth.KindOf(b.store.RemoveHost(ctx, b.host.ID, false)), "its worker answers")

	b.lose(t, pool)
	require.NoError(t, b.store.RemoveHost(ctx, b.host.ID, false))

	hosts, err := b.store.ListHosts(ctx)
	require.NoError(t, err)
	require.Empty(t, hosts)

	attempt, err := b.store.GetAttempt(ctx, open.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.AttemptAbandoned, attempt.State)
	require.Equal(t, berth.KindFenced, berth.KindOf(b.store.AttemptRunning(ctx, open.AttemptID, status.Token, "c", time.Now())))

	kept, err := b.store.GetAttempt(ctx, done.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.AttemptFinished, kept.State, "history stays")

	_, err = b.store.Place(ctx, map[string]berth.Placement{waiting.AttemptID: {HostID: b.host.ID, Demand: waiting.Demand}})
	require.Equal(t, berth.KindExhausted, berth.KindOf(err), "nothing is placed on a removed host: %v", err)

	// The machine comes back after all: its worker registers, with nothing booked.
	require.Equal(t, berth.KindNotFound, berth.KindOf(b.store.TouchHost(ctx, b.host.ID, berth.HostFree{}, nil)))
	require.NoError(t, b.store.RegisterHost(ctx, b.host, "test"))
	require.NoError(t, b.store.TouchHost(ctx, b.host.ID, berth.HostFree{}, nil))

	memory, cpu := b.reserved(t)
	require.Zero(t, memory)
	require.Zero(t, cpu)

	var device, contexts int64

	require.NoError(t, pool.QueryRow(ctx, "SELECT reserved_bytes, contexts_reserved FROM devices").Scan(&device, &contexts))
	require.Zero(t, device)
	require.Zero(t, contexts)

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

	url := pgtest.URL(t)
	b, pool := setupOn(t, url), openPool(t, url)
	ctx := t.Context()

	refused, silent := b.request(t, gib), b.request(t, gib)
	b.place(t, refused)
	b.place(t, silent)
	require.NoError(t, b.store.RefuseAttempt(ctx, refused.AttemptID, "no such image"))
	require.NoError(t, b.store.AbandonAttempt(ctx, silent.AttemptID, "its host is silent"))

	before, err := b.store.GetAttempt(ctx, refused.AttemptID)
	require.NoError(t, err)

	b.lose(t, pool)
	require.NoError(t, b.store.RemoveHost(ctx, b.host.ID, false))

	after, err := b.store.GetAttempt(ctx, refused.AttemptID)
	require.NoError(t, err)
	require.Equal(t, before, after)

	given, err := b.store.GetAttempt(ctx, silent.AttemptID)
	require.NoError(t, err)
	require.Contains(t, given.Message, "its host was removed")
}
