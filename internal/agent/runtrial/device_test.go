package runtrial

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/sampling"
	"github.com/berthml/berth/internal/scheduler/memory"
)

const testGPU = "GPU-1"

// onGPU gives the rig's attempt a GPU, of which it reserves 2 GiB.
func (r *rig) onGPU(t *testing.T, read ReadDevice) {
	t.Helper()

	r.config.Device = read
	r.books.says(func(who *berth.Assignee) {
		who.Attempt.DeviceID, who.Attempt.Class, who.Attempt.Demand.DeviceBytes = testGPU, "NVIDIA H200", 2<<30
	})
}

// byMPS has the rig's attempt share its GPU by MPS, or be its only client.
func (r *rig) byMPS(alone bool) {
	r.config.MPSPipe = func(id string) (string, error) { return "/run/mps/" + id, nil }
	r.books.says(func(who *berth.Assignee) {
		who.Attempt.Class, who.Attempt.Demand.ExclusiveDevice = "NVIDIA H200 (MPS)", alone
	})
}

// wants says what the attempt's sweep wants to run on.
func (r *rig) wants(device berth.DeviceWanted) {
	r.books.says(func(who *berth.Assignee) { who.Spec.Resources.Device = device })
}

// What an attempt holds that measures its shape is told once it trains, and again when it
// holds more than its lease. What the user wrote stands, and by time slices nothing would
// bound siblings of such a size.
func TestRun_TellsWhatItHolds(t *testing.T) {
	t.Parallel()

	const mib = 1 << 20

	for name, tt := range map[string]struct {
		class berth.DeviceClass
		own   berth.Size
		want  []int64
	}{
		"a guess":         {"NVIDIA H200 (MPS)", 0, []int64{700 * mib, 900 * mib}},
		"the user's word": {"NVIDIA H200 (MPS)", 2 << 30, nil},
		"time slices":     {"NVIDIA H200", 0, nil},
	} {
		bubble(t, name, func(t *testing.T) {
			r, _ := metered(t)
			holds := func(until time.Duration, bytes int64) scene {
				return scene{until, sampling.DeviceReading{UsedBytes: bytes, FreeBytes: 8 << 30}, nil}
			}
			r.onGPU(t, plays(time.Now(), holds(20*time.Second, 700*mib), holds(30*time.Second, 600*mib), holds(time.Hour, 900*mib))) // less is nothing new
			r.config.MPSPipe = func(string) (string, error) { return "/run/mps", nil }
			r.books.says(func(who *berth.Assignee) {
				who.Measures, who.Attempt.Class, who.Spec.Resources.GPUMemory = true, tt.class, tt.own
			})

			box, ended := r.begin(t)
			time.Sleep(10 * time.Second)
			require.Empty(t, r.books.Held(attemptID), "it does not train yet")

			appendTo(t, filepath.Join(r.newRun(t).dirs.shim, shimRecords), `{"type":"steps","count":9,"seconds":1.1}`+"\n")
			time.Sleep(30 * time.Second)
			box.Exit(0)
			<-ended
			require.Equal(t, tt.want, r.books.Held(attemptID))
		})
	}
}

// What the container holds of its GPU at the most is its peak, and reaches the
// ledger; the container was given that GPU.
func TestRun_MeasuresItsGPU(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := metered(t)
		shown := plays(time.Now(), scene{2 * time.Second, sampling.DeviceReading{FreeBytes: 8 << 30}, nil}, scene{4 * time.Second, sampling.DeviceReading{UsedBytes: 910 << 20, FreeBytes: 8 << 30}, nil},
			scene{time.Hour, sampling.DeviceReading{UsedBytes: 600 << 20, FreeBytes: 8 << 30}, nil})
		r.onGPU(t, func(ctx context.Context, c berth.Container, id string) (sampling.DeviceReading, error) {
			require.Equal(t, testGPU, id)
			require.NotEmpty(t, c.ID)

			return shown(ctx, c, id)
		})

		box, ended := r.begin(t)
		require.Equal(t, testGPU, box.Launch.DeviceID)
		require.Equal(t, "2048", box.Launch.Environment["TRIAL_DEVICE_MEMORY_MIB"])
		time.Sleep(6 * time.Second)

		got := ends(t, box, ended, "acc=0.5\n", 0)
		require.Equal(t, berth.FailureOK, got.Kind, got.Message)
		require.Equal(t, int64(910<<20), got.Usage.DevicePeakBytes)
		require.GreaterOrEqual(t, got.Usage.DeviceSamples, 20)

		require.True(t, slices.ContainsFunc(r.books.memory(t), func(p berth.MemoryPoint) bool {
			return p.DeviceBytes != nil && *p.DeviceBytes == 910<<20
		}), "what it held over time has the peak, too")
	})
}

// A run that ended while no worker looked at its GPU may have used it: its result
// stands, and it teaches nothing of the GPU.
func TestRun_EndedWhileNobodyLookedAtItsGPU(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.wants(berth.DeviceGPU)
	r.onGPU(t, func(context.Context, berth.Container, string) (sampling.DeviceReading, error) {
		return sampling.DeviceReading{FreeBytes: 8 << 30}, nil
	})

	order := r.order()
	order.Progress.Usage = berth.Usage{Samples: 5, DeviceSamples: 5, DeviceSeenUntil: time.Now().Add(-time.Minute)} // of the worker before
	ended := r.start(t.Context(), order)
	box := r.docks.started(t)
	got := ends(t, box, ended, "acc=0.5\n", 0)
	require.Equal(t, berth.FailureOK, got.Kind, got.Message)
	require.InDelta(t, 0.5, *got.Value, 0)
	require.Positive(t, got.Usage.DeviceUnseen)

	known := berth.Footprint{}
	f, ok := memory.Observe(&known, "key", berth.FootprintFull, got.Kind, got.Usage, berth.Demand{MemoryBytes: 1, DeviceBytes: 2 << 30})
	require.True(t, ok)
	require.False(t, memory.NeedsNoGPU(&f))
}

// A host without the daemon cannot start the attempt, which is no fault of it:
// another host may.
func TestRun_WithoutAnMPSDaemon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.onGPU(t, nil)
		r.byMPS(false)

		asked := 0
		r.config.MPSPipe = func(string) (string, error) {
			if asked++; asked < 3 { // its worker starts it again
				return "", berth.Errorf(berth.KindUnavailable, "its MPS daemon does not run")
			}

			return "/run/mps/again", nil
		}

		box, ended := r.begin(t)
		require.Equal(t, 3, asked)
		require.Equal(t, berth.FailureOK, ends(t, box, ended, "acc=0.5\n", 0).Kind)
	})
}

// What is wrong with readings for a moment, as a process starts or ends, is not
// said; what lasts is, once.
func TestDoubt(t *testing.T) {
	t.Parallel()

	var d doubt

	start := time.Now()
	for second, wrong := range []bool{true, true, true, false, true, true, true, true, true, true, true, true, true} {
		require.Equal(t, second == 9, d.lasts(wrong, start.Add(time.Duration(second)*time.Second)), second)
	}
}

// What an attempt's GPU shows and what its program says decide its outcome, and whether its
// shape is known to need no GPU.
func TestRun_JudgedByItsGPU(t *testing.T) {
	t.Parallel()

	const (
		good       = "acc=0.5\n"
		serverGone = "InternalError: CUDA error: CUDA_ERROR_MPS_RPC_FAILURE: the MPS RPC server failed\n"
		badAddress = "CUDA_ERROR_ILLEGAL_ADDRESS\n"
		oom        = "OOM when allocating tensor with shape[256] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n"
		noLibrary  = "W0000 dso_loader.cc:64] Could not load dynamic library 'libcusolver.so.11'\n"
	)

	always := func(reading sampling.DeviceReading, err error) []scene { return []scene{{time.Hour, reading, err}} }
	holds := func(change func(*sampling.DeviceReading)) []scene {
		reading := sampling.DeviceReading{UsedBytes: 1 << 30, FreeBytes: 8 << 30}
		change(&reading)

		return always(reading, nil)
	}
	beside := func(others ...string) []scene { return holds(func(r *sampling.DeviceReading) { r.Beside = others }) }
	starts := func(free int64) []scene { // it imports its framework, then the driver lists its process without what that holds
		return []scene{{6 * time.Second, sampling.DeviceReading{FreeBytes: 8 << 30}, nil}, {time.Hour, sampling.DeviceReading{FreeBytes: free, Unnamed: true}, errUnnamed}}
	}
	sick := func(r *sampling.DeviceReading) { r.Problem = "XID 63: it retires a part of its memory" }

	for name, c := range map[string]struct {
		wants      berth.DeviceWanted
		mps, alone bool // it shares its GPU by MPS; it is the only client, as the ledger says
		shows      []scene
		once       bool // its GPU is read at its start only, and at its end
		says       string
		exit       int
		want       berth.FailureKind
		message    string
		cores      bool // its shape needs no GPU
	}{
		"a GPU that is lost":                   {shows: []scene{{time.Second, sampling.DeviceReading{UsedBytes: 1 << 20, FreeBytes: 8 << 30}, nil}, {time.Hour, sampling.DeviceReading{Problem: "XID 79: it fell off the bus", Lost: true}, errUnnamed}}, want: berth.FailureInfra, message: "XID 79: it fell off the bus"},
		"a sick GPU, it ends well":             {shows: holds(sick), says: good, want: berth.FailureOK},
		"a sick GPU, it fails":                 {shows: holds(sick), exit: 1, want: berth.FailureInfra},
		"sick after the last reading":          {once: true, shows: []scene{{10850 * time.Millisecond, sampling.DeviceReading{UsedBytes: 1 << 20, FreeBytes: 8 << 30}, nil}, holds(sick)[0]}, exit: 1, want: berth.FailureInfra, message: "XID 63"},
		"never touched, either will do":        {wants: berth.DeviceAuto, shows: always(sampling.DeviceReading{FreeBytes: 8 << 30}, nil), says: good, want: berth.FailureOK, message: "trials like it run on cores", cores: true},
		"never touched, it wants one":          {wants: berth.DeviceGPU, shows: always(sampling.DeviceReading{FreeBytes: 8 << 30}, nil), says: noLibrary + strings.Repeat("goes on\n", tailLines) + good, want: berth.FailureNoDevice, message: "it said: " + noLibrary[:len(noLibrary)-1], cores: true},
		"a driver that does not answer":        {wants: berth.DeviceGPU, shows: always(sampling.DeviceReading{}, errors.New("no answer")), says: good, want: berth.FailureOK},
		"used, it wants one, and not named":    {wants: berth.DeviceGPU, shows: starts(7 << 30), says: good, want: berth.FailureOK},
		"used, either will do, not named":      {wants: berth.DeviceAuto, shows: starts(7 << 30), says: good, want: berth.FailureOK},
		"it fills up while the program starts": {shows: starts(60 << 20), says: oom, exit: 1, want: berth.FailureDeviceBusy},
		"the same, a context by MPS":           {mps: true, shows: starts(60 << 20), says: "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n", exit: 1, want: berth.FailureDeviceBusy},
		"out of its own share":                 {shows: always(sampling.DeviceReading{UsedBytes: 2000 << 20, FreeBytes: 60 << 20}, nil), says: oom, exit: 1, want: berth.FailureDeviceOOM, message: "2,048 MiB reserved"},
		"no client of MPS":                     {mps: true, shows: holds(func(r *sampling.DeviceReading) { r.Unshared = true }), says: good, want: berth.FailureOK, message: "did not share its GPU by MPS"},
		"MPS fails beside another":             {mps: true, shows: beside("another"), says: serverGone, exit: 1, want: berth.FailureNeighbourFault},
		"MPS fails, nobody came":               {mps: true, shows: beside(), says: serverGone, exit: 1, want: berth.FailureInfra},
		"MPS fails, alone there":               {mps: true, alone: true, shows: beside(), says: serverGone, exit: 1, want: berth.FailureInfra},
		"a fault beside another":               {mps: true, shows: beside("another"), says: badAddress, exit: 1, want: berth.FailureNeighbourFault},
		"a fault beside what is not Berth's":   {mps: true, shows: beside(""), says: badAddress, exit: 1, want: berth.FailureNeighbourFault},
		"a fault of its own, nobody came":      {mps: true, shows: beside(), says: badAddress, exit: 1, want: berth.FailureCrashed},
		"a fault of its own, alone there":      {mps: true, alone: true, shows: beside(), says: badAddress, exit: 1, want: berth.FailureCrashed},
	} {
		bubble(t, name, func(t *testing.T) {
			r, _ := metered(t)
			r.wants(c.wants)
			r.onGPU(t, plays(time.Now(), c.shows...))

			if c.mps {
				r.byMPS(c.alone)
			}

			if c.once {
				r.config.SampleEvery = time.Hour
			}

			box, ended := r.begin(t)
			time.Sleep(10900 * time.Millisecond) // between two readings

			got := ends(t, box, ended, c.says, c.exit)
			require.Equal(t, c.want, got.Kind, got.Message)
			require.Contains(t, got.Message, c.message)
			require.Equal(t, c.want == berth.FailureCrashed, got.DeviceFault, "only its own faults are said of its program")

			f, _ := memory.Observe(&berth.Footprint{}, "key", berth.FootprintFull, berth.FailureOK, got.Usage, berth.Demand{MemoryBytes: 1, DeviceBytes: 2 << 30})
			require.Equal(t, c.cores, memory.NeedsNoGPU(&f))
		})
	}
}

// What a GPU does while a program outside Berth is on it is not the attempt's.
func TestRun_BesideAProgramOutsideBerth(t *testing.T) {
	t.Parallel()

	for name, beside := range map[string][]string{"alone": nil, "beside it": {""}} {
		bubble(t, name, func(t *testing.T) {
			r, _ := metered(t)
			r.onGPU(t, func(context.Context, berth.Container, string) (sampling.DeviceReading, error) {
				return sampling.DeviceReading{UsedBytes: 1 << 30, FreeBytes: 8 << 30, Beside: beside, Activity: sampling.GPUActivity{At: time.Now(), SM: 0.8}}, nil
			})

			box, ended := r.begin(t)
			time.Sleep(5 * time.Second)

			u := ends(t, box, ended, "acc=0.5\n", 0).Usage
			if beside == nil {
				require.Equal(t, int64(800), u.DeviceActivity.SMMilli)

				return
			}

			require.Zero(t, u.DeviceActivity)
			require.Zero(t, u.DeviceActive)
			require.Positive(t, u.DeviceUnknown)
		})
	}
}

// A container that shares its GPU by MPS has the daemon's directory, and may take
// what is reserved of the GPU's memory; one alone there has all of it.
func TestLaunch_SharesItsGPUByMPS(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		mps, alone bool
		limit      string
	}{"by MPS": {true, false, "0=2048M"}, "alone there": {true, true, ""}, "by time slices": {}} {
		r := setup(t)
		r.onGPU(t, nil)

		if c.mps {
			r.byMPS(c.alone)
		}

		l := r.launch(t)
		require.Equal(t, c.mps, slices.Contains(l.Mounts, berth.Mount{Source: "/run/mps/" + testGPU, Target: "/trial/mps"}), name)
		require.Equal(t, c.mps, l.Environment["CUDA_MPS_PIPE_DIRECTORY"] == "/trial/mps", name)
		require.Equal(t, c.limit, l.Environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], name)
		require.Equal(t, int64(1000), l.CPUCapMilli, "it may use the cores that its threads may, whatever is booked")
	}
}
