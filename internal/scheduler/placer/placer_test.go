package placer

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const gib = 1 << 30

// queue is what the placer reads and writes: hosts, requests that wait and what
// sweeps use, given as data. It is not internal/testkit/fake's ledger: how the database
// makes a queue of its rows (order, shares, waits) is SQL, which internal/store/postgres
// tests on a real server, and a copy of it in Go would only agree with itself. The
// ledger's conformance suite tests refusals of Place.
type queue struct {
	hosts    []berth.Host
	waiting  []berth.WaitingRequest
	use      map[string]berth.SweepUse
	known    map[string]berth.Footprints
	suspects []string
	paces    []berth.MixPace
	loaded   map[string][]berth.Loaded
	onGPUs   map[string]bool
	advice   map[string]berth.Advice // as stored

	placed  []map[string]berth.Placement
	refused map[string][]berth.Rejection
	noted   []error // how rounds ended
	reasons []map[string][]berth.Rejection
	kept    []map[string]berth.KeptPlace // with reasons
	aside   map[string]string
	errs    map[string]error // errors of failing calls
	bad     map[string]error // of requests that are refused, wherever they are
	rounds  int
}

// refuses is the error about the first bad request of a batch.
func refuses[T any](f *queue, batch map[string]T) error {
	for id := range batch {
		if err := f.bad[id]; err != nil {
			return err
		}
	}

	return nil
}

func (f *queue) ClearAdvice(context.Context) error {
	f.advice = nil

	return nil
}

func (f *queue) NoteRound(_ context.Context, _ string, err error) { f.noted = append(f.noted, err) }

func (f *queue) SetAside(_ context.Context, attemptID, why string) error {
	f.aside[attemptID] = why

	return f.errs["aside"]
}

func (f *queue) Queue(context.Context, int) (berth.Queue, error) {
	return berth.Queue{Hosts: f.hosts, Waiting: f.waiting, Sweeps: f.use, Footprints: f.known, Paces: f.paces, OnDevices: f.loaded, OnGPUs: f.onGPUs}, f.errs["queue"]
}

func (f *queue) Place(_ context.Context, decisions map[string]berth.Placement) ([]string, error) {
	if err := refuses(f, decisions); err != nil {
		return nil, err
	}

	kept := make(map[string]berth.Placement)
	maps.Copy(kept, decisions)

	f.placed = append(f.placed, kept)

	return nil, f.errs["place"]
}

func (f *queue) RefuseRequest(_ context.Context, attemptID string, reasons []berth.Rejection) error {
	if err := f.bad[attemptID]; err != nil {
		return err
	}

	if f.refused == nil {
		f.refused = make(map[string][]berth.Rejection)
	}

	f.refused[attemptID] = reasons

	return f.errs["refuse"]
}

func (f *queue) HoldRequests(context.Context) error { return nil }

func (f *queue) StoreReasons(_ context.Context, waits map[string]berth.Wait) error {
	if err := refuses(f, waits); err != nil {
		return err
	}

	reasons, kept := make(map[string][]berth.Rejection, len(waits)), make(map[string]berth.KeptPlace, len(waits))
	for id, w := range waits {
		reasons[id], kept[id] = w.Reasons, w.Kept
	}

	f.reasons, f.kept = append(f.reasons, reasons), append(f.kept, kept)

	return f.errs["reasons"]
}

func (f *queue) StoreAdvice(_ context.Context, advice map[string]berth.Advice) error {
	maps.Copy(f.advice, advice)

	return f.errs["advice"]
}

func (f *queue) SuspectLeases(context.Context) ([]string, error) {
	return f.suspects, f.errs["suspects"]
}

func (f *queue) ListenPlacer(ctx context.Context, _ time.Duration, wake func()) error {
	for range f.rounds {
		wake()
	}

	return ctx.Err()
}

func (f *queue) Lead(ctx context.Context, name string, lead func(ctx context.Context) error) error {
	f.suspects = append(f.suspects, name)

	return lead(ctx)
}

// request is one whose size the user wrote.
func request(id string, memory int64) berth.WaitingRequest {
	return berth.WaitingRequest{
		AttemptID: id, SweepID: "s", Resources: berth.Resources{Memory: berth.Size(memory), CPUs: 1000}, Waited: time.Second,
	}
}

// last is the newest out-of-memory of a trial before its last attempt.
func last(had int64) *berth.LastOOM {
	return &berth.LastOOM{Demand: berth.Demand{MemoryBytes: had, CPUMilli: 1000}, PeakBytes: had, Count: 2, Max: 3}
}

// placedAt is where a request with this much memory was placed.
func withoutMixes(all []map[string]berth.Placement) []map[string]berth.Placement {
	for _, placed := range all {
		for id, p := range placed {
			p.Mix = berth.Mix{}
			placed[id] = p
		}
	}

	return all
}

func placedAt(host string, memory int64) berth.Placement {
	return berth.Placement{HostID: host, Class: berth.ClassCPU, Demand: berth.Demand{MemoryBytes: memory, CPUMilli: 1000}}
}

func setup(t *testing.T, waiting ...berth.WaitingRequest) (*Placer, *queue) {
	t.Helper()

	f := &queue{
		hosts:   []berth.Host{{ID: "h", Name: "host", State: berth.HostReady, CPUMilli: 2000, MemoryBytes: 8 * gib, MemoryFreeBytes: 8 * gib}},
		waiting: waiting,
		use:     map[string]berth.SweepUse{"s": {State: berth.SweepRunning}},
		errs:    map[string]error{},
		bad:     map[string]error{},
		aside:   map[string]string{},
		advice:  map[string]berth.Advice{},
	}

	return New(f, slog.New(slog.DiscardHandler)), f
}

func TestRound_PlacesRefusesAndExplains(t *testing.T) {
	t.Parallel()

	p, f := setup(t, request("a", gib), request("b", 2*gib), request("c", 7*gib), request("huge", 9*gib))
	require.NoError(t, p.Round(t.Context()))

	require.Equal(t, []map[string]berth.Placement{{"a": placedAt("h", gib), "c": placedAt("h", 7*gib)}}, f.placed)
	require.Equal(t, "host host: needs 9,216 MiB of memory, 8,192 MiB there at all", f.refused["huge"][0].Reason)
	require.Len(t, f.refused, 1)
	require.Len(t, f.reasons, 1)
	require.Equal(t, map[string][]berth.Rejection{"b": {{
		HostID: "h", HostName: "host", Dimension: berth.DimensionMemory, Needed: 2 * gib, Free: 0,
		Reason: "host host: needs 2,048 MiB of memory, 0 bytes free",
	}}}, f.reasons[0])
}

// The first attempt of a shape on a GPU has a minute to measure it before others run beside
// it at a guess. A trial that ran out of that memory waits for the measurement.
func TestRound_OneMeasuresItsShape(t *testing.T) {
	t.Parallel()

	p, f := setup(t, onGPU("a", "s"), onGPU("b", "s"), onGPU("c", "other"))
	wait := func(requests ...berth.WaitingRequest) {
		f.waiting = requests
		each(f, func(w *berth.WaitingRequest) { w.Resources.GPUMemory = 0 })
	}

	wait(f.waiting...)
	f.hosts = []berth.Host{gpuHost()}

	placed := func() []string {
		t.Helper()

		f.placed = nil
		require.NoError(t, p.Round(t.Context()))

		if len(f.placed) == 0 {
			return nil
		}

		return slices.Sorted(maps.Keys(f.placed[0]))
	}
	require.Equal(t, []string{"a", "c"}, placed())

	wait(onGPU("b", "s"), onGPU("d", "s"))
	f.onGPUs = map[string]bool{"s": true}
	require.Empty(t, placed())

	f.onGPUs["s"] = false // for more than a minute
	require.Equal(t, []string{"b", "d"}, placed(), "beside it, at a guess")
	require.Equal(t, int64(2*gib), f.placed[0]["b"].Demand.DeviceBytes)

	ranOut := &berth.LastOOM{Demand: berth.Demand{MemoryBytes: gib, CPUMilli: 500, DeviceBytes: 2 * gib}, Device: true, Count: 1, Max: 3}
	f.waiting[0].Last, f.waiting[1].Last = ranOut, ranOut
	require.Empty(t, placed())

	f.known = map[string]berth.Footprints{"s": {"NVIDIA H200 (MPS)": {Source: berth.FootprintPartial, DevicePeakBytes: gib}}}
	require.Equal(t, []string{"b", "d"}, placed())

	f.known, f.onGPUs = nil, nil // the earlier runs failed
	require.Equal(t, []string{"b"}, placed())
}

// Shapes that come one by one while another is measured get even parts of the GPU: the
// first of them waits a second, so that they are seen together.
func TestRound_ShapesGather(t *testing.T) {
	t.Parallel()

	p, f := setup(t)
	f.hosts = []berth.Host{gpuHost()}
	f.onGPUs = map[string]bool{"before": true}

	at := func(waited ...time.Duration) map[string]int64 {
		t.Helper()

		f.waiting, f.placed = nil, nil

		for i, w := range waited {
			id := string(rune('a' + i))
			f.waiting = append(f.waiting, onGPU(id, id))
			f.waiting[i].Waited, f.waiting[i].Resources.GPUMemory = w, 0
		}

		require.NoError(t, p.Round(t.Context()))

		bytes := make(map[string]int64)

		for _, placed := range f.placed {
			for id, placement := range placed {
				bytes[id] = placement.Demand.DeviceBytes / gib
			}
		}

		return bytes
	}

	whole := at(2 * time.Second)["a"]
	require.Empty(t, at(900*time.Millisecond))
	require.Equal(t, map[string]int64{"a": whole / 2}, at(1100*time.Millisecond, 500*time.Millisecond, 400*time.Millisecond))

	f.onGPUs["before"] = false
	require.Len(t, at(0), 1, "nothing else is measured: it need not wait")
}

// A request is sized when it is decided, by the current footprint of its shape
// and the current hosts, not by their state at its creation.
func TestRound_SizesWhatWaits(t *testing.T) {
	t.Parallel()

	auto := request("a", 0)
	auto.ShapeKey = "shape"

	p, f := setup(t, auto)
	sized := func() int64 {
		t.Helper()

		f.placed, f.refused = nil, nil
		require.NoError(t, p.Round(t.Context()))

		if len(f.placed) == 0 {
			return 0
		}

		return f.placed[0]["a"].Demand.MemoryBytes
	}
	require.Equal(t, int64(2*gib), sized(), "a quarter of the host, as nothing is known")

	f.known = map[string]berth.Footprints{"shape": {
		berth.ClassCPU: {Source: berth.FootprintFull, Samples: 3, MemoryPeakBytes: gib, Duration: berth.Duration(time.Minute)},
	}}
	require.Equal(t, int64(gib+64<<20), sized())

	f.waiting[0].Last = last(8 * gib)
	require.Zero(t, sized())
	require.Equal(t, "host host: needs 12,288 MiB of memory, 8,192 MiB there at all", f.refused["a"][0].Reason)
}

// On a: a run of 30 days beside small ones; on b small ones only, of four minutes
// each, but more of them. A trial that wants a host for itself must not have a
// kept free turn after turn, for 30 days.
func TestRound_AnotherHostAfterATurnInVain(t *testing.T) {
	t.Parallel()

	const every, small = time.Minute, 4 * time.Minute

	p, f := setup(t)
	f.hosts = append(f.hosts, f.hosts[0])
	wide := request("wide", 8*gib)
	wide.Last = last(4 * gib)

	// Ends of the small requests of each host: those on b never end at once.
	ends := [2][]time.Duration{{4 * time.Minute}, {2 * time.Minute, 4 * time.Minute}}

	for now, n := time.Duration(0), 0; ; now += every {
		require.Less(t, now, 4*time.Hour, "still not placed")

		wide.Waited = now
		f.waiting, f.placed = []berth.WaitingRequest{wide}, nil

		for i := range f.hosts {
			h := &f.hosts[i]
			h.ID, h.Name = []string{"a", "b"}[i], []string{"a", "b"}[i]
			ends[i] = slices.DeleteFunc(ends[i], func(end time.Duration) bool { return end <= now })
			h.Attempts = len(ends[i]) + 1 - i
			h.MemoryReservedBytes, h.CPUMilliReserved = int64(2*(1-i)+4*len(ends[i]))*gib, int64(500*h.Attempts)
		}

		for range 3 { // there is always a small one
			n++
			r := request(fmt.Sprint(n), 4*gib)
			r.Resources.CPUs, r.Waited = 500, 0
			f.waiting = append(f.waiting, r)
		}

		require.NoError(t, p.Round(t.Context()))

		for _, batch := range f.placed {
			for id, place := range batch {
				if id == "wide" {
					require.Equal(t, "b", place.HostID)

					return
				}

				i := int(place.HostID[0] - 'a')
				ends[i] = append(ends[i], now+small)
			}
		}
	}
}

func TestRound_StoresReasonsOnlyWhenTheyChanged(t *testing.T) {
	t.Parallel()

	p, f := setup(t, request("c", 7*gib))
	f.hosts[0].MemoryReservedBytes = 2 * gib
	require.NoError(t, p.Round(t.Context()))
	require.Len(t, f.reasons, 1)

	f.hosts[0].MemoryReservedBytes = 3 * gib
	require.NoError(t, p.Round(t.Context()))
	require.Len(t, f.reasons, 1, "not twice in a second")

	p.explained = time.Time{}
	f.waiting[0].Reasons = f.reasons[0]["c"]
	f.hosts[0].MemoryReservedBytes = 2 * gib
	require.NoError(t, p.Round(t.Context()))
	require.Len(t, f.reasons, 1, "nothing new")

	p.explained = time.Time{}
	f.hosts[0].MemoryReservedBytes = 3 * gib
	require.NoError(t, p.Round(t.Context()))
	require.Len(t, f.reasons, 2)
}

// The capacity kept free for a request is stored with its reasons: once, and again for another host or none.
func TestRound_StoresWhatIsKept(t *testing.T) {
	t.Parallel()

	overdue := request("c", 7*gib)
	overdue.Waited = packing.DrainAfter
	p, f := setup(t, overdue)
	f.hosts[0].MemoryReservedBytes = 2 * gib

	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, []map[string]berth.KeptPlace{{"c": {HostID: f.hosts[0].ID}}}, f.kept)

	p.explained = time.Time{}
	f.waiting[0].Reasons = f.reasons[0]["c"]
	require.NoError(t, p.Round(t.Context()))
	require.Len(t, f.kept, 2, "the ledger does not say that it is kept")

	p.explained = time.Time{}
	f.waiting[0].Kept = f.kept[1]["c"]
	require.NoError(t, p.Round(t.Context()))
	require.Len(t, f.kept, 2, "nothing new")

	p.explained = time.Time{}
	f.use["s"] = berth.SweepUse{State: berth.SweepPaused}
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, berth.KeptPlace{}, f.kept[2]["c"])
}

func TestRound_StoresTheFirstFewReasons(t *testing.T) {
	t.Parallel()

	p, f := setup(t, request("c", 7*gib))
	f.hosts[0].MemoryReservedBytes = 2 * gib

	for i := range 20 {
		h := f.hosts[0]
		h.ID = fmt.Sprintf("h%02d", i)
		f.hosts = append(f.hosts, h)
	}

	require.NoError(t, p.Round(t.Context()))
	require.Len(t, f.reasons[0]["c"], reasonsKept)
}

func TestRound_RespectsTheSweep(t *testing.T) {
	t.Parallel()

	for state, places := range map[berth.SweepState]bool{
		berth.SweepPending: true, berth.SweepRunning: true,
		berth.SweepPaused: false, berth.SweepStopping: false, berth.SweepCanceling: false, berth.SweepStopped: false,
	} {
		p, f := setup(t, request("a", gib))
		f.use["s"] = berth.SweepUse{State: state}
		require.NoError(t, p.Round(t.Context()))
		require.Equal(t, places, len(f.placed) == 1, "%s", state)
	}

	p, f := setup(t, request("a", gib))
	f.use["s"] = berth.SweepUse{State: berth.SweepRunning, MaxParallel: 2, Running: 2}
	require.NoError(t, p.Round(t.Context()))
	require.Empty(t, f.placed)
	require.Equal(t, "the sweep's max_parallel is reached", f.reasons[0]["a"][0].Reason)
}

func TestRound_CommitsInBatchesAndSurvivesAChangedLedger(t *testing.T) {
	t.Parallel()

	p, f := setup(t)
	f.hosts[0].CPUMilli, f.hosts[0].MemoryBytes, f.hosts[0].MemoryFreeBytes = 1e9, 1<<50, 1<<50

	for i := range 2*batch + 1 {
		f.waiting = append(f.waiting, request(fmt.Sprint(i), gib))
	}

	f.errs["place"] = berth.Errorf(berth.KindExhausted, "the database refused to book more than there is")
	require.NoError(t, p.Round(t.Context()), "the next round decides anew")
	require.Empty(t, f.aside, "without a pause")

	f.errs["place"], f.placed = nil, nil
	require.NoError(t, p.Round(t.Context()))

	sizes := make([]int, 0, 3)
	for _, placed := range f.placed {
		sizes = append(sizes, len(placed))
	}

	require.Equal(t, []int{batch, batch, 1}, sizes)

	f.errs["place"] = berth.Errorf(berth.KindUnavailable, "the database is away")
	require.ErrorIs(t, p.Round(t.Context()), f.errs["place"])
}

// all is every attempt that was placed.
func (f *queue) all() map[string]bool {
	ids := map[string]bool{}

	for _, placed := range f.placed {
		for id := range placed {
			ids[id] = true
		}
	}

	return ids
}

func TestRound_SetsARefusedRequestAside(t *testing.T) {
	t.Parallel()

	conflict := berth.Errorf(berth.KindConflict, "the ledger refuses it")

	p, f := setup(t, request("huge", 1<<50), request("fits", gib))
	f.hosts[0].CPUMilli, f.hosts[0].MemoryBytes, f.hosts[0].MemoryFreeBytes = 1e9, 1<<49, 1<<49
	f.bad["3"], f.bad["huge"], f.bad["late"] = conflict, conflict, conflict

	late := request("late", gib) // only why it waits cannot be stored
	late.Blocked = "an attempt is open"
	f.waiting = append(f.waiting, late)

	for i := range batch {
		f.waiting = append(f.waiting, request(fmt.Sprint(i), gib))
	}

	blocked := request("blocked", gib)
	blocked.Blocked = "attempt 1 of the trial is still open on host a"
	f.waiting = append(f.waiting, blocked)

	require.NoError(t, p.Round(t.Context()))

	require.Len(t, f.all(), batch, "all but one of the numbered ones, and one more")
	require.NotContains(t, f.all(), "3")
	require.Equal(t, map[string]string{"3": conflict.Error(), "huge": conflict.Error()}, f.aside)
	require.Equal(t, []map[string][]berth.Rejection{
		{"blocked": {{Dimension: berth.DimensionTrial, Reason: blocked.Blocked}}},
	}, f.reasons)
}

// A step that fails must not keep the others from being done.
func TestRound_EveryStepIsDone(t *testing.T) {
	t.Parallel()

	for _, what := range []string{"suspects", "refuse", "place", "reasons"} {
		p, f := setup(t, request("huge", 9*gib), request("fits", gib), request("waits", 8*gib))
		f.hosts[0].MemoryReservedBytes = gib
		f.errs[what] = berth.Errorf(berth.KindInternal, "%s failed", what)

		require.ErrorIs(t, p.Round(t.Context()), f.errs[what])
		require.Equal(t, map[string]bool{"fits": true}, f.all(), what)
		require.Contains(t, f.refused, "huge", what)
		require.Len(t, f.reasons, 1, what)
	}
}

func TestRound_KeepsTheSameHostFree(t *testing.T) {
	t.Parallel()

	large := request("large", 7*gib)
	large.Waited = time.Hour

	p, f := setup(t, large)
	second := f.hosts[0]
	second.ID = "second"
	f.hosts = append(f.hosts, second)
	f.hosts[0].MemoryReservedBytes, f.hosts[1].MemoryReservedBytes = 4*gib, 3*gib

	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, map[string]packing.Place{"large": {HostID: "second"}}, p.kept)

	f.hosts[0].MemoryReservedBytes = 2 * gib // nearer now
	require.NoError(t, p.Round(t.Context()))
	require.Equal(t, map[string]packing.Place{"large": {HostID: "second"}}, p.kept)

	f.hosts[1].MemoryReservedBytes = 0
	require.NoError(t, p.Round(t.Context()))
	require.Empty(t, p.kept)
	require.Equal(t, []map[string]berth.Placement{{"large": placedAt("second", 7*gib)}}, f.placed)
}

func TestRun_LeadsAndOutlivesAFailedRound(t *testing.T) {
	t.Parallel()

	p, f := setup(t, request("a", gib))
	f.rounds = 2
	f.errs["place"] = berth.Errorf(berth.KindUnavailable, "the database is away")

	require.NoError(t, p.Run(t.Context()))
	require.Equal(t, []string{"placer"}, f.suspects)
	require.Len(t, f.placed, 2)
}
