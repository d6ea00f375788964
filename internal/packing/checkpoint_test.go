package packing_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
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
	request.Fetch = 4 * gib

	for name, tt := range map[string]struct {
		change func(h *berth.Host, r *packing.Request)
		want   string // the host; empty = it waits
	}{
		"the other has room":         {func(*berth.Host, *packing.Request) {}, "with"},
		"it is full":                 {func(h *berth.Host, _ *packing.Request) { h.CPUMilliReserved = 4000 }, ""},
		"its disk is full":           {func(h *berth.Host, _ *packing.Request) { h.DiskFreeBytes = 5 * gib }, ""},
		"its disk can never hold it": {func(h *berth.Host, _ *packing.Request) { h.DiskFreeBytes, h.DiskBytes = 5*gib, 5*gib }, "without"},
		"its worker starts":          {func(h *berth.Host, _ *packing.Request) { h.State, h.Problem = berth.HostUnready, berth.WorkerStarts }, ""},
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
		"it may be where it ran last":          {func(_ *berth.Host, r *packing.Request) { r.Fetched = []string{"without"} }, "without"},
		"nothing is in the store":              {func(_ *berth.Host, r *packing.Request) { r.Fetch = 0 }, "without"},
		"it is about to store it, and full": {func(h *berth.Host, r *packing.Request) {
			h.CPUMilliReserved, r.Fetch, r.Coming, r.Fetched = 4000, 0, true, []string{"with"}
		}, ""},
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

// A checkpoint is fetched to the disk with the files of attempts. That Docker has another one, with
// less free, is nothing to it, as long as that has its headroom.
func TestDecide_ACheckpointNeedsRoomOnTheDiskForFiles(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		docker, files int64 // GiB that are free
		want          string
	}{
		"Docker's is small":   {docker: 3, files: 50, want: "a"},
		"Docker's is full":    {docker: 1, files: 50},
		"that for files is":   {docker: 50, files: 5},
		"both have the room":  {docker: 50, files: 6, want: "a"},
		"an older worker":     {docker: 6, want: "a"},
		"an older one, full":  {docker: 5},
		"an older one, small": {docker: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			h := host("a", 4, 8)
			h.StoresCheckpoints, h.DiskHeadroomBytes, h.DiskFreeBytes, h.DiskBytes, h.FilesFreeBytes = true, 2*gib, tt.docker*gib, 51*gib, tt.files*gib

			if tt.files > 0 {
				h.FilesDiskBytes = 200 * gib
			}

			r := ask("1", 1, 1)
			r.Fetch = 4 * gib
			require.Equal(t, tt.want, packing.Decide([]berth.Host{h}, nil, []packing.Request{r})[0].Placement.HostID)
		})
	}
}

// The disk of a host refused the checkpoint, though bytes are free: a quota, no inodes. The trial waits a
// moment for another host. It tries the only host again, three times, before it starts again on a host
// without a store.
func TestDecide_ADiskThatRefusesACheckpoint(t *testing.T) {
	t.Parallel()

	const b, c, anew = "b", "c", "without"

	many := func(n int) []string { return slices.Repeat([]string{b}, n) }

	for name, tt := range map[string]struct {
		refused, shunned []string
		change           func(hosts []berth.Host) []berth.Host
		want             string // empty = it waits
	}{
		"it never did":                   {want: b},
		"the other has room":             {refused: many(1), shunned: many(1), want: c},
		"the other is full":              {refused: many(1), shunned: many(1), change: func(h []berth.Host) []berth.Host { h[1].CPUMilliReserved = 4000; return h }},
		"a moment ago, it is full":       {refused: many(1), change: func(h []berth.Host) []berth.Host { h[1].CPUMilliReserved = 4000; return h }, want: b},
		"a moment ago, it has room":      {refused: many(1), want: c},
		"the other did neither":          {refused: []string{b, c}, shunned: []string{b, c}, want: b},
		"the other takes nothing":        {refused: many(1), shunned: many(1), change: func(h []berth.Host) []berth.Host { h[1].State = berth.HostLost; return h }, want: b},
		"it is the only one":             {refused: many(2), shunned: many(1), change: func(h []berth.Host) []berth.Host { return h[:1] }, want: b},
		"always, and it is the only one": {refused: many(9), shunned: many(1), change: func(h []berth.Host) []berth.Host { return h[:1] }, want: b},
		"twice, and one has no store":    {refused: many(2), shunned: many(1), change: func(h []berth.Host) []berth.Host { return []berth.Host{h[0], h[2]} }, want: b},
		"always, and one has no store":   {refused: many(3), shunned: many(1), change: func(h []berth.Host) []berth.Host { return []berth.Host{h[0], h[2]} }, want: anew},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			hosts := []berth.Host{host(b, 8, 16), host(c, 4, 8), host(anew, 16, 32)}
			for i := range hosts {
				hosts[i].StoresCheckpoints = hosts[i].ID != anew
				hosts[i].DiskHeadroomBytes, hosts[i].DiskFreeBytes, hosts[i].DiskBytes = 2*gib, 100*gib, 200*gib
			}

			if tt.change != nil {
				hosts = tt.change(hosts)
			}

			r := ask("1", 1, 1)
			r.Fetch, r.Refused, r.Shunned = 4*gib, tt.refused, tt.shunned

			d := packing.Decide(hosts, nil, []packing.Request{r})[0]
			require.Equal(t, tt.want, d.Placement.HostID, "%q", explained(d))

			if tt.want == "" {
				require.Equal(t, "host host-b: its disk did not take the trial's checkpoint; another host may, and Berth tries this one again later", explained(d)[0])
			}
		})
	}
}

// An overdue request keeps free the host with its checkpoint, not a host that it may not use.
func TestDecide_KeepsAHostThatHasAStore(t *testing.T) {
	t.Parallel()

	with, without := host("with", 4, 8), host("without", 4, 8)
	with.StoresCheckpoints, with.CPUMilliReserved, with.MemoryReservedBytes, with.Attempts = true, 4000, 4*gib, 4
	without.CPUMilliReserved, without.MemoryReservedBytes, without.Attempts = 3000, gib, 1

	r := ask("1", 2, 1)
	r.Fetch, r.Waited, r.Asked = 1, packing.DrainAfter, packing.DrainAfter
	with.DiskFreeBytes = gib

	require.Equal(t, "with", packing.Decide([]berth.Host{with, without}, nil, []packing.Request{r})[0].Kept.HostID)
}

// The host with a large disk was removed. No remaining disk could ever hold the checkpoint, even
// when it is empty: the trial ends with the reason once it has waited for another host. It does
// not wait for ever, and its sweep with it.
func TestDecide_WhatNoDiskCanHoldIsImpossible(t *testing.T) {
	t.Parallel()

	small, large := host("small", 8, 64), host("large", 8, 64)
	small.StoresCheckpoints, small.DiskHeadroomBytes, small.DiskFreeBytes, small.DiskBytes = true, 2*gib, 5*gib, 5*gib
	large.StoresCheckpoints, large.DiskHeadroomBytes, large.DiskFreeBytes, large.DiskBytes = true, 2*gib, 3*gib, 50*gib

	request := ask("1", 1, 1)
	request.Fetch = 4 * gib

	why := func(d packing.Decision) string { return packing.Explain(d.Rejections(0)[0]) }

	d := packing.Decide([]berth.Host{small}, nil, []packing.Request{request})[0]
	require.False(t, d.Placed || d.Impossible, "a host with a larger disk may come")
	require.Equal(t, "host host-small: the trial's checkpoint has 4,096 MiB, and of the 5,120 MiB of its disk it keeps 2,048 MiB (--disk-headroom): "+
		"it takes a host with a larger disk, or one without a store (--artifacts), where the trial begins anew", why(d))

	request.Asked = berth.HostGrace
	d = packing.Decide([]berth.Host{small}, nil, []packing.Request{request})[0]
	require.True(t, d.Impossible)
	require.True(t, d.Rejections(0)[0].Never)
	require.Contains(t, why(d), "it takes a host with a larger disk")

	d = packing.Decide([]berth.Host{small, large}, nil, []packing.Request{request})[0]
	require.False(t, d.Placed || d.Impossible, "files may be removed there")
	require.Equal(t, "host host-large: the trial's checkpoint has 4,096 MiB, and of 3,072 MiB of disk that are free it keeps 2,048 MiB: free space there", why(d))

	without := host("without", 8, 64)
	without.State = berth.HostLost
	d = packing.Decide([]berth.Host{small, without}, nil, []packing.Request{request})[0]
	require.False(t, d.Impossible, "it begins anew there, once the host is back")

	request.Fetched = []string{"small"}
	d = packing.Decide([]berth.Host{small}, nil, []packing.Request{request})[0]
	require.True(t, d.Placed, "it has it: nothing is fetched")
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
	request.Fetch = 4 * gib

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
