package runtrial

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

// knob is a meter that tests turn.
type knob struct{ bytes atomic.Int64 }

func (d *knob) Read() (berth.MemorySample, error) {
	return berth.MemorySample{WorkingSetBytes: d.bytes.Load(), CPU: time.Second}, nil
}

// holds gives the attempt 300 MiB of its host's memory, until the test turns its meter.
func (r *rig) holds() *knob {
	d := &knob{}
	d.bytes.Store(300 << 20)
	r.meter = func(berth.Container) (Meter, error) { return d, nil }
	r.config.SampleEvery = 200 * time.Millisecond

	return d
}

// answersMemory has the ledger answer PutMemory with an error; nil = it stores.
func (b *books) answersMemory(answer func() error) {
	b.Hook(func(h *fake.LedgerHooks) {
		h.PutMemory = func(ctx context.Context, _ string, call func(context.Context) error) error {
			if err := answer(); err != nil {
				return err
			}

			return call(ctx)
		}
	})
}

func mostOf(points []berth.MemoryPoint) (host, device int64) {
	for _, p := range points {
		if p.HostBytes != nil {
			host = max(host, *p.HostBytes)
		}

		if p.DeviceBytes != nil {
			device = max(device, *p.DeviceBytes)
		}
	}

	return host, device
}

// While the database is away what waits stays small, and keeps its peaks; a late reading
// of a shared GPU finds its interval.
func TestTrace(t *testing.T) {
	t.Parallel()

	start := time.Now()
	tr := newTrace(start, keptTrace{})
	tr.opened = start

	for second := range 3 * berth.MaxMemoryPoints {
		at := start.Add(time.Duration(second) * time.Second)
		tr.addHost(int64(second%100), at)
		tr.addDevice(7, at.Add(-2*time.Second))
	}

	tr.addActivity(part{known: true, parts: parts{1.02}}, start.Add(time.Second))
	tr.addActivity(part{}, start.Add(9*time.Second))

	points := tr.rest()
	require.LessOrEqual(t, len(points), berth.MaxMemoryPoints)
	require.Len(t, points, 3*berth.MaxMemoryPoints/4)
	require.Equal(t, berth.MemoryPoint{HostBytes: new(int64(3)), DeviceBytes: new(int64(7)), SMMilli: new(int64(1000))}, points[0])
	require.Nil(t, points[2].SMMilli)
	require.Equal(t, int64(99), *points[99/4].HostBytes)
}

// The largest trace fits into the size that traceName promises.
func TestTrace_FileIsSmall(t *testing.T) {
	t.Parallel()

	start := time.Now()
	tr := newTrace(start, keptTrace{})

	for n := range berth.MaxMemoryPoints {
		at := start.Add(time.Duration(n) * (1 << 16) * time.Second)
		tr.addHost(1<<40, at)
		tr.addDevice(1<<40, at)
		tr.addActivity(part{known: true, parts: parts{1}}, at)
	}

	require.Len(t, tr.rest(), berth.MaxMemoryPoints)

	kept, changed := tr.kept(imageID)
	require.True(t, changed)

	data, err := json.Marshal(kept)
	require.NoError(t, err)
	require.Less(t, len(data), 50_000)

	_, changed = tr.kept(imageID)
	require.False(t, changed, "it was written down")
}

// A wall clock that is set back changes nothing of what was held before: between two Runs,
// and between the container's start and the first Run.
func TestTrace_ClockStepsBack(t *testing.T) {
	t.Parallel()

	last := func(tr *trace) int { points := tr.rest(); return points[len(points)-1].Second }
	start := time.Now()
	tr := newTrace(start, keptTrace{})
	tr.opened = start
	tr.addHost(100, start.Add(459*time.Second))

	kept, _ := tr.kept("c")
	next := newTrace(start.Add(5*time.Minute), kept) // by the new clock the attempt is minutes younger
	next.addHost(900, next.opened.Add(10*time.Second))
	require.Equal(t, 469, last(next))

	early := newTrace(start.Add(5*time.Minute), keptTrace{})
	early.addHost(1, early.opened.Add(-time.Second))
	early.addHost(1, early.opened)
	require.Equal(t, 0, last(early))
}

// An attempt whose start is not known begins when Berth sees it; a clock that is far ahead
// gives no second that PostgreSQL cannot keep.
func TestTrace_NoStart(t *testing.T) {
	t.Parallel()

	tr := newTrace(time.Time{}, keptTrace{})
	tr.addHost(1, tr.opened.Add(3*time.Second))
	require.Equal(t, 3, tr.rest()[0].Second)

	ahead := newTrace(time.Now().AddDate(-200, 0, 0), keptTrace{})
	ahead.addHost(1, ahead.opened)
	require.LessOrEqual(t, ahead.rest()[0].Second, math.MaxInt32)
	require.Positive(t, ahead.rest()[0].Second)
}

// What the database did not take is told again with what came meanwhile. A figure that grew
// while it was stored is told again, too.
func TestPutMemory_AfterAnOutage(t *testing.T) {
	t.Parallel()

	r := setup(t)
	run := r.newRun(t)
	start := time.Now()
	run.trace = newTrace(start, keptTrace{})
	run.trace.opened = start

	var during func() error

	r.books.answersMemory(func() error { return during() })

	during = func() error { return berth.Errorf(berth.KindUnavailable, "the database restarts") }

	run.trace.addHost(7, start)
	run.trace.addHost(1, start.Add(time.Second))
	require.NoError(t, run.putMemory(t.Context()))
	require.Empty(t, r.books.memory(t))

	run.trace.addHost(5, start)
	run.trace.addHost(6, start.Add(time.Second))
	run.trace.addHost(1, start.Add(2*time.Second))

	during = func() error {
		run.trace.addHost(8, start.Add(time.Second))

		return nil
	}
	require.NoError(t, run.putMemory(t.Context()))

	stored := r.books.memory(t)
	require.Len(t, stored, 2, "the newest second goes on")
	require.Equal(t, int64(7), *stored[0].HostBytes)
	require.Equal(t, int64(6), *stored[1].HostBytes)

	rest := run.trace.rest()
	require.Len(t, rest, 2, "the others are told once")
	require.Equal(t, int64(8), *rest[0].HostBytes)
	require.Equal(t, 2, rest[1].Second)
}

// What the database can never store is dropped, as metrics are.
func TestPutMemory_DropsWhatIsRefused(t *testing.T) {
	t.Parallel()

	r := setup(t)
	run := r.newRun(t)
	run.trace = newTrace(time.Now(), keptTrace{})
	run.trace.addHost(7, run.trace.opened)
	run.trace.addHost(7, run.trace.opened.Add(time.Second))
	r.books.answersMemory(func() error { return berth.Errorf(berth.KindInvalid, "a figure that no column holds") })

	require.NoError(t, run.putMemory(t.Context()))
	require.Len(t, run.trace.rest(), 1, "the newest second, which was not told")
}

// A database that is away loses nothing, though the worker restarts meanwhile: the curve has
// the attempt's peak, from either worker.
func TestMemory_ARestartInAnOutageLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		d := r.holds()

		var away atomic.Bool

		r.books.answersMemory(func() error {
			if away.Load() {
				return berth.Errorf(berth.KindUnavailable, "the database restarts")
			}

			return nil
		})

		ctx, shutdown := context.WithCancelCause(t.Context())
		ended := r.start(ctx, r.order())
		box := r.docks.started(t)

		time.Sleep(15 * time.Second)
		away.Store(true)
		d.bytes.Store(900 << 20)
		time.Sleep(3 * time.Second)
		d.bytes.Store(300 << 20)
		time.Sleep(597 * time.Second)

		kept := r.newRun(t).dirs.trace(box.Container().ID)
		require.Less(t, 610-kept.Newest, 6, "seconds that a worker loses that is killed here")

		shutdown(errors.New("the worker stops"))
		require.ErrorIs(t, (<-ended).err, ErrDetached)
		away.Store(false)

		ended = r.start(t.Context(), r.order())
		time.Sleep(15 * time.Second)
		got := ends(t, box, ended, "acc=0.5\n", 0)
		require.Zero(t, got.Usage.Unseen, "Berth measured all of it")
		require.NoFileExists(t, r.file(traceName), "it goes with the result")

		host, _ := mostOf(r.books.memory(t))
		require.Equal(t, int64(900), host>>20, "MiB")

		gap, last := 0, 0
		for _, p := range r.books.memory(t) {
			gap, last = max(gap, p.Second-last), p.Second
		}

		require.LessOrEqual(t, gap, 4, "seconds without a point")
	})
}

// What was written down of one container is nothing of another.
func TestMemory_OfAnotherContainer(t *testing.T) {
	t.Parallel()

	r := setup(t)
	d := r.newRun(t).dirs
	require.NoError(t, d.make(nil))

	kept := keptTrace{Container: "one", Newest: 9, Points: []berth.MemoryPoint{{Second: 9, HostBytes: new(int64(1))}}}
	require.NoError(t, d.keepTrace(kept))
	require.Equal(t, kept, d.trace("one"))
	require.Zero(t, d.trace("another"))
}

// The newest point that is stored knows the GPU's memory as it knows the host's.
func TestMemory_TheNewestPointIsWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.holds()
		r.onGPU(t, func(context.Context, berth.Container, string) (DeviceReading, error) {
			time.Sleep(10 * time.Millisecond) // NVML

			return DeviceReading{At: time.Now(), UsedBytes: 910 << 20, FreeBytes: 8 << 30}, nil
		})

		box, ended := r.begin(t)
		half := 0

		for range 10 {
			time.Sleep(10 * time.Second)

			if points := r.books.memory(t); len(points) > 0 && points[len(points)-1].DeviceBytes == nil {
				half++
			}
		}

		points := r.books.memory(t)
		require.GreaterOrEqual(t, points[len(points)-1].Second, 85, "nothing else is held back")

		box.Print(berth.Stdout, "acc=0.5\n")
		box.Exit(0)
		<-ended
		require.Zero(t, half, "of 10 writes, those whose newest point does not know the GPU's memory")
	})
}

// An attempt that is stopped while no worker watches: what was measured is stored.
func TestMemory_OfAnAttemptThatIsCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.holds()

		ctx, shutdown := context.WithCancelCause(t.Context())
		ended := r.start(ctx, r.order())
		r.docks.started(t)
		time.Sleep(8 * time.Second)
		shutdown(errors.New("the worker stops"))
		require.ErrorIs(t, (<-ended).err, ErrDetached)

		order := r.order()
		order.Stop = true
		got := came(t, r.start(t.Context(), order))
		require.Equal(t, berth.FailureCanceled, got.Kind)
		require.GreaterOrEqual(t, len(r.books.memory(t)), 8)
	})
}

// An attempt that is not ours any more is left at the first refusal (rule R4).
func TestMemory_FencedDetaches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.holds()

		var (
			fenced atomic.Bool
			asked  atomic.Int32
		)

		r.books.answersMemory(func() error {
			if !fenced.Load() {
				return nil
			}

			asked.Add(1)

			return berth.Errorf(berth.KindFenced, "not ours")
		})

		box, ended := r.begin(t)
		time.Sleep(15 * time.Second)
		fenced.Store(true)
		require.Equal(t, berth.KindFenced, berth.KindOf(await(t, ended).err))
		require.Equal(t, berth.ContainerRunning, box.Container().State, "the reconciler decides")
		require.Equal(t, int32(1), asked.Load())
	})
}
