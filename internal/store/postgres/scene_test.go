package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/scheduler/memory"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// hourAgo is when the runs of all tests begin: one time, or a second may pass between two.
var hourAgo = time.Now().Truncate(time.Second).Add(-time.Hour)

// open connects a store, which is closed when the test ends.
func open(t testing.TB, url string) *postgres.Store {
	t.Helper()

	store, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(store.Close)

	return store
}

// openPool connects past the store, for a test's own statements.
func openPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()

	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	return pool
}

// bundle is a store with a host of 4 cores and 8 GiB, and a sweep.
type bundle struct {
	store *postgres.Store
	url   string
	pool  *pgxpool.Pool // past the store
	host  berth.Host
	sweep string
	trial int // number of the newest one
}

func setup(t *testing.T) *bundle {
	t.Helper()

	b := bare(t)
	b.host = berth.Host{
		ID: uuid.NewString(), Name: "a", BootID: "boot", CPUMilli: 4000,
		MemoryBytes: 8 * gib, MemoryFreeBytes: 8 * gib,
	}
	b.register(t)
	b.begin(t, berth.Spec{Name: "s", Objective: &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize}})

	return b
}

// bare is a bundle without a host and a sweep.
func bare(t *testing.T) *bundle {
	t.Helper()

	url := pgtest.URL(t)

	return &bundle{store: open(t, url), url: url, pool: openPool(t, url)}
}

// begin goes on with a new sweep.
func (b *bundle) begin(t *testing.T, spec berth.Spec) {
	t.Helper()

	b.sweep, b.trial = uuid.NewString(), 0
	_, created, err := b.store.CreateSweep(t.Context(), berth.NewSweep{ID: b.sweep, Spec: spec, ImageDigest: "sha256:x", CreatedBy: "local"})
	require.NoError(t, err)
	require.True(t, created)
}

// another is the bundle with another sweep.
func (b *bundle) another(t *testing.T, resources berth.Resources) *bundle {
	t.Helper()

	other := *b
	other.begin(t, berth.Spec{Name: "t", Resources: resources})

	return &other
}

// register registers the host as it is now, with these GPUs of 100 GiB if there are any.
func (b *bundle) register(t *testing.T, gpus ...string) {
	t.Helper()

	for _, id := range gpus {
		b.host.Devices = append(b.host.Devices, gpu(id))
	}

	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))
}

const h200 = "NVIDIA H200"

func gpu(id string) berth.Device {
	return berth.Device{
		ID: id, Model: h200, Mode: berth.SharingTimeSlicing, MPSContexts: 44,
		MemoryBytes: 100 * gib, FreeBytes: 100 * gib, MaxContexts: 48,
	}
}

// exec runs a statement past the store.
func (b *bundle) exec(t *testing.T, statement string, args ...any) {
	t.Helper()

	_, err := b.pool.Exec(t.Context(), statement, args...)
	require.NoError(t, err, statement)
}

// rows counts the rows of a table, or of one with a WHERE.
func (b *bundle) rows(t *testing.T, table string) int {
	t.Helper()

	return number[int](t, b.pool, "SELECT count(*) FROM "+table)
}

// number is the one value that a statement returns.
func number[T any](t testing.TB, pool *pgxpool.Pool, statement string, args ...any) T {
	t.Helper()

	rows, err := pool.Query(t.Context(), statement, args...)
	require.NoError(t, err)

	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	require.NoError(t, err)

	return value
}

// next is a request for a new trial that is not stored yet.
func (b *bundle) next(t *testing.T, memory int64) berth.PlacementRequest {
	t.Helper()

	b.trial++

	shape := berth.Shape{ImageDigest: "sha256:x", Command: []string{"run"}}
	trial := uuid.NewString()

	_, _, err := b.store.Suggest(t.Context(), b.sweep, b.trial, 1, berth.SearchNeeds{},
		func(berth.Tried) ([]berth.NewTrial, bool, error) {
			return []berth.NewTrial{{ID: trial, Params: berth.Assignment{"lr": berth.FloatValue(1e15)}, Shape: shape}}, false, nil
		})
	require.NoError(t, err)

	return berth.PlacementRequest{
		AttemptID: uuid.NewString(), SweepID: b.sweep, TrialID: trial, WorkflowID: "w", Number: 1,
		Stage: berth.StageMain, Purpose: berth.PurposeRun, ShapeKey: shape.Key(),
		Demand: berth.Demand{MemoryBytes: memory, CPUMilli: 1000},
	}
}

// request makes a trial and asks for a place.
func (b *bundle) request(t *testing.T, memory int64) berth.PlacementRequest {
	t.Helper()

	r := b.next(t, memory)
	status, err := b.store.RequestPlacement(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWaiting, status.State)

	return r
}

// again asks for a place for another attempt of a trial.
func (b *bundle) again(t *testing.T, r berth.PlacementRequest, number int) berth.PlacementRequest {
	t.Helper()

	r.AttemptID, r.Number = uuid.NewString(), number
	_, err := b.store.RequestPlacement(t.Context(), r)
	require.NoError(t, err)

	return r
}

// place places a request on the host's cores.
func (b *bundle) place(t *testing.T, r berth.PlacementRequest) berth.PlacementStatus {
	t.Helper()

	return b.placeAs(t, r, berth.Placement{HostID: b.host.ID, Demand: r.Demand})
}

// placeOn places a request on a GPU of the host (empty = cores).
func (b *bundle) placeOn(t *testing.T, r berth.PlacementRequest, device string) berth.PlacementStatus {
	t.Helper()

	p := berth.Placement{HostID: b.host.ID, DeviceID: device, Class: berth.ClassCPU, Demand: r.Demand}
	if device != "" {
		p.Class, p.Demand.DeviceBytes = h200, 2*gib
	}

	return b.placeAs(t, r, p)
}

func (b *bundle) placeAs(t *testing.T, r berth.PlacementRequest, p berth.Placement) berth.PlacementStatus {
	t.Helper()

	placed, err := b.store.Place(t.Context(), map[string]berth.Placement{r.AttemptID: p})
	require.NoError(t, err)
	require.Equal(t, []string{r.AttemptID}, placed)

	status := b.placement(t, r)
	require.Equal(t, berth.RequestPlaced, status.State)

	return status
}

func result(r berth.PlacementRequest, token int64, o berth.Outcome) berth.Result {
	return berth.Result{
		AttemptID: r.AttemptID, TrialID: r.TrialID, SweepID: r.SweepID, ShapeKey: r.ShapeKey, Token: token,
		Reserved: r.Demand, Outcome: o, Source: berth.FootprintFull, Proof: "container exited",
	}
}

// finish ends an attempt that was placed, now if the outcome does not say when.
func (b *bundle) finish(t *testing.T, r berth.PlacementRequest, o berth.Outcome) {
	t.Helper()

	o.Message = "m"
	if o.FinishedAt.IsZero() {
		o.FinishedAt = time.Now()
	}

	require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, b.placement(t, r).Token, o)))
}

// end crashes an attempt that was placed.
func (b *bundle) end(t *testing.T, r berth.PlacementRequest) {
	t.Helper()
	b.finish(t, r, berth.Outcome{Kind: berth.FailureCrashed})
}

// runs places and ends an attempt with this peak memory.
func (b *bundle) runs(t *testing.T, r berth.PlacementRequest, kind berth.FailureKind, peak int64) {
	t.Helper()

	u := berth.Usage{MemoryPeakBytes: peak, Samples: 9, Wall: berth.Duration(time.Minute)}
	if kind == berth.FailureHostOOM {
		u.OOMKills = 1
	}

	b.place(t, r)
	b.finish(t, r, berth.Outcome{Kind: kind, Usage: u})
}

// ran runs a request on a device (empty = cores) from one second to another.
func (b *bundle) ran(t *testing.T, r berth.PlacementRequest, device string, kind berth.FailureKind, from, to int) {
	t.Helper()
	b.ended(t, r, device, berth.Outcome{Kind: kind}, from, to)
}

// ended is ran, with more of the outcome than its kind.
func (b *bundle) ended(t *testing.T, r berth.PlacementRequest, device string, o berth.Outcome, from, to int) {
	t.Helper()

	b.placeOn(t, r, device)
	o.StartedAt, o.FinishedAt = hourAgo.Add(time.Duration(from)*time.Second), hourAgo.Add(time.Duration(to)*time.Second)
	o.Usage = berth.Usage{MemoryPeakBytes: gib / 2, DevicePeakBytes: gib, Samples: 3, DeviceSamples: 3, CPU: berth.Duration(time.Second), Wall: berth.Duration(2 * time.Second)}

	if device != "" {
		o.Usage.DeviceActivity = berth.DeviceActivity{SMMilli: 500, DRAMMilli: 100}
		o.Usage.DeviceActive, o.Usage.DeviceUnknown = berth.Duration(2*time.Second), berth.Duration(time.Second)
		r.Demand.DeviceBytes = 2 * gib
	}

	b.finish(t, r, o)
}

// settle ends the newest trial, without a value unless it succeeded with one.
func (b *bundle) settle(t *testing.T, r berth.PlacementRequest, state berth.TrialState, kind berth.FailureKind, value *float64) {
	t.Helper()

	_, err := b.store.SetTrialState(t.Context(), berth.TrialUpdate{TrialID: r.TrialID, SweepID: b.sweep, Number: b.trial, State: state, Kind: kind, Value: value})
	require.NoError(t, err)
}

// setState sets the state of the sweep.
func (b *bundle) setState(t *testing.T, state berth.SweepState) {
	t.Helper()

	_, err := b.store.SetSweepState(t.Context(), b.sweep, state, "")
	require.NoError(t, err)
}

// ranOut is the newest out-of-memory of a trial that had this many bytes, after
// count such failures.
func ranOut(had int64, count int) *berth.LastOOM {
	return &berth.LastOOM{Demand: berth.Demand{MemoryBytes: had, CPUMilli: 1000}, PeakBytes: had, Count: count, Max: 3}
}

func (b *bundle) placement(t *testing.T, r berth.PlacementRequest) berth.PlacementStatus {
	t.Helper()

	status, err := b.store.PlacementStatus(t.Context(), r.AttemptID)
	require.NoError(t, err)

	return status
}

func (b *bundle) status(t *testing.T, r berth.PlacementRequest) berth.RequestState {
	t.Helper()

	return b.placement(t, r).State
}

func (b *bundle) attempt(t *testing.T, id string) berth.Attempt {
	t.Helper()

	attempt, err := b.store.GetAttempt(t.Context(), id)
	require.NoError(t, err)

	return attempt
}

func (b *bundle) getTrial(t *testing.T, number int) berth.Trial {
	t.Helper()

	trial, err := b.store.GetTrial(t.Context(), b.sweep, number)
	require.NoError(t, err)

	return trial
}

// reasons are why the bundle's trial waits, as the API shows them.
func (b *bundle) reasons(t *testing.T, number int) []string {
	t.Helper()

	texts := []string{}
	for _, r := range b.getTrial(t, number).Waiting {
		texts = append(texts, r.Reason)
	}

	return texts
}

func (b *bundle) queue(t *testing.T) berth.Queue {
	t.Helper()

	queue, err := b.store.Queue(t.Context(), 100)
	require.NoError(t, err)

	return queue
}

func ids(waiting []berth.WaitingRequest) []string {
	out := make([]string, len(waiting))
	for i, w := range waiting {
		out[i] = w.AttemptID
	}

	return out
}

// waiting is how much memory the requests that wait would get, by attempt.
func (b *bundle) waiting(t *testing.T) map[string]int64 {
	t.Helper()

	queue := b.queue(t)
	sizes := make(map[string]int64, len(queue.Waiting))

	for _, r := range queue.Waiting {
		known := queue.Footprints[r.ShapeKey].Of(berth.ClassCPU)
		demand, _ := memory.Size(memory.Ask{SweepID: r.SweepID, Resources: r.Resources, Last: r.Last}, known, queue.Hosts)
		sizes[r.AttemptID] = demand.MemoryBytes
	}

	return sizes
}

// running is how many attempts of the bundle's sweep count for max_parallel.
func (b *bundle) running(t *testing.T) int {
	t.Helper()

	return b.queue(t).Sweeps[b.sweep].Running
}

func (b *bundle) footprints(t *testing.T, shapeKey string) berth.Footprints {
	t.Helper()

	known, err := b.store.Footprints(t.Context(), []string{shapeKey})
	require.NoError(t, err)

	return known[shapeKey]
}

// first is the oldest host, as the API shows it.
func (b *bundle) first(t *testing.T) berth.Host {
	t.Helper()

	hosts, err := b.store.ListHosts(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, hosts)

	return hosts[0]
}

func (b *bundle) reserved(t *testing.T) (memory, cpu int64) {
	t.Helper()

	host := b.first(t)

	return host.MemoryReservedBytes, host.CPUMilliReserved
}

func (b *bundle) health(t *testing.T) health.State {
	t.Helper()

	state, err := b.store.Health(t.Context())
	require.NoError(t, err)

	return state
}

// touch is a worker's report.
func (b *bundle) touch(t *testing.T, free berth.HostFree, seen ...berth.SeenAttempt) {
	t.Helper()
	require.NoError(t, b.store.TouchHost(t.Context(), b.host.ID, free, seen))
}

// lose lets the bundle's host fall silent.
func (b *bundle) lose(t *testing.T) {
	t.Helper()
	b.exec(t, "UPDATE hosts SET last_seen_at = now() - interval '1 hour' WHERE id = $1", b.host.ID)
}
