package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/testseed"
)

// violations says which invariants of the ledger do not hold, in one statement
// and so of one moment (docs/reliability.md, I1 to I3).
const violations = `
WITH held AS (
    SELECT host_id, sum(memory_bytes) AS memory, sum(cpu_milli) AS cpu, count(*) AS attempts
    FROM leases WHERE state <> 'released' GROUP BY host_id
), held_devices AS (
    SELECT device_id, sum(device_bytes) AS bytes, sum(contexts) AS contexts
    FROM leases WHERE state <> 'released' AND device_id IS NOT NULL GROUP BY device_id
)
SELECT 'host ' || h.id || ' does not hold the sum of its leases'
FROM hosts h LEFT JOIN held l ON l.host_id = h.id
WHERE (h.memory_reserved_bytes, h.cpu_milli_reserved, h.attempts)
    IS DISTINCT FROM (coalesce(l.memory, 0)::bigint, coalesce(l.cpu, 0)::bigint, coalesce(l.attempts, 0)::integer)
UNION ALL
SELECT 'host ' || id || ' is over its capacity' FROM hosts
WHERE memory_reserved_bytes > memory_bytes - memory_headroom_bytes OR cpu_milli_reserved > cpu_milli
    OR (max_attempts > 0 AND attempts > max_attempts) OR memory_reserved_bytes < 0 OR cpu_milli_reserved < 0
UNION ALL
SELECT 'device ' || d.id || ' does not hold the sum of its leases, or too much'
FROM devices d LEFT JOIN held_devices l ON l.device_id = d.id
WHERE (d.reserved_bytes, d.contexts_reserved) IS DISTINCT FROM (coalesce(l.bytes, 0)::bigint, coalesce(l.contexts, 0)::integer)
    OR d.reserved_bytes > d.memory_bytes - d.headroom_bytes OR d.contexts_reserved > d.max_contexts
UNION ALL
SELECT 'trial ' || trial_id || ' has several live attempts' FROM attempts
WHERE state IN ('placed', 'running') GROUP BY trial_id, stage HAVING count(*) > 1
UNION ALL
SELECT 'attempt ' || a.id || ' lives without a lease' FROM attempts a
WHERE a.state IN ('placed', 'running') AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.attempt_id = a.id AND l.token = a.token)
UNION ALL
SELECT 'attempt ' || a.id || ' is finished and still books' FROM attempts a JOIN leases l ON l.attempt_id = a.id
WHERE a.state = 'finished' AND l.state <> 'released'
UNION ALL
SELECT 'request ' || r.attempt_id || ' and its attempt disagree' FROM placement_requests r LEFT JOIN attempts a ON a.id = coalesce(r.revives, r.attempt_id)
WHERE (r.state = 'placed') <> (a.id IS NOT NULL)
UNION ALL
SELECT 'request ' || r.attempt_id || ' was not told once' FROM placement_requests r
WHERE (r.state IN ('placed', 'impossible'))::integer <>
    (SELECT count(*) FROM outbox o WHERE o.kind = 'placed' AND o.payload ->> 'attempt_id' = r.attempt_id::text)`

// ledger is a machine that does random things to a store.
type ledger struct {
	store *postgres.Store
	pool  *pgxpool.Pool
	hosts []string
	sweep string

	rand     *rand.Rand
	requests []berth.PlacementRequest
	placed   []berth.PlacementRequest // oldest first
	tokens   map[string]int64         // of the attempts that were placed
	steps    map[string]int           // that did something
}

// newLedgers registers the hosts in one database and returns n machines on it,
// each with its own sweep and part of the seed.
func newLedgers(t *testing.T, seed uint64, n int, hosts ...berth.Host) []*ledger {
	t.Helper()
	t.Logf("seed %d", seed)

	b, ids := bare(t), make([]string, 0, len(hosts))

	for _, b.host = range hosts {
		b.register(t)

		ids = append(ids, b.host.ID)
	}

	ledgers := make([]*ledger, n)

	for i := range ledgers {
		b.begin(t, berth.Spec{Name: "s"})
		ledgers[i] = &ledger{
			store: b.store, pool: b.pool, hosts: ids, sweep: b.sweep,
			rand: rand.New(rand.NewPCG(seed, uint64(i+1))), tokens: map[string]int64{}, steps: map[string]int{},
		}
	}

	return ledgers
}

// atOnce lets every machine do something several times, all at the same time.
func atOnce(t *testing.T, ledgers []*ledger, times int, do func(context.Context, *ledger) error) {
	t.Helper()

	group, ctx := errgroup.WithContext(t.Context())

	for _, l := range ledgers {
		group.Go(func() error {
			for range times {
				if err := do(ctx, l); err != nil {
					return err
				}
			}

			return nil
		})
	}

	require.NoError(t, group.Wait())
}

// everything lists the random steps of a ledger; frequent steps appear several times.
var everything = []string{
	"ask", "ask", "ask", "place", "place", "place", "run", "run", "finish", "finish", "finish", "abandon", "release", "release",
	"again", "again", "withdraw", "refuse", "register", "cancel", "expire", "suspect", "suspect", "renew", "explain",
}

// step does one of the named things at random. What a store may refuse is no error.
func (l *ledger) step(ctx context.Context, names []string) error {
	name := names[l.rand.IntN(len(names))]

	did, err := l.do(ctx, name)

	switch kind := berth.KindOf(err); {
	case err == nil && did:
		l.steps[name]++
	case err != nil && (kind == berth.KindExhausted || kind == berth.KindFenced):
		l.steps[name+" refused: "+string(kind)]++
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}

	return nil
}

func (l *ledger) check(ctx context.Context) error {
	rows, err := l.pool.Query(ctx, violations)
	if err != nil {
		return err
	}

	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(found) > 0 {
		err = berth.Errorf(berth.KindInternal, "%s", strings.Join(found, "\n"))
	}

	return err
}

// pick returns one of the newest.
func (l *ledger) pick(from []berth.PlacementRequest) (berth.PlacementRequest, bool) {
	if len(from) == 0 {
		return berth.PlacementRequest{}, false
	}

	return from[max(len(from)-1-l.rand.IntN(10), 0)], true
}

func (l *ledger) ask(ctx context.Context) (bool, error) {
	trial, number := uuid.NewString(), len(l.requests)+1
	shape := berth.Shape{ImageDigest: "sha256:x", Command: []string{fmt.Sprint(l.rand.IntN(3))}}

	_, _, err := l.store.Suggest(ctx, l.sweep, number, 1, berth.SearchNeeds{}, func(berth.Tried) ([]berth.NewTrial, bool, error) {
		return []berth.NewTrial{{ID: trial, Params: berth.Assignment{}, Shape: shape}}, false, nil
	})
	if err != nil {
		return false, err
	}

	r := berth.PlacementRequest{
		SweepID: l.sweep, TrialID: trial, WorkflowID: "w", Stage: berth.StageMain, Purpose: berth.PurposeRun, ShapeKey: shape.Key(),
	}
	l.requests = append(l.requests, r)

	return l.request(ctx, len(l.requests)-1)
}

// request asks for the next attempt of a trial.
func (l *ledger) request(ctx context.Context, i int) (bool, error) {
	r := &l.requests[i]
	r.AttemptID = uuid.NewString()
	r.Number++
	r.Demand = berth.Demand{MemoryBytes: (1 + l.rand.Int64N(8)) * gib / 4, CPUMilli: 50 * (1 + l.rand.Int64N(10)), Exclusive: l.rand.IntN(8) == 0}

	if l.rand.IntN(3) == 0 {
		r.Demand.DeviceBytes, r.Demand.Contexts = (1+l.rand.Int64N(3))*gib, l.rand.IntN(3)
	}

	_, err := l.store.RequestPlacement(ctx, *r)

	return true, err
}

// again asks for another attempt of a trial, after any end of the last one.
func (l *ledger) again(ctx context.Context) (bool, error) {
	if len(l.requests) == 0 {
		return false, nil
	}

	i := l.rand.IntN(len(l.requests))

	attempt, err := l.store.GetAttempt(ctx, l.requests[i].AttemptID)
	if err != nil || attempt.State != berth.AttemptFinished && attempt.State != berth.AttemptAbandoned {
		return false, nil //nolint:nilerr // it was not placed
	}

	return l.request(ctx, i)
}

// place books up to three at random, often more than there is.
func (l *ledger) place(ctx context.Context) (bool, error) {
	decisions := map[string]berth.Placement{}

	for range 1 + l.rand.IntN(3) {
		if r, ok := l.pick(l.requests); ok {
			host := l.hosts[l.rand.IntN(len(l.hosts))]
			decision := berth.Placement{HostID: host, Class: berth.ClassCPU, Demand: r.Demand}

			if r.Demand.DeviceBytes > 0 {
				decision.DeviceID, decision.Class = "GPU-"+host, "GPU"
			}

			decisions[r.AttemptID] = decision
		}
	}

	placed, err := l.store.Place(ctx, decisions)
	if err != nil {
		return false, err
	}

	for _, id := range placed {
		l.placed = append(l.placed, l.requests[slices.IndexFunc(l.requests, func(r berth.PlacementRequest) bool { return r.AttemptID == id })])

		status, err := l.store.PlacementStatus(ctx, id)
		if err != nil {
			return false, err
		}

		l.tokens[id] = status.Token
	}

	return len(placed) > 0, nil
}

// do does the named thing, and reports whether there was something to do.
func (l *ledger) do(ctx context.Context, name string) (bool, error) {
	if steps := map[string]func(context.Context) (bool, error){
		"ask": l.ask, "place": l.place, "again": l.again, "release": l.release, "register": l.register, "suspect": l.suspect, "renew": l.renew, "explain": l.explain,
	}; steps[name] != nil {
		return steps[name](ctx)
	}

	from := l.placed
	if name == "withdraw" || name == "refuse" || name == "cancel" {
		from = l.requests
	}

	r, ok := l.pick(from)
	if !ok || name == "refuse" && l.rand.IntN(3) > 0 {
		return false, nil
	}

	var err error

	switch name {
	case "run":
		err = l.store.AttemptRunning(ctx, r.AttemptID, l.tokens[r.AttemptID], "container", time.Now())
	case "finish":
		err = l.finish(ctx, r)
	case "abandon":
		err = l.store.AbandonAttempt(ctx, r.AttemptID, "host lost")
	case "withdraw":
		_, err = l.store.WithdrawRequest(ctx, r.AttemptID)
	case "refuse":
		err = l.store.RefuseRequest(ctx, r.AttemptID, []berth.Rejection{{Dimension: berth.DimensionMemory, Never: true}})
	case "cancel": // a trial in any state
		_, err = l.store.SetTrialState(ctx, berth.TrialUpdate{
			TrialID: r.TrialID, SweepID: l.sweep, Number: 1, State: berth.TrialCanceled, Kind: berth.FailureCanceled,
		})
	case "expire": // a lease, as while its host is away
		_, err = l.pool.Exec(ctx, "UPDATE leases SET expires_at = now() - interval '1s' WHERE attempt_id = $1", r.AttemptID)
	default:
		err = berth.Errorf(berth.KindInternal, "there is no step %q", name)
	}

	return true, err
}

// finish commits with the token it got, which is stale when it was abandoned.
func (l *ledger) finish(ctx context.Context, r berth.PlacementRequest) error {
	kinds := []berth.FailureKind{berth.FailureOK, berth.FailureHostOOM, berth.FailureUserError, berth.FailureCanceled, berth.FailureInfra}

	finish := result(r, l.tokens[r.AttemptID], berth.Outcome{
		Kind: kinds[l.rand.IntN(len(kinds))], Message: "m", FinishedAt: time.Now(),
		Usage: berth.Usage{MemoryPeakBytes: gib, Samples: 1, Wall: berth.Duration(time.Second)},
	})
	finish.ImageMissing = finish.Outcome.Kind == berth.FailureInfra && l.rand.IntN(2) == 0

	return l.store.FinishAttempt(ctx, finish)
}

// release frees abandoned attempts, as the reconciler's proof does.
func (l *ledger) release(ctx context.Context) (bool, error) {
	if len(l.placed) == 0 {
		return false, nil
	}

	id := l.placed[l.rand.IntN(len(l.placed))].AttemptID

	attempt, err := l.store.GetAttempt(ctx, id)
	if err != nil || attempt.State != berth.AttemptAbandoned {
		return false, err
	}

	return true, l.store.ReleaseLease(ctx, id, "no container")
}

// register lets a host come back with another size, also a smaller one.
func (l *ledger) register(ctx context.Context) (bool, error) {
	return true, l.store.RegisterHost(ctx, machine(l.hosts[l.rand.IntN(len(l.hosts))], l.rand), "test")
}

func (l *ledger) suspect(ctx context.Context) (bool, error) {
	suspects, err := l.store.SuspectLeases(ctx)

	return len(suspects) > 0, err
}

func (l *ledger) renew(ctx context.Context) (bool, error) {
	seen := make([]berth.SeenAttempt, len(l.placed))
	for i, r := range l.placed {
		seen[i] = berth.SeenAttempt{AttemptID: r.AttemptID, Token: l.tokens[r.AttemptID]}
	}

	return len(seen) > 0, l.store.TouchHost(ctx, l.hosts[l.rand.IntN(len(l.hosts))], berth.HostFree{MemoryBytes: gib}, seen)
}

// explain stores why several wait.
func (l *ledger) explain(ctx context.Context) (bool, error) {
	waits := map[string]berth.Wait{}

	for range 3 {
		if r, ok := l.pick(l.requests); ok {
			wait := berth.Wait{Reasons: []berth.Rejection{{Dimension: berth.DimensionMemory, Reason: "full"}}}
			if host := l.hosts[l.rand.IntN(len(l.hosts))]; l.rand.IntN(2) == 0 {
				wait.Kept.HostID = host
			}

			waits[r.AttemptID] = wait
		}
	}

	return len(waits) > 0, l.store.StoreReasons(ctx, waits)
}

func machine(id string, r *rand.Rand) berth.Host {
	return berth.Host{
		ID: id, Name: "h", BootID: "boot", CPUMilli: 1000 * (1 + r.Int64N(6)), MemoryBytes: (4 + r.Int64N(20)) * gib,
		MemoryHeadroomBytes: r.Int64N(3) * gib, MemoryFreeBytes: gib, MaxAttempts: []int{0, 8, 16}[r.IntN(3)],
	}
}

// TestLedger_HoldsWhateverHappens lets several do random things to one ledger
// at once and looks at the invariants after every step.
func TestLedger_HoldsWhateverHappens(t *testing.T) {
	t.Parallel()

	const writers, steps = 4, 400

	seed := testseed.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	ledgers := newLedgers(t, seed, writers, machine(uuid.NewString(), random), machine(uuid.NewString(), random))

	ledgers[0].addDevices(t, 8*gib, 3)

	atOnce(t, ledgers, steps, func(ctx context.Context, l *ledger) error {
		if err := l.step(ctx, everything); err != nil {
			return err
		}

		return l.check(ctx)
	})

	requireAll(t, ledgers, append(everything, "place refused: exhausted", "finish refused: fenced"))
}

// TestLedger_NobodyWaitsInACircle books, frees, raises and cancels the same
// rows from all sides as fast as it goes, on hosts where all of it fits: a
// deadlock is an error.
func TestLedger_NobodyWaitsInACircle(t *testing.T) {
	t.Parallel()

	const writers, steps = 8, 400

	host := func() berth.Host {
		return berth.Host{ID: uuid.NewString(), Name: "h", BootID: "boot", CPUMilli: 1 << 40, MemoryBytes: 1 << 50, MemoryFreeBytes: gib}
	}

	ledgers := newLedgers(t, testseed.Seed(t), writers, host(), host())
	ledgers[0].addDevices(t, 1<<50, 1<<20)

	busy := []string{"ask", "ask", "ask", "place", "place", "place", "place", "finish", "finish", "abandon", "release", "release", "cancel", "expire", "suspect", "renew", "explain"}
	atOnce(t, ledgers, steps, func(ctx context.Context, l *ledger) error { return l.step(ctx, busy) })
	require.NoError(t, ledgers[0].check(t.Context()))
	requireAll(t, ledgers, busy)
}

// addDevices gives each host one.
func (l *ledger) addDevices(t *testing.T, bytes int64, contexts int) {
	t.Helper()

	for _, id := range l.hosts {
		_, err := l.pool.Exec(t.Context(), `INSERT INTO devices (id, host_id, model, memory_bytes, headroom_bytes, free_bytes, max_contexts)
			VALUES ($1, $2, 'm', $3, $4, $3, $5)`, "GPU-"+id, id, bytes, int64(gib), contexts)
		require.NoError(t, err)
	}
}

// requireAll checks that each of the named things was done.
func requireAll(t *testing.T, ledgers []*ledger, names []string) {
	t.Helper()

	did := map[string]int{}
	for _, l := range ledgers {
		for name, n := range l.steps {
			did[name] += n
		}
	}

	t.Logf("did %v", did)

	for _, name := range names {
		require.Positive(t, did[name], "%s was never tried", name)
	}
}
