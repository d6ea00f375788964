package packing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// A trial with a stored checkpoint goes to a host without a store, where it starts again, only
// when no other host can ever hold it: not because that host is empty, nor while the others are
// full.
func TestDecide_AHostWithoutAStoreIsTheLastChoice(t *testing.T) {
	t.Parallel()

	with, without := host("with", 4, 8), host("without", 8, 16)
	with.StoresCheckpoints, with.DiskHeadroomBytes, with.DiskFreeBytes, with.DiskBytes = true, 2*gib, 100*gib, 200*gib
	without.DiskHeadroomBytes, without.DiskFreeBytes = 2*gib, 100*gib
	with.MemoryReservedBytes, with.CPUMilliReserved, with.Attempts = 2*gib, 1000, 1

	request := ask("1", 1, 1)
	request.Stored = true

	for name, tt := range map[string]struct {
		change func(h *berth.Host, r *packing.Request)
		want   string // the host; empty = it waits
	}{
		"the other has room": {func(*berth.Host, *packing.Request) {}, "with"},
		"it is full":         {func(h *berth.Host, _ *packing.Request) { h.CPUMilliReserved = 4000 }, ""},
		"its disk is full":   {func(h *berth.Host, _ *packing.Request) { h.DiskFreeBytes = gib }, ""},
		"its worker starts":  {func(h *berth.Host, _ *packing.Request) { h.State, h.Problem = berth.HostUnready, berth.WorkerStarts }, ""},
		"its worker starts, and never comes": {func(h *berth.Host, _ *packing.Request) {
			h.State, h.Problem, h.AbsentFor = berth.HostUnready, berth.WorkerStarts, berth.HostGrace
		}, "without"},
		"its Docker restarts": {func(h *berth.Host, _ *packing.Request) {
			h.State, h.Problem = berth.HostUnready, "Docker does not answer: connection refused"
		}, ""},
		"its Docker is broken": {func(h *berth.Host, _ *packing.Request) {
			h.State, h.Problem, h.AbsentFor = berth.HostUnready, "Docker does not answer", berth.HostGrace
		}, "without"},
		"it restarts": {func(h *berth.Host, _ *packing.Request) {
			h.State, h.AbsentFor = berth.HostLost, berth.HostGrace-time.Second
		}, ""},
		"it is lost":                           {func(h *berth.Host, _ *packing.Request) { h.State, h.AbsentFor = berth.HostLost, berth.HostGrace }, "without"},
		"it is drained":                        {func(h *berth.Host, _ *packing.Request) { h.State = berth.HostDraining }, "without"},
		"it was drained, and is switched off":  {func(h *berth.Host, _ *packing.Request) { h.State, h.Drained = berth.HostLost, true }, "without"},
		"it is cordoned":                       {func(h *berth.Host, _ *packing.Request) { h.CordonedAt = new(time.Now()) }, "without"},
		"it is too small":                      {func(h *berth.Host, _ *packing.Request) { h.CPUMilli, h.CPUMilliReserved = 500, 0 }, "without"},
		"the trial failed there once":          {func(_ *berth.Host, r *packing.Request) { r.FailedHosts = []string{"with"} }, "with"},
		"the trial failed there again, always": {func(_ *berth.Host, r *packing.Request) { r.FailedHosts = []string{"with", "with", "with"} }, "without"},
		"it may be where it ran last":          {func(_ *berth.Host, r *packing.Request) { r.Holders = []string{"without"} }, "without"},
		"nothing is in the store":              {func(_ *berth.Host, r *packing.Request) { r.Stored = false }, "without"},
		"it has it itself, and is full":        {func(h *berth.Host, r *packing.Request) { h.CPUMilliReserved, r.Holders = 4000, []string{"with"} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			h, r := with, request
			tt.change(&h, &r)

			want := map[string]string{"1": tt.want}
			if tt.want == "" {
				want = map[string]string{}
			}

			decisions := packing.Decide([]berth.Host{h, without}, nil, []packing.Request{r})
			require.Equal(t, want, where(decisions))

			if tt.want == "" {
				rejections := decisions[0].Rejections(0)
				require.Equal(t, "host host-without: has no store to fetch the trial's checkpoint from (--artifacts), and another host can go on from it; here it would begin anew",
					packing.Explain(rejections[len(rejections)-1]))
			}
		})
	}
}

// A trial goes back to the host whose directory has its checkpoint, unless another host, which
// would fetch it, is much emptier.
func TestDecide_PrefersTheHostThatHasTheCheckpoint(t *testing.T) {
	t.Parallel()

	for reserved, want := range map[int64]string{0: "holder", 1500: "holder", 3000: "other"} { // thousandths of a core, of 8,000
		holder, other := host("holder", 8, 16), host("other", 8, 16)
		holder.StoresCheckpoints, other.StoresCheckpoints, holder.CPUMilliReserved = true, true, reserved

		r := ask("1", 1, 1)
		r.Stored, r.Holders = true, []string{"holder"}
		require.Equal(t, map[string]string{"1": want}, where(packing.Decide([]berth.Host{other, holder}, nil, []packing.Request{r})), reserved)
	}
}

// An overdue request keeps free the host with its checkpoint, not a host that it may not use.
func TestDecide_KeepsAHostThatHasAStore(t *testing.T) {
	t.Parallel()

	with, without := host("with", 4, 8), host("without", 4, 8)
	with.StoresCheckpoints, with.CPUMilliReserved, with.MemoryReservedBytes, with.Attempts = true, 4000, 4*gib, 4
	without.CPUMilliReserved, without.MemoryReservedBytes, without.Attempts = 3000, gib, 1

	r := ask("1", 2, 1)
	r.Stored, r.Waited, r.Asked = true, packing.DrainAfter, packing.DrainAfter
	with.DiskFreeBytes = gib

	require.Equal(t, "with", packing.Decide([]berth.Host{with, without}, nil, []packing.Request{r})[0].Kept.HostID)
}

// A trial with a stored checkpoint waits for a host that can use it, but not for a host that will
// not take it again: its only GPU fell off the bus, or a person cordoned it, or a program outside
// Berth holds its memory. Such a wait has no end, while another host is idle.
func TestDecide_WaitsForNoGPUThatTakesNothing(t *testing.T) {
	t.Parallel()

	with, without := withDevices(host("with", 8, 64), 1, 16), withDevices(host("without", 8, 64), 1, 16)
	for _, h := range []*berth.Host{&with, &without} {
		h.DiskHeadroomBytes, h.DiskFreeBytes, h.DiskBytes = 2*gib, 100*gib, 200*gib
	}

	with.StoresCheckpoints = true

	request := onGPU("1", 1)
	request.Stored = true

	for name, tt := range map[string]struct {
		change func(h *berth.Host)
		want   string // empty = it waits
	}{
		"a person cordoned its GPU":                  {func(h *berth.Host) { h.Devices[0].CordonedAt = new(time.Now()) }, "GPU-without-0"},
		"its GPU is broken":                          {func(h *berth.Host) { h.Devices[0].Problem = "it fell off the bus; restart the machine" }, "GPU-without-0"},
		"another program holds its GPU":              {func(h *berth.Host) { h.Devices[0].FreeBytes = gib / 2 }, "GPU-without-0"},
		"another program holds the machine's memory": {func(h *berth.Host) { h.MemoryFreeBytes = gib / 2 }, "GPU-without-0"},
		"its MPS daemon is started again":            {func(h *berth.Host) { h.Devices[0].Problem, h.Devices[0].FreeBytes = berth.MPSStarts, 0 }, ""},
		"its driver is not there yet":                {func(h *berth.Host) { h.Devices[0].Problem = berth.NotHandedOut }, ""},
		"a trial holds its GPU": {func(h *berth.Host) {
			h.Devices[0].ReservedBytes, h.Devices[0].Attempts, h.Devices[0].ContextsReserved = 16*gib, 1, 1
		}, ""},
		"Docker restarts, and who holds memory is not known": {func(h *berth.Host) {
			h.State, h.Problem, h.MemoryFreeBytes, h.Devices[0].FreeBytes = berth.HostUnready, "Docker does not answer", 0, 0
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			h := with
			h.Devices = []berth.Device{with.Devices[0]}
			tt.change(&h)

			d := packing.Decide([]berth.Host{h, without}, nil, []packing.Request{request})
			require.Equal(t, tt.want, d[0].Placement.DeviceID, "%q", explained(d[0]))
		})
	}
}
