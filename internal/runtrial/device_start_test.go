package runtrial

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/fake"
	"github.com/berthml/berth/internal/gpu"
	"github.com/berthml/berth/internal/memory"
)

// scene is what an attempt's GPU shows until so long after the start.
type scene struct {
	until   time.Duration
	reading DeviceReading
	err     error
}

// plays shows one scene after the other.
func plays(start time.Time, scenes ...scene) ReadDevice {
	return func(context.Context, berth.Container, string) (DeviceReading, error) {
		for _, s := range scenes {
			if time.Since(start) < s.until {
				return s.reading, s.err
			}
		}

		last := scenes[len(scenes)-1]

		return last.reading, last.err
	}
}

var errUnnamed = errors.New("the driver does not say what each process holds")

// The driver lists the process, and the trial ends before it says what that holds: nothing
// says that the trial did not use its GPU.
func TestRun_UsedItsGPUUnnamed(t *testing.T) {
	t.Parallel()

	for _, device := range []berth.DeviceWanted{berth.DeviceGPU, berth.DeviceAuto} {
		synctest.Test(t, func(t *testing.T) {
			r, _ := metered(t)
			r.wants(device)
			r.onGPU(t, plays(time.Now(),
				scene{6 * time.Second, DeviceReading{FreeBytes: 8 << 30}, nil}, // it imports its framework
				scene{time.Hour, DeviceReading{FreeBytes: 7 << 30, Unnamed: true}, errUnnamed},
			))

			ended := r.start(t.Context(), r.order())
			box := r.docks.started(t)
			time.Sleep(7500 * time.Millisecond)
			box.Print(berth.Stdout, "acc=0.5\n")
			box.Exit(0)

			got := <-ended
			require.NoError(t, got.err)

			f, _ := memory.Observe(&berth.Footprint{}, "key", berth.FootprintFull, berth.FailureOK, got.outcome.Usage, berth.Demand{MemoryBytes: 1, DeviceBytes: 2 << 30})
			require.Equal(t, berth.FailureOK, got.outcome.Kind, got.outcome.Message)
			require.False(t, memory.NeedsNoGPU(&f))
		})
	}
}

type fakeCard struct {
	gpu.Driver

	now func() []gpu.Process
}

func (c fakeCard) Read(context.Context, string) (gpu.Reading, error) {
	return gpu.Reading{TotalBytes: 80 << 30, FreeBytes: 8 << 30, ProcessesKnown: true, Processes: c.now()}, nil
}

// Processes of one container that start and end beside each other: a start is made good
// when each of them was named.
func TestRun_SeveralProcessesOnItsGPU(t *testing.T) {
	t.Parallel()

	id := strings.Repeat("a", 64)
	cgroup := &fstest.MapFile{Data: []byte("0::/system.slice/docker-" + id + ".scope\n")}

	type act struct {
		until     time.Duration
		processes []gpu.Process
	}

	one := func(bytes int64) gpu.Process { return gpu.Process{PID: 1, Bytes: bytes << 20} }
	two := func(bytes int64) gpu.Process { return gpu.Process{PID: 2, Bytes: bytes << 20} }

	for name, tt := range map[string]struct {
		acts   []act
		peak   int64 // that the driver named, at least; MiB
		unseen bool  // something was never named
	}{
		"the first is named, and ends while the second has no amount": {[]act{
			{2 * time.Second, nil},
			{4 * time.Second, []gpu.Process{one(0), two(0)}},
			{7 * time.Second, []gpu.Process{one(900), two(0)}},
			{9 * time.Second, []gpu.Process{two(0)}},
			{20 * time.Second, []gpu.Process{two(300)}},
		}, 900, true},
		"the first is never named, and the second follows at once": {[]act{
			{2 * time.Second, nil},
			{7 * time.Second, []gpu.Process{one(0)}},
			{9 * time.Second, []gpu.Process{two(0)}},
			{20 * time.Second, []gpu.Process{two(300)}},
		}, 300, true},
		"one per fold, all named in the end": {[]act{
			{2 * time.Second, nil},
			{5 * time.Second, []gpu.Process{one(0)}},
			{10 * time.Second, []gpu.Process{one(300)}},
			{13 * time.Second, []gpu.Process{one(300), two(0)}},
			{20 * time.Second, []gpu.Process{one(300), two(300)}},
		}, 600, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				m := gpu.NewMeter(fakeCard{now: func() []gpu.Process {
					for _, a := range tt.acts {
						if time.Since(began) < a.until {
							return a.processes
						}
					}

					return nil
				}}, fstest.MapFS{"1/cgroup": cgroup, "2/cgroup": cgroup})

				r, _ := metered(t)
				r.onGPU(t, func(ctx context.Context, _ berth.Container, _ string) (DeviceReading, error) { // as gpus.read of cmd/berth
					use, err := m.Container(ctx, id, testGPU)

					return DeviceReading{At: use.At, UsedBytes: use.Bytes, FreeBytes: use.FreeBytes, PIDs: use.PIDs, Unnamed: errors.Is(err, gpu.ErrUnsupported)}, err
				})

				ended := r.start(t.Context(), r.order())
				box := r.docks.started(t)
				time.Sleep(19900 * time.Millisecond)
				box.Print(berth.Stdout, "acc=0.5\n")
				box.Exit(0)

				got := <-ended
				require.NoError(t, got.err)

				u := got.outcome.Usage
				require.Equal(t, tt.peak, u.DevicePeakBytes>>20, "what the driver named, at least")
				require.Equal(t, !tt.unseen, u.DeviceMeasured())
			})
		})
	}
}

// The GPU fills up while the process of the attempt starts.
func TestRun_GPUFillsWhileItStarts(t *testing.T) {
	t.Parallel()

	for name, says := range map[string]string{
		"context, by MPS":  "INTERNAL: cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
		"first allocation": "OOM when allocating tensor with shape[256] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
		"library":          "failed to create cublas handle: the resource allocation failed",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, _ := metered(t)
				r.onGPU(t, plays(time.Now(),
					scene{6 * time.Second, DeviceReading{FreeBytes: 8 << 30}, nil},
					scene{time.Hour, DeviceReading{FreeBytes: 60 << 20, Unnamed: true}, errUnnamed},
				))

				if strings.HasSuffix(name, "by MPS") {
					r.books.Hook(func(h *fake.LedgerHooks) {
						before := h.Assignee
						h.Assignee = func(ctx context.Context, id string, call func(context.Context) (berth.Assignee, error)) (berth.Assignee, error) {
							who, err := before(ctx, id, call)
							who.Attempt.Class = "NVIDIA H200 (MPS)"

							return who, err
						}
					})
					r.config.MPSPipe = func(id string) (string, error) { return "/run/mps/" + id, nil }
				}

				ended := r.start(t.Context(), r.order())
				box := r.docks.started(t)
				time.Sleep(11 * time.Second)
				box.Print(berth.Stderr, says+"\n")
				box.Exit(1)

				got := <-ended
				require.NoError(t, got.err)
				require.Equal(t, berth.FailureDeviceBusy, got.outcome.Kind, got.outcome.Message)
			})
		})
	}
}

// The framework's own word is more than any reading showed.
func TestRun_FrameworkSaysMoreThanAnyReading(t *testing.T) {
	t.Parallel()

	for name, named := range map[string]int64{"grew in its last second": 300 << 20, "came and went between two readings": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, _ := metered(t)
				r.wants(berth.DeviceGPU)
				r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = berth.MetricsFile })
				r.onGPU(t, plays(time.Now(), scene{4 * time.Second, DeviceReading{FreeBytes: 8 << 30}, nil}, scene{time.Hour, DeviceReading{UsedBytes: named, FreeBytes: 8 << 30}, nil}))

				ended := r.start(t.Context(), r.order())
				box := r.docks.started(t)
				appendTo(t, filepath.Join(r.newRun(t).dirs.shim, shimRecords), epochs+`{"type":"memory","device_peak_bytes":1572864000,"frameworks":{"tensorflow":1572864000}}`+"\n")
				time.Sleep(6 * time.Second)
				box.Exit(0)

				got := <-ended
				require.NoError(t, got.err)

				u := got.outcome.Usage
				f, _ := memory.Observe(&berth.Footprint{}, "key", berth.FootprintFull, got.outcome.Kind, u, berth.Demand{MemoryBytes: 1, DeviceBytes: 2 << 30})
				require.Equal(t, berth.FailureOK, got.outcome.Kind, got.outcome.Message)
				require.False(t, memory.Known(&f) && memory.ReserveDevice(f) < u.FrameworkPeakBytes)
			})
		})
	}
}
