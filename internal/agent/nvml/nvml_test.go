//go:build cgo && linux

package nvml

import (
	"context"
	"debug/elf"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/testkit/gputest"
)

// The cards of testdata/fake.c.
const (
	mib = 1 << 20

	h200 = "GPU-00000000-0000-0000-0000-000000000000"
	t4   = "GPU-11111111-1111-1111-1111-111111111111"
	h100 = "GPU-22222222-2222-2222-2222-222222222222"
	mig0 = "MIG-33333333-3333-3333-3333-333333333333"
	mig2 = "MIG-44444444-4444-4444-4444-444444444444"

	xid, ecc, clock = 8, 2, 16 // types of events
)

// healthy is the inventory of the invented library.
func healthy() gpu.Inventory {
	return gpu.Inventory{
		DriverVersion: "580.159.04",
		CUDAVersion:   "13.1",
		Cards: []gpu.Card{
			{UUID: h200, Index: "0", Model: "NVIDIA H200", MemoryBytes: 143771 * mib, Major: 9},
			{UUID: t4, Index: "1", Model: "Tesla T4", MemoryBytes: 15360 * mib, Major: 7},
			{UUID: h100, Index: "2", Model: "NVIDIA H100 80GB HBM3", MemoryBytes: 81559 * mib, Major: 9, MIG: true},
			{UUID: mig0, Index: "2:0", Model: "NVIDIA H100 80GB HBM3", Profile: "3g.40gb", Parent: h100, MemoryBytes: 40448 * mib, Major: 9},
			{UUID: mig2, Index: "2:2", Model: "NVIDIA H100 80GB HBM3", Profile: "1c.2g.20gb", Parent: h100, MemoryBytes: 20096 * mib, Major: 9},
		},
	}
}

// healthyReading is the H200's reading. PIDs 4002, 4003 and 4006 are in both
// lists, the first two with their memory in one of them only. 4008 is in the list
// of clients only. The memory of 4005 is not available.
func healthyReading() gpu.Reading {
	return gpu.Reading{
		TotalBytes: 143771 * mib, ReservedBytes: 600 * mib, UsedBytes: 4000 * mib, FreeBytes: 139171 * mib,
		ProcessesKnown: true,
		Processes: []gpu.Process{
			{PID: 4001, Bytes: 1024 * mib},
			{PID: 4002, Bytes: 512 * mib, MPS: true},
			{PID: 4003, Bytes: 880 * mib, MPS: true},
			{PID: 4004, Bytes: 66 * mib},
			{PID: 4005},
			{PID: 4006, Bytes: 878 * mib, MPS: true},
			{PID: 4008, Bytes: 100 * mib, MPS: true},
		},
	}
}

// healthyActivity is the H200's between sample n-1 and n.
func healthyActivity(n int) gpu.Activity {
	return gpu.Activity{
		SMActivity: min(10*float64(n), 100) / 100, Tensor: 0.05, DRAMBandwidth: 0.475,
	}
}

// newest is the number of the newer sample of an activity.
func newest(a gpu.Activity) int { return int(math.Round(10 * a.SMActivity)) }

// timeless drops the times.
func timeless(a gpu.Activity) gpu.Activity {
	a.From, a.To = time.Time{}, time.Time{}

	return a
}

func read(t *testing.T, d gpu.Driver, uuid string) gpu.Reading {
	t.Helper()

	reading, err := d.Read(t.Context(), uuid)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), reading.At, patience)

	reading.At = time.Time{}

	return reading
}

func TestConformance(t *testing.T) {
	t.Parallel()
	inChild(t, nil, nil, func(t *testing.T, f fake) {
		t.Run("all", func(t *testing.T) {
			gputest.Run(t, func(t *testing.T) gpu.Driver { t.Helper(); return open(t, Config{}) })
		})
		require.Contains(t, f.calls(t)[len(f.calls(t))-1], "left 0 samples 0 sets")
	})
}

// The inventory and the H200's reading, on machines that lack something.
func TestInventory(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		steer map[string]string
		want  func(*gpu.Reading)
	}{
		"a healthy machine": {nil, func(*gpu.Reading) {}},
		// A card or driver without a list of processes, as in virtual machines.
		"no list of processes": {
			map[string]string{"fault.nvmlDeviceGetComputeRunningProcesses_v3": "3", "fault.nvmlDeviceGetMPSComputeRunningProcesses_v3": "3"},
			func(r *gpu.Reading) { r.Processes, r.ProcessesKnown = nil, false },
		},
		// A driver that refuses the second version of the memory's sizes is asked for the
		// first, which includes the reserved memory.
		"no second version of memory": {
			map[string]string{"fault.nvmlDeviceGetMemoryInfo_v2": "25"}, func(r *gpu.Reading) { r.ReservedBytes, r.UsedBytes = 0, 4600*mib },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inChild(t, nil, c.steer, func(t *testing.T, _ fake) {
				d := open(t, Config{})
				got, err := d.Inventory(t.Context())
				require.NoError(t, err)
				require.Equal(t, healthy().Cards, got.Cards)

				want := healthyReading()
				c.want(&want)
				require.Equal(t, want, read(t, d, h200))
			})
		})
	}
}

func TestInventory_NoCard(t *testing.T) {
	t.Parallel()
	inChild(t, nil, map[string]string{"none": ""}, func(t *testing.T, _ fake) {
		d := open(t, Config{})
		_, err := d.Inventory(t.Context())
		require.Equal(t, berth.KindNotFound, berth.KindOf(err))
		require.ErrorContains(t, err, "the NVIDIA driver sees no GPU: check `lspci | grep -i nvidia`")

		_, err = d.WaitEvent(t.Context())
		require.Equal(t, berth.KindNotFound, berth.KindOf(err))
	})
}

// A virtual GPU reports that its activity can be measured, and sampling fails: nothing is
// known then.
func TestActivity_Tries(t *testing.T) {
	t.Parallel()

	for name, steer := range map[string]map[string]string{
		"not supported":     {"fault.nvmlGpmSampleGet": "3"},
		"unknown error":     {"fault.nvmlGpmSampleGet": "999"},
		"no memory for it":  {"fault.nvmlGpmSampleAlloc": "999"},
		"metrics of no use": {"fault.nvmlGpmMetricsGet": "999"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inChild(t, nil, steer, func(t *testing.T, _ fake) {
				d := open(t, Config{})

				for range 2 {
					activity, err := d.Activity(t.Context(), h200)
					require.NoError(t, err)
					require.Equal(t, gpu.Activity{}, timeless(activity))
				}
			})
		})
	}
}

// Another program that samples the card's activity, such as DCGM, costs a moment.
func TestActivity_SampledByAnother(t *testing.T) {
	t.Parallel()
	inChild(t, nil, map[string]string{"fault.nvmlGpmSampleGet": "19"}, func(t *testing.T, f fake) {
		d := open(t, Config{})

		_, err := d.Activity(t.Context(), h200)
		require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
		require.ErrorContains(t, err, "another program is at it: try again")

		asked := f.count(t, "nvmlGpmSampleGet")
		ended := make(chan error, 1)

		go func() {
			_, err := d.Activity(t.Context(), h200)
			ended <- err
		}()

		require.Eventually(t, func() bool { return f.count(t, "nvmlGpmSampleGet") > asked+1 }, time.Minute, time.Millisecond)
		f.clear(t, "fault.nvmlGpmSampleGet")
		require.NoError(t, <-ended)
	})
}

func TestRead(t *testing.T) {
	t.Parallel()
	inChild(t, nil, nil, func(t *testing.T, _ fake) {
		d := open(t, Config{})
		require.Equal(t, healthyReading(), read(t, d, h200))
		require.Equal(t, gpu.Reading{
			TotalBytes: 15360 * mib, ReservedBytes: 460 * mib, FreeBytes: 14900 * mib, ProcessesKnown: true,
		}, read(t, d, t4))
		require.Equal(t, gpu.Reading{
			TotalBytes: 40448 * mib, ReservedBytes: 11 * mib, UsedBytes: 2000 * mib, FreeBytes: 38437 * mib,
			ProcessesKnown: true, Processes: []gpu.Process{{PID: 4007, Bytes: 2000 * mib}},
		}, read(t, d, mig0))
	})
}

func TestSizes(t *testing.T) {
	t.Parallel()

	require.Equal(t, gpu.Reading{TotalBytes: 100, ReservedBytes: 10, UsedBytes: 30, FreeBytes: 60}, sizes(100, 10, 60))
	require.Equal(t, gpu.Reading{TotalBytes: 100, FreeBytes: 100}, sizes(100, 10, 100), "reserved in free")
	require.Equal(t, gpu.Reading{TotalBytes: 100, FreeBytes: 100}, sizes(100, math.MaxUint64, math.MaxUint64), "not available")
	require.Equal(t, gpu.Reading{TotalBytes: math.MaxInt64, UsedBytes: math.MaxInt64}, sizes(math.MaxUint64, 0, 0))
}

// Each measurement begins where the last one ended, and at once again there is no
// new one.
func TestActivity(t *testing.T) {
	t.Parallel()
	inChild(t, nil, nil, func(t *testing.T, _ fake) {
		d := open(t, Config{})

		first, err := d.Activity(t.Context(), h200)
		require.NoError(t, err)
		require.Equal(t, healthyActivity(2), timeless(first), "the first call takes two samples")

		last := first

		for newest(last) < 6 {
			next, err := d.Activity(t.Context(), h200)
			require.NoError(t, err)

			if newest(next) == newest(last) {
				require.Equal(t, last, next)

				continue
			}

			require.Equal(t, healthyActivity(newest(last)+1), timeless(next))
			require.True(t, next.From.Equal(last.To))
			require.GreaterOrEqual(t, next.To.Sub(next.From), gap)

			last = next
		}

		part, err := d.Activity(t.Context(), mig0)
		require.NoError(t, err)
		require.Equal(t, gpu.Activity{SMActivity: 0.2}, timeless(part),
			"a metric with an error, one that is no number, and what MIG does not have are not known")

		idle, err := d.Activity(t.Context(), t4)
		require.NoError(t, err)
		require.Equal(t, gpu.Activity{}, timeless(idle), "it has no GPM")
	})
}

// An old sample is no beginning.
func TestActivity_Stale(t *testing.T) {
	t.Parallel()
	inChild(t, nil, nil, func(t *testing.T, _ fake) {
		opened := open(t, Config{})

		first, err := opened.Activity(t.Context(), h200)
		require.NoError(t, err)

		d, _ := opened.(*driver)
		_, err = ask(t.Context(), d.calls, patience, "ageing", func() (struct{}, error) {
			d.gauges[h200].at = time.Now().Add(-stale - time.Second)

			return struct{}{}, nil
		})
		require.NoError(t, err)

		next, err := opened.Activity(t.Context(), h200)
		require.NoError(t, err)
		require.Equal(t, healthyActivity(4), timeless(next), "samples 3 and 4")
		require.False(t, next.From.Before(first.To))
	})
}

// wait waits for an event, and checks and drops its time.
func wait(t *testing.T, d gpu.Driver) gpu.Event {
	t.Helper()

	event, err := d.WaitEvent(t.Context())
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), event.At, patience)

	event.At = time.Time{}

	return event
}

func TestWaitEvent(t *testing.T) {
	t.Parallel()
	inChild(t, nil, nil, func(t *testing.T, f fake) {
		d := open(t, Config{})

		for _, c := range []struct {
			what       string
			card       int
			kind, data uint64
			want       gpu.Event
		}{
			{"of a card", 0, xid, 79, gpu.Event{UUID: h200, XID: 79}},
			{"of a card that tells of no ECC errors", 1, xid, 13, gpu.Event{UUID: t4, XID: 13}},
			{"ECC", 0, ecc, 0, gpu.Event{UUID: h200, UncorrectedECC: true}},
			{"of a card in MIG mode", 2, xid, 79, gpu.Event{UUID: h100, XID: 79}},
		} {
			f.send(t, c.card, c.kind, c.data)
			require.Equal(t, c.want, wait(t, d), c.what)
		}

		next := make(chan gpu.Event, 1)

		go func() {
			event, _ := d.WaitEvent(t.Context())
			next <- event
		}()

		f.send(t, 0, clock, 0)
		f.send(t, -1, xid, 999)

		event := <-next
		require.Equal(t, gpu.Event{At: event.At, XID: 999}, event, "nobody asked for clocks; the driver does not know the card")
	})
}

// An event that comes after its caller has gone is the next caller's.
func TestWaitEvent_NoneIsLost(t *testing.T) {
	t.Parallel()
	inChild(t, nil, nil, func(t *testing.T, f fake) {
		d := open(t, Config{})

		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)

		go func() {
			_, err := d.WaitEvent(ctx)
			gone <- err
		}()

		require.Eventually(t, func() bool { return f.count(t, "nvmlEventSetWait_v2") == 1 }, patience, tick)
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)

		// The library still waits for the GPU that has gone: its turn is not over.
		f.send(t, 0, xid, 74)
		require.Eventually(t, func() bool {
			_, err := os.Stat(filepath.Join(f.dir, "event.taken"))

			return err == nil || f.count(t, "nvmlEventSetWait_v2") > 1
		}, patience, tick)
		require.Equal(t, gpu.Event{UUID: h200, XID: 74}, wait(t, d))
	})
}

// A GPU that cannot be watched is reported once; the others are watched.
func TestWaitEvent_OneCardIsLost(t *testing.T) {
	t.Parallel()
	inChild(t, nil, nil, func(t *testing.T, f fake) {
		d := open(t, Config{})

		f.send(t, 0, xid, 43)
		require.Equal(t, gpu.Event{UUID: h200, XID: 43}, wait(t, d))

		f.set(t, "lost.0", "")
		f.send(t, 0, xid, 79)
		require.Equal(t, gpu.Event{XID: 79}, wait(t, d), "a card that cannot tell its UUID any more")

		f.set(t, "fault.nvmlEventSetWait_v2", "15")
		_, err := d.WaitEvent(t.Context())
		require.ErrorIs(t, err, gpu.ErrLost)

		f.clear(t, "fault.nvmlEventSetWait_v2")
		_, err = d.WaitEvent(t.Context())
		require.ErrorIs(t, err, gpu.ErrLost)
		require.ErrorContains(t, err, "GPU 0")

		f.send(t, 1, xid, 31)
		require.Equal(t, gpu.Event{UUID: t4, XID: 31}, wait(t, d))

		f.set(t, "fault.nvmlEventSetWait_v2", "999")
		_, err = d.WaitEvent(t.Context())
		require.Equal(t, berth.KindInternal, berth.KindOf(err))
		f.clear(t, "fault.nvmlEventSetWait_v2")

		f.set(t, "fault.nvmlDeviceRegisterEvents", "999")
		_, err = d.WaitEvent(t.Context())
		require.Equal(t, berth.KindInternal, berth.KindOf(err))
		f.clear(t, "fault.nvmlDeviceRegisterEvents")

		f.clear(t, "lost.0")
		f.send(t, 0, xid, 94)
		require.Equal(t, gpu.Event{UUID: h200, XID: 94}, wait(t, d), "a card that is back is watched again")
	})
}

// A GPU that reports no errors is logged once; the others are watched.
func TestWaitEvent_OneCardIsDeaf(t *testing.T) {
	t.Parallel()
	inChild(t, nil, map[string]string{"deaf.0": "", "deaf.1": "", "deaf.2": ""}, func(t *testing.T, f fake) {
		d := open(t, Config{})

		_, err := d.WaitEvent(t.Context())
		require.ErrorIs(t, err, gpu.ErrUnsupported, "all are deaf")

		f.clear(t, "deaf.0")
		f.clear(t, "deaf.2")

		_, err = d.WaitEvent(t.Context())
		require.ErrorContains(t, err, "watching GPU 1 for errors: not supported")
		require.NotErrorIs(t, err, gpu.ErrUnsupported, "that is a driver which tells of no events")

		f.send(t, 0, xid, 79)
		require.Equal(t, gpu.Event{UUID: h200, XID: 79}, wait(t, d))
	})
}

func TestCardIsLost(t *testing.T) {
	t.Parallel()
	inChild(t, nil, nil, func(t *testing.T, f fake) {
		d := open(t, Config{})
		_, err := d.Inventory(t.Context())
		require.NoError(t, err)

		f.set(t, "lost.0", "")

		_, err = d.Read(t.Context(), h200)
		require.ErrorIs(t, err, gpu.ErrLost)
		require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
		require.ErrorContains(t, err, `"`+h200+`": the GPU is lost: it fell off the bus`)

		_, err = d.Activity(t.Context(), h200)
		require.ErrorIs(t, err, gpu.ErrLost)

		require.Equal(t, int64(14900*mib), read(t, d, t4).FreeBytes, "the others go on")

		got, err := d.Inventory(t.Context())
		require.NoError(t, err)
		require.Equal(t, healthy().Cards[1:], got.Cards)
		require.Len(t, got.Warnings, 1)
		require.Contains(t, got.Warnings[0], "finding GPU 0: the GPU is lost")

		f.clear(t, "lost.0")
		require.Equal(t, healthyReading(), read(t, d, h200), "after a reset it works again")

		got, err = d.Inventory(t.Context())
		require.NoError(t, err)
		require.Equal(t, healthy(), got)
	})
}

// A card that is lost after it was found has its problem in the inventory.
func TestCardIsLost_WhileItIsDescribed(t *testing.T) {
	t.Parallel()

	for _, function := range []string{"nvmlDeviceGetName", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetMigMode"} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			inChild(t, nil, map[string]string{"fault." + function: "15"}, func(t *testing.T, _ fake) {
				got, err := open(t, Config{}).Inventory(t.Context())
				require.NoError(t, err)
				require.Equal(t, h200, got.Cards[0].UUID)
				require.Contains(t, got.Cards[0].Problem, "the GPU is lost")
			})
		})
	}
}

func TestOpen_NoLibrary(t *testing.T) {
	t.Parallel()

	noLibrary := filepath.Join(t.TempDir(), "text.so")
	require.NoError(t, os.WriteFile(noLibrary, []byte("this is no library"), 0o600))

	for path, why := range map[string]string{
		filepath.Join(t.TempDir(), defaultLibrary): "No such file or directory",
		noLibrary: "file too short",
	} {
		_, err := Open(t.Context(), Config{LibraryPath: path})
		require.ErrorIs(t, err, gpu.ErrNoDriver)
		require.Equal(t, berth.KindNotFound, berth.KindOf(err))
		require.ErrorContains(t, err, "opening NVIDIA's library: this machine has no NVIDIA driver")
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, why)
	}
}

// After a failed nvmlInit nothing may be called, not even nvmlShutdown or
// nvmlErrorString.
func TestOpen_InitFails(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		code string
		kind berth.Kind
		text string
	}{
		"not loaded":      {"9", berth.KindUnavailable, "the NVIDIA driver is installed and not loaded: run `modprobe nvidia`"},
		"no permission":   {"4", berth.KindInvalid, "no permission: run the worker as root"},
		"replaced":        {"18", berth.KindUnavailable, "the NVIDIA driver was replaced while its old version runs: reboot the machine"},
		"by the kernel":   {"17", berth.KindInvalid, "no permission"},
		"lost":            {"15", berth.KindUnavailable, "the GPU is lost"},
		"unknown":         {"999", berth.KindInternal, "the NVIDIA driver failed (return code 999)"},
		"a code to come":  {"1234", berth.KindInternal, "the NVIDIA driver failed (return code 1234)"},
		"short of memory": {"20", berth.KindUnavailable, "the NVIDIA driver is busy or short of memory (return code 20): try again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inChild(t, nil, map[string]string{"fault.nvmlInit_v2": c.code}, func(t *testing.T, f fake) {
				config := Config{LibraryPath: os.Getenv(libraryEnv)}

				_, err := Open(t.Context(), config)
				require.Equal(t, c.kind, berth.KindOf(err), "%v", err)
				require.ErrorContains(t, err, "starting NVIDIA's library: "+c.text)
				require.Equal(t, []string{"nvmlInit_v2"}, f.calls(t))

				_, err = Open(t.Context(), config)
				require.ErrorContains(t, err, c.text)
				require.Equal(t, []string{"nvmlInit_v2", "nvmlInit_v2"}, f.calls(t))

				f.clear(t, "fault.nvmlInit_v2")
				require.Equal(t, healthyReading(), read(t, open(t, config), h200), "a driver that is loaded later is found")
			})
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		fault, code string
		kind        berth.Kind
		sentinel    error
		text        string
	}{
		"reset required": {"nvmlDeviceGetMemoryInfo_v2", "16", berth.KindUnavailable, gpu.ErrLost, "nvidia-smi --gpu-reset"},
		"no permission":  {"nvmlDeviceGetHandleByUUID", "4", berth.KindInvalid, nil, "let it open /dev/nvidia*"},
		"busy":           {"nvmlDeviceGetMemoryInfo_v2", "10", berth.KindUnavailable, nil, "return code 10"},
		"power":          {"nvmlDeviceGetHandleByUUID", "8", berth.KindUnavailable, nil, "power cables"},
		"interrupts":     {"nvmlDeviceGetHandleByUUID", "11", berth.KindUnavailable, nil, "interrupts"},
		"list fails":     {"nvmlDeviceGetComputeRunningProcesses_v3", "999", berth.KindInternal, nil, "listing the processes of"},
		"clients fail":   {"nvmlDeviceGetMPSComputeRunningProcesses_v3", "15", berth.KindUnavailable, gpu.ErrLost, "listing the MPS clients of"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inChild(t, nil, map[string]string{"fault." + c.fault: c.code}, func(t *testing.T, _ fake) {
				_, err := open(t, Config{}).Read(t.Context(), h200)
				require.Equal(t, c.kind, berth.KindOf(err), "%v", err)
				require.ErrorContains(t, err, c.text)
				require.ErrorContains(t, err, h200)

				for _, sentinel := range []error{gpu.ErrLost, gpu.ErrUnsupported, gpu.ErrNoDriver} {
					require.Equal(t, errors.Is(c.sentinel, sentinel), errors.Is(err, sentinel))
				}
			})
		})
	}
}

// The invented library has exactly the functions that this package uses: so
// TestLacks leaves out each of them once, and none is called unguarded by luck.
func TestSymbols(t *testing.T) {
	t.Parallel()

	file, err := elf.Open(linked(t))
	require.NoError(t, err)

	defer func() { require.NoError(t, file.Close()) }()

	exported, err := file.DynamicSymbols()
	require.NoError(t, err)

	var names []string

	for _, symbol := range exported {
		if symbol.Section != elf.SHN_UNDEF && strings.HasPrefix(symbol.Name, "nvml") {
			names = append(names, symbol.Name)
		}
	}

	require.ElementsMatch(t, symbols, names)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(symbols))), len(symbols))
}
