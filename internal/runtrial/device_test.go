package runtrial

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/fake"
	"github.com/berthml/berth/internal/memory"
)

const testGPU = "GPU-1"

// onGPU gives the rig's attempt a GPU, of which it reserves 2 GiB.
func (r *rig) onGPU(t *testing.T, read ReadDevice) {
	t.Helper()

	r.config.Device = read
	r.books.Hook(func(h *fake.LedgerHooks) {
		before := h.Assignee
		h.Assignee = func(ctx context.Context, id string, call func(context.Context) (berth.Assignee, error)) (berth.Assignee, error) {
			who, err := before(ctx, id, call)
			who.Attempt.DeviceID, who.Attempt.Class, who.Attempt.Demand.DeviceBytes = testGPU, "NVIDIA H200", 2<<30

			return who, err
		}
	})
}

// wants says what the attempt's sweep wants to run on.
func (r *rig) wants(device berth.DeviceWanted) {
	r.books.Hook(func(h *fake.LedgerHooks) {
		before := h.Assignee
		h.Assignee = func(ctx context.Context, id string, call func(context.Context) (berth.Assignee, error)) (berth.Assignee, error) {
			who, err := before(ctx, id, call)
			who.Spec.Resources.Device = device

			return who, err
		}
	})
}

// measures says that nobody measured the attempt's shape, and that it shares its GPU so.
func (r *rig) measures(class berth.DeviceClass, own berth.Size) {
	r.config.MPSPipe = func(string) (string, error) { return "/run/mps", nil }
	r.books.Hook(func(h *fake.LedgerHooks) {
		before := h.Assignee
		h.Assignee = func(ctx context.Context, id string, call func(context.Context) (berth.Assignee, error)) (berth.Assignee, error) {
			who, err := before(ctx, id, call)
			who.Measures, who.Attempt.Class, who.Spec.Resources.GPUMemory = true, class, own

			return who, err
		}
	})
}

// What an attempt holds that measures its shape is told once it trains, and again
// when it holds more than its lease.
func TestRun_TellsWhatItHolds(t *testing.T) {
	t.Parallel()

	r := setup(t)

	var held, readings atomic.Int64

	held.Store(700 << 20)
	r.onGPU(t, func(context.Context, berth.Container, string) (DeviceReading, error) {
		readings.Add(1)

		return DeviceReading{UsedBytes: held.Load(), FreeBytes: 8 << 30}, nil
	})
	r.measures("NVIDIA H200 (MPS)", 0)

	ended := r.start(t.Context(), r.order())
	box := r.docks.started(t)
	told := func() []int64 { return r.books.Held(r.order().AttemptID) }

	require.Eventually(t, func() bool { return readings.Load() > 3 }, patience, tick)
	require.Empty(t, told(), "it does not train yet")

	appendTo(t, filepath.Join(r.newRun(t).dirs.shim, shimRecords), `{"type":"steps","count":9,"seconds":1.1}`+"\n")
	require.Eventually(t, func() bool { return len(told()) == 1 }, patience, tick)

	held.Store(600 << 20) // less is nothing new
	require.Eventually(t, func() bool { return readings.Load() > 8 }, patience, tick)
	held.Store(900 << 20)
	require.Eventually(t, func() bool { return len(told()) == 2 }, patience, tick)

	box.Exit(0)
	<-ended
	require.Equal(t, []int64{700 << 20, 900 << 20}, told())
}

// What the user wrote stands, and by time slices nothing would bound siblings of such a size.
func TestRun_TellsNothingOfWhatStands(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		class berth.DeviceClass
		own   berth.Size
	}{"the user's word": {"NVIDIA H200 (MPS)", 2 << 30}, "time slices": {"NVIDIA H200", 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setup(t)
				r.onGPU(t, func(context.Context, berth.Container, string) (DeviceReading, error) {
					return DeviceReading{UsedBytes: 700 << 20, FreeBytes: 8 << 30}, nil
				})
				r.measures(tt.class, tt.own)

				ended := r.start(t.Context(), r.order())
				box := r.docks.started(t)
				box.Print(berth.Stdout, "acc=0.5\n")
				time.Sleep(time.Minute) // of a clock that stands still
				box.Exit(0)
				<-ended
				require.Empty(t, r.books.Held(r.order().AttemptID))
			})
		})
	}
}

// What the container holds of its GPU at the most is its peak, and reaches the
// ledger; the container was given that GPU.
func TestRun_MeasuresItsGPU(t *testing.T) {
	t.Parallel()

	r := setup(t)
	uses := []int64{0, 100, 910, 600}
	all := make(chan struct{})

	var n atomic.Int32

	r.onGPU(t, func(_ context.Context, c berth.Container, id string) (DeviceReading, error) {
		require.Equal(t, testGPU, id)
		require.NotEmpty(t, c.ID)

		i := int(n.Add(1)) - 1
		if i == len(uses) {
			close(all)
		}

		return DeviceReading{UsedBytes: uses[min(i, len(uses)-1)] << 20, FreeBytes: 8 << 30}, nil
	})

	ended := r.start(t.Context(), r.order())
	box := r.docks.started(t)
	require.Equal(t, testGPU, box.Launch.DeviceID)
	require.Equal(t, "2048", box.Launch.Environment["TRIAL_DEVICE_MEMORY_MIB"])
	<-all
	box.Print(berth.Stdout, "acc=0.5\n")
	box.Exit(0)

	got := await(t, ended)
	require.NoError(t, got.err)
	require.Equal(t, berth.FailureOK, got.outcome.Kind, got.outcome.Message)
	require.Equal(t, int64(910<<20), got.outcome.Usage.DevicePeakBytes)
	require.GreaterOrEqual(t, got.outcome.Usage.DeviceSamples, len(uses))

	peak := int64(0)
	for _, p := range r.books.memory(t) {
		if p.DeviceBytes != nil {
			peak = max(peak, *p.DeviceBytes)
		}
	}

	require.Equal(t, int64(910<<20), peak, "what it held over time has the peak, too")
}

// What runs on a GPU that is lost cannot go on: it is stopped and runs elsewhere, free.
func TestRun_StopsOnALostGPU(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.onGPU(t, func(context.Context, berth.Container, string) (DeviceReading, error) {
		return DeviceReading{Problem: "XID 79: it fell off the bus", Lost: true}, berth.Errorf(berth.KindUnavailable, "the GPU is lost")
	})

	got := await(t, r.start(t.Context(), r.order()))
	require.NoError(t, got.err)
	require.Equal(t, berth.FailureInfra, got.outcome.Kind)
	require.Contains(t, got.outcome.Message, "XID 79: it fell off the bus")
}

// A GPU that reports a fault of its own stops nothing: what fails there is its fault,
// what ends well has its result.
func TestRun_OnASickGPU(t *testing.T) {
	t.Parallel()

	for code, want := range map[int]berth.FailureKind{0: berth.FailureOK, 1: berth.FailureInfra} {
		r := setup(t)
		read := make(chan struct{}, 1)
		r.onGPU(t, func(context.Context, berth.Container, string) (DeviceReading, error) {
			select {
			case read <- struct{}{}:
			default:
			}

			return DeviceReading{UsedBytes: 1 << 20, FreeBytes: 8 << 30, Problem: "XID 63: it retires a part of its memory"}, nil
		})

		ended := r.start(t.Context(), r.order())
		box := r.docks.started(t)

		<-read
		<-read // the first was taken in
		box.Print(berth.Stdout, "acc=0.5\n")
		box.Exit(code)

		got := await(t, ended)
		require.NoError(t, got.err)
		require.Equal(t, want, got.outcome.Kind, got.outcome.Message)
	}
}

// A program that its GPU takes down ends at once, mostly before the GPU is read again:
// what is known of the GPU then counts, too.
func TestRun_TheLastWordOfAGPU(t *testing.T) {
	t.Parallel()

	r := setup(t)
	read := make(chan struct{}, 1)

	var sick atomic.Bool

	r.onGPU(t, func(context.Context, berth.Container, string) (DeviceReading, error) {
		reading := DeviceReading{UsedBytes: 1 << 20, FreeBytes: 8 << 30}
		if sick.Load() {
			reading.Problem = "XID 48: the GPU's memory lost data"
		}

		select {
		case read <- struct{}{}:
		default:
		}

		return reading, nil
	})

	r.config.SampleEvery = time.Hour
	ended := r.start(t.Context(), r.order())
	box := r.docks.started(t)

	<-read
	sick.Store(true)
	box.Exit(1)

	got := await(t, ended)
	require.NoError(t, got.err)
	require.Equal(t, berth.FailureInfra, got.outcome.Kind, got.outcome.Message)
	require.Contains(t, got.outcome.Message, "lost data")
}

// A program that was given a GPU and never touched it trained on the CPU: that is
// fine where its sweep takes either, and no result where it wants a GPU.
func TestRun_NeverTouchesItsGPU(t *testing.T) {
	t.Parallel()

	for device, want := range map[berth.DeviceWanted]struct {
		kind berth.FailureKind
		says string
	}{
		berth.DeviceAuto: {berth.FailureOK, "trials like it run on cores"},
		berth.DeviceGPU:  {berth.FailureNoDevice, "it said: W0000 dso_loader.cc:64] Could not load dynamic library 'libcusolver.so.11'"},
	} {
		t.Run(string(device), func(t *testing.T) {
			t.Parallel()
			neverTouches(t, device, want.kind, want.says)
		})
	}
}

func neverTouches(t *testing.T, device berth.DeviceWanted, kind berth.FailureKind, says string) {
	t.Helper()

	r := setup(t)
	r.wants(device)
	seen := make(chan struct{})
	began := time.Now()

	var once sync.Once

	r.onGPU(t, func(context.Context, berth.Container, string) (DeviceReading, error) {
		// A run is judged when no gap between two readings is half of it: on a busy
		// machine gaps are some tenths of a second.
		if time.Since(began) > 2*time.Second {
			once.Do(func() { close(seen) })
		}

		return DeviceReading{FreeBytes: 8 << 30}, nil
	})

	ended := r.start(t.Context(), r.order())
	box := r.docks.started(t)
	<-seen
	box.Print(berth.Stderr, "W0000 dso_loader.cc:64] Could not load dynamic library 'libcusolver.so.11'\n")
	box.Print(berth.Stderr, strings.Repeat("goes on\n", tailLines)) // so that the end of the log has nothing of it
	box.Print(berth.Stdout, "acc=0.5\n")
	box.Exit(0)

	got := await(t, ended)
	require.NoError(t, got.err)
	require.Equal(t, kind, got.outcome.Kind)
	require.Contains(t, got.outcome.Message, says)
}

// A driver that does not answer is no reason to judge a run.
func TestRun_GPUThatCannotBeRead(t *testing.T) {
	t.Parallel()

	r := setup(t)
	asked := make(chan struct{})

	var n atomic.Int32

	r.onGPU(t, func(context.Context, berth.Container, string) (DeviceReading, error) {
		if n.Add(1) == 2 {
			close(asked)
		}

		return DeviceReading{}, errors.New("the driver does not answer")
	})

	ended := r.start(t.Context(), r.order())
	box := r.docks.started(t)
	<-asked
	box.Print(berth.Stdout, "acc=0.5\n")
	box.Exit(0)

	got := await(t, ended)
	require.NoError(t, got.err)
	require.Equal(t, berth.FailureOK, got.outcome.Kind, got.outcome.Message)
	require.Zero(t, got.outcome.Usage.DeviceSamples)
}

// TensorFlow's out-of-memory on a GPU, in the words of 2.21 (one H200, 2026-11-21).
func TestRun_OutOfGPUMemory(t *testing.T) {
	t.Parallel()

	r := setup(t)
	read := make(chan struct{})

	var n atomic.Int32

	r.onGPU(t, func(context.Context, berth.Container, string) (DeviceReading, error) {
		if n.Add(1) == 2 {
			close(read)
		}

		return DeviceReading{UsedBytes: 2000 << 20, FreeBytes: 60 << 20}, nil
	})

	ended := r.start(t.Context(), r.order())
	box := r.docks.started(t)
	<-read
	box.Print(berth.Stdout, "Traceback (most recent call last):\n")
	box.Print(berth.Stdout, "tensorflow.python.framework.errors_impl.ResourceExhaustedError: {{function_node x}} OOM when allocating tensor with shape[256,1024,256] "+
		"and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Fill]\n")
	box.Exit(1)

	got := await(t, ended)
	require.NoError(t, got.err)
	require.Equal(t, berth.FailureDeviceOOM, got.outcome.Kind, got.outcome.Message)
	require.Contains(t, got.outcome.Message, "2,048 MiB reserved")
	require.Equal(t, int64(2000<<20), got.outcome.Usage.DevicePeakBytes)
}

// A run that ended while no worker looked at its GPU may have used it: its result
// stands, and it teaches nothing of the GPU.
func TestRun_EndedWhileNobodyLookedAtItsGPU(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.wants(berth.DeviceGPU)
	r.onGPU(t, func(context.Context, berth.Container, string) (DeviceReading, error) {
		return DeviceReading{FreeBytes: 8 << 30}, nil
	})

	order := r.order()
	order.Known = berth.Usage{Samples: 5, DeviceSamples: 5, DeviceSeenUntil: time.Now().Add(-time.Minute)} // of the worker before
	ended := r.start(t.Context(), order)
	box := r.docks.started(t)
	box.Print(berth.Stdout, "acc=0.5\n")
	box.Exit(0)

	got := await(t, ended)
	require.NoError(t, got.err)
	require.Equal(t, berth.FailureOK, got.outcome.Kind, got.outcome.Message)
	require.InDelta(t, 0.5, *got.outcome.Value, 0)
	require.Positive(t, got.outcome.Usage.DeviceUnseen)

	known := berth.Footprint{}
	f, ok := memory.Observe(&known, "key", berth.FootprintFull, got.outcome.Kind, got.outcome.Usage, berth.Demand{MemoryBytes: 1, DeviceBytes: 2 << 30})
	require.True(t, ok)
	require.False(t, memory.NeedsNoGPU(&f))
}

// A container that shares its GPU by MPS has the daemon's directory, and may take
// what is reserved of the GPU's memory; one alone there has all of it.
func TestRun_SharesItsGPUByMPS(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		class berth.DeviceClass
		alone bool
		pipe  func(string) (string, error)
		limit string
		mount bool
	}{
		"by MPS":         {class: "NVIDIA H200 (MPS)", limit: "0=2048M", mount: true},
		"alone there":    {class: "NVIDIA H200 (MPS)", alone: true, mount: true},
		"by time slices": {class: "NVIDIA H200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			r.onGPU(t, func(context.Context, berth.Container, string) (DeviceReading, error) {
				return DeviceReading{UsedBytes: 1 << 30, FreeBytes: 8 << 30}, nil
			})
			r.books.Hook(func(h *fake.LedgerHooks) {
				before := h.Assignee
				h.Assignee = func(ctx context.Context, id string, call func(context.Context) (berth.Assignee, error)) (berth.Assignee, error) {
					who, err := before(ctx, id, call)
					who.Attempt.Class, who.Attempt.Demand.ExclusiveDevice = tt.class, tt.alone

					return who, err
				}
			})
			r.config.MPSPipe = func(id string) (string, error) { return "/run/mps/" + id, nil }

			ended := r.start(t.Context(), r.order())
			box := r.docks.started(t)
			l := box.Launch

			require.Equal(t, tt.mount, slices.Contains(l.Mounts, berth.Mount{Source: "/run/mps/" + testGPU, Target: "/trial/mps"}))
			require.Equal(t, tt.limit, l.Environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"])
			require.Equal(t, tt.mount, l.Environment["CUDA_MPS_PIPE_DIRECTORY"] == "/trial/mps")
			require.Equal(t, int64(1000), l.CPUCapMilli, "it may use the cores that its threads may, whatever is booked")

			box.Print(berth.Stdout, "acc=0.5\n")
			box.Exit(0)
			require.Equal(t, berth.FailureOK, await(t, ended).outcome.Kind)
		})
	}
}

// A host without the daemon cannot start the attempt, which is no fault of it:
// another host may.
func TestRun_WithoutAnMPSDaemon(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.onGPU(t, nil)
	r.books.Hook(func(h *fake.LedgerHooks) {
		before := h.Assignee
		h.Assignee = func(ctx context.Context, id string, call func(context.Context) (berth.Assignee, error)) (berth.Assignee, error) {
			who, err := before(ctx, id, call)
			who.Attempt.Class = "NVIDIA H200 (MPS)"

			return who, err
		}
	})

	var asked atomic.Int64

	r.config.MPSPipe = func(string) (string, error) {
		if asked.Add(1) < 3 { // its worker starts it again
			return "", berth.Errorf(berth.KindUnavailable, "its MPS daemon does not run")
		}

		return "/run/mps/again", nil
	}

	ended := r.start(t.Context(), r.order())
	box := r.docks.started(t)
	require.Equal(t, int64(3), asked.Load())
	box.Print(berth.Stdout, "acc=0.5\n")
	box.Exit(0)
	require.Equal(t, berth.FailureOK, await(t, ended).outcome.Kind)
}

// What is wrong with readings for a moment, as a process starts or ends, is not
// said; what lasts is, once.
func TestDoubts(t *testing.T) {
	t.Parallel()

	start := time.Now()
	d := doubts{patience: 5 * time.Second}

	for _, tt := range []struct {
		after time.Duration
		why   string
		said  bool
	}{
		{0, "no reading", false},
		{4 * time.Second, "no reading", false},
		{5 * time.Second, "", false},
		{6 * time.Second, "no reading", false},
		{9 * time.Second, "not shared", false},
		{13 * time.Second, "not shared", false},
		{14 * time.Second, "not shared", true},
		{30 * time.Second, "not shared", false},
	} {
		require.Equal(t, tt.said, d.last(tt.why, start.Add(tt.after)), "%v", tt.after)
	}
}

// The driver lists a process that starts without what it holds. That is no gap once it
// says how much the process holds. It is a gap when it never says so, when the process
// ends first, and while nobody looks.
func TestDeviceWatch_ProcessThatStarts(t *testing.T) {
	t.Parallel()

	start := time.Unix(0, 0)
	at := func(second float64) time.Time { return start.Add(time.Duration(second * float64(time.Second))) }

	// unseen is the gap in an attempt of 20 s. The driver names an amount from second 10 on, or
	// never. Nobody looks in the seconds away. At ended its process has ended, and another starts.
	unseen := func(named bool, awayFrom, awayUntil, ended float64) time.Duration {
		w := newDeviceWatch(coverage{startedAt: start, every: 200 * time.Millisecond}, berth.Usage{})

		for i := range 100 {
			switch second := float64(i) / 5; {
			case second > awayFrom && second < awayUntil:
			case second < 1 || second == ended:
				w.add(DeviceReading{}, at(second)) // it has no process there
			case second < 10 || !named:
				w.unnamed(DeviceReading{}, at(second))
			default:
				w.add(DeviceReading{UsedBytes: 900}, at(second))
			}
		}

		u := berth.Usage{Wall: berth.Duration(20 * time.Second)}
		w.into(&u, berth.Usage{})
		w.end(&u, at(20))

		return time.Duration(u.DeviceUnseen)
	}

	require.Zero(t, unseen(true, 0, 0, 0))
	require.InDelta(t, 19, unseen(false, 0, 0, 0).Seconds(), 1, "never named")
	require.InDelta(t, 4, unseen(true, 4, 8, 0).Seconds(), 0.5, "away while it starts")
	require.InDelta(t, 4, unseen(true, 12, 16, 0).Seconds(), 0.5, "away afterwards")
	require.InDelta(t, 5, unseen(true, 0, 0, 6).Seconds(), 0.5, "the first process was never named")
}
