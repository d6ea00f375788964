package gpushare

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/mps"
	"github.com/berthml/berth/internal/agent/sampling"
	"github.com/berthml/berth/internal/control/health"
)

func TestChoose(t *testing.T) {
	t.Parallel()

	cards := []gpu.Card{
		{UUID: "GPU-a", Index: "0"},
		{UUID: "GPU-b", Index: "1", MIG: true},
		{UUID: "MIG-1", Index: "1:0", Parent: "GPU-b"},
		{UUID: "MIG-2", Index: "1:2", Parent: "GPU-b"},
		{UUID: "GPU-c", Index: "2"},
	}
	all := []gpu.Card{cards[0], cards[2], cards[3], cards[4]}

	for wanted, want := range map[string][]gpu.Card{
		"all":            all,
		"2":              {all[3]},
		"GPU-c, 0,GPU-a": {all[3], all[0]},
		"1:2":            {all[2]},
	} {
		got, err := Choose(wanted, cards)
		require.NoError(t, err, wanted)
		require.Equal(t, want, got, wanted)
	}

	for _, wanted := range []string{"7", "GPU-b", "1", "1:1", "0,,2"} {
		_, err := Choose(wanted, cards)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err), wanted)
		require.ErrorContains(t, err, "this machine has 0 (GPU-a), 1:0 (MIG-1), 1:2 (MIG-2), 2 (GPU-c)")
	}
}

// card is a Driver whose readings the test sets.
type card struct {
	gpu.Driver

	free      int64
	processes []gpu.Process
	activity  gpu.Activity
	err       error
	events    chan gpu.Event
	refusals  chan error // of WaitEvent
}

func (c *card) Read(context.Context, string) (gpu.Reading, error) {
	return gpu.Reading{TotalBytes: 1000, FreeBytes: c.free, Processes: c.processes, ProcessesKnown: true}, c.err
}

func (c *card) Activity(context.Context, string) (gpu.Activity, error) { return c.activity, c.err }

func (c *card) WaitEvent(ctx context.Context) (gpu.Event, error) {
	select {
	case e := <-c.events:
		return e, nil
	case err := <-c.refusals:
		return gpu.Event{}, err
	case <-ctx.Done():
		return gpu.Event{}, ctx.Err()
	}
}

func handsOut(c *card, ids ...string) *GPUs {
	g := newGPUs(c, slog.New(slog.DiscardHandler))
	g.meter = gpu.NewMeter(c, os.DirFS("/nowhere"))

	for _, id := range ids {
		g.devices = append(g.devices, berth.Device{ID: id})
	}

	return g
}

func TestGPUs_Free(t *testing.T) {
	t.Parallel()

	c := &card{free: 700}
	g := handsOut(c, "GPU-a", "GPU-b")
	g.sick["GPU-b"] = "Docker cannot give it away"
	require.Equal(t, []berth.DeviceFree{{ID: "GPU-a", FreeBytes: 700}, {ID: "GPU-b", FreeBytes: 700, Problem: "Docker cannot give it away"}}, g.FreeMemory(t.Context(), nil))

	hangs := handsOut(&card{err: berth.Errorf(berth.KindUnavailable, "the driver does not answer")}, "GPU-a")
	require.Contains(t, hangs.FreeMemory(t.Context(), nil)[0].Problem, "the driver does not answer")
	require.Empty(t, hangs.problem("GPU-a"), "it may answer again")

	lost := handsOut(&card{err: gpu.ErrLost}, "GPU-a")
	require.Contains(t, lost.FreeMemory(t.Context(), nil)[0].Problem, "lost")
	require.NotEmpty(t, lost.problem("GPU-a"), "that is for good")
}

// Where the driver does not measure its SMs, a GPU's activity is unknown:
// nvidia-smi's utilisation says how often a GPU works, not how full it is.
func TestGPUs_Activity(t *testing.T) {
	t.Parallel()

	c := &card{activity: gpu.Activity{
		From: time.Unix(1, 0), To: time.Unix(2, 0), SMActivity: 0.07, DRAMBandwidth: 0.05, Tensor: 0.01,
	}}
	require.Equal(t, sampling.GPUActivity{At: time.Unix(2, 0), SM: 0.07, DRAM: 0.05, Tensor: 0.01}, handsOut(c, "GPU-a").activity(t.Context(), "GPU-a"))

	c = &card{activity: gpu.Activity{To: time.Unix(2, 0)}}
	require.Zero(t, handsOut(c, "GPU-a").activity(t.Context(), "GPU-a"))

	c = &card{err: gpu.ErrUnsupported}
	require.Zero(t, handsOut(c, "GPU-a").activity(t.Context(), "GPU-a"))
}

// A reading has the other programs on a GPU beside a container's memory.
func TestGPUs_ReadTellsWhoIsThere(t *testing.T) {
	t.Parallel()

	own := strings.Repeat("a", 64)
	c := &card{free: 700, processes: []gpu.Process{{PID: 1, Bytes: 50}, {PID: 2, Bytes: 60}}}
	g := handsOut(c, "GPU-a")
	g.meter = gpu.NewMeter(c, fstest.MapFS{"1/cgroup": {Data: []byte("0::/docker/" + own)}})

	reading, err := g.Read(t.Context(), berth.Container{ID: own}, "GPU-a")
	require.NoError(t, err)
	require.Equal(t, int64(50), reading.UsedBytes)
	require.Equal(t, []string{""}, reading.Beside, "a process that is in no container")
}

// A fault of a card takes it out of service, one of a program does not. An error of one
// GPU, such as one that reports no events, ends no watch of the others.
func TestGPUs_Watch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &card{events: make(chan gpu.Event), refusals: make(chan error)}
		g := handsOut(c, "GPU-a", "GPU-b")

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)

		go func() { ended <- g.Watch(ctx) }()

		c.refusals <- berth.Errorf(berth.KindInvalid, "watching GPU 1 for errors: not supported by this GPU")

		for _, event := range []gpu.Event{{UUID: "GPU-b", XID: 31}, {UUID: "GPU-a", XID: 79}, {UUID: "GPU-c", XID: 79}} { // GPU-c is not ours
			c.events <- event
		}

		synctest.Wait()
		require.Contains(t, g.problem("GPU-a"), "fell off the bus")
		require.Empty(t, g.problem("GPU-b"))
		require.Len(t, g.news, 1)
		<-g.news

		c.events <- gpu.Event{XID: 48} // of any card

		synctest.Wait()
		require.Contains(t, g.problem("GPU-a"), "fell off the bus", "the first reason stands")
		require.Contains(t, g.problem("GPU-b"), "XID 48")
		require.Len(t, g.news, 1, "there is news of GPU-b")

		c.refusals <- gpu.ErrUnsupported

		synctest.Wait()
		require.Empty(t, ended, "it waits, though the driver tells of nothing")
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

// A fault of a card in MIG mode is one of each of its MIG devices.
func TestGPUs_WatchMIG(t *testing.T) {
	t.Parallel()

	for uuid, want := range map[string][]string{"GPU-a": {"MIG-1", "MIG-2"}, "MIG-1": {"MIG-1"}, "GPU-b": {"GPU-b"}} {
		g := handsOut(&card{})
		for _, c := range []gpu.Card{{UUID: "MIG-1", Parent: "GPU-a"}, {UUID: "MIG-2", Parent: "GPU-a"}, {UUID: "GPU-b"}, {UUID: "MIG-3", Parent: "GPU-c"}} {
			g.add(c, berth.SharingTimeSlicing)
		}

		g.noteEvent(gpu.Event{UUID: uuid, XID: 95})

		var sick []string

		for _, free := range g.FreeMemory(t.Context(), nil) {
			if free.Problem != "" {
				require.Contains(t, free.Problem, "XID 95")

				sick = append(sick, free.ID)
			}
		}

		require.Equal(t, want, sick, uuid)
	}
}

func TestGPUs_None(t *testing.T) {
	t.Parallel()

	g, err := Open(t.Context(), Config{GPUs: None, Sharing: SharingAuto}, "host", nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.Empty(t, g.devices)
	require.Empty(t, g.FreeMemory(t.Context(), nil))

	_, err = g.Read(t.Context(), berth.Container{ID: "of the worker before"}, "GPU-a")
	require.ErrorIs(t, err, errNoGPUs)
	g.Close(t.Context(), false)

	require.NoError(t, Config{}.withoutGPUs(All, gpu.ErrNoDriver, slog.New(slog.DiscardHandler)))
	require.ErrorContains(t, Config{}.withoutGPUs("0", gpu.ErrNoDriver, slog.New(slog.DiscardHandler)), `--gpus "0": this machine has no NVIDIA driver`)
}

func TestGPUFindings(t *testing.T) {
	t.Parallel()

	found := gpuFindings(gpu.Inventory{
		DriverVersion: "580.1", CUDAVersion: "13.0", Warnings: []string{"no GPM"},
		Cards: []gpu.Card{
			{UUID: "GPU-a", Model: "NVIDIA H200", MemoryBytes: 140 << 30},
			{UUID: "GPU-b", Model: "NVIDIA H200", MIG: true},
			{UUID: "MIG-1", Model: "NVIDIA H200", Profile: "1g.18gb", MemoryBytes: 18 << 30},
			{UUID: "GPU-c", Model: "NVIDIA L4", Problem: "it is lost"},
		},
	}, map[string]string{"MIG-1": "run nvidia-ctk"}, mps.ErrNotInstalled)

	require.Equal(t, []health.Finding{
		{OK: true, Part: "GPUs", What: "NVIDIA driver 580.1, CUDA 13.0"},
		{OK: true, Warn: true, Part: "GPUs", What: "no GPM"},
		{OK: true, Part: "GPU", What: "NVIDIA H200 (GPU-a), 143,360 MiB, " + sharingText(gpu.Card{}, mps.ErrNotInstalled)},
		{Part: "GPU", What: "NVIDIA H200 1g.18gb (MIG-1), 18,432 MiB: takes no trials", Next: "run nvidia-ctk"},
		{Part: "GPU", What: "NVIDIA L4 (GPU-c), 0 bytes: takes no trials", Next: "it is lost"},
	}, found)
}

func TestWantedGPUs(t *testing.T) {
	t.Parallel()

	require.Equal(t, All, Config{}.wanted())
	require.Equal(t, None, Config{MachineID: "half"}.wanted(), "they may be the other half's")
	require.Equal(t, "1", Config{MachineID: "half", GPUs: "1"}.wanted())
}

// A card that is too small to keep anything free, or whose memory cannot be read,
// has nothing to give, and is no reason for the ledger to refuse its host.
func TestDescribeGPU(t *testing.T) {
	t.Parallel()

	for mebibytes, want := range map[int64]int64{0: 0, 981: 0, 4096: 3072, 143771: 136582} {
		require.Equal(t, want, describeGPU(gpu.Card{MemoryBytes: mebibytes << 20}, berth.SharingTimeSlicing).CapacityBytes()>>20)
	}

	require.Zero(t, describeGPU(gpu.Card{}, berth.SharingTimeSlicing).MaxAttempts)
	require.Equal(t, 1, describeGPU(gpu.Card{}, berth.SharingExclusive).MaxAttempts)
}
