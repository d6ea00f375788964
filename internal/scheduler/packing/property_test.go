package packing_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

// world is the input of a decision.
type world struct {
	hosts    []berth.Host
	sweeps   map[string]packing.SweepLimit
	requests []packing.Request
}

func (w world) decide() []packing.Decision { return packing.Decide(w.hosts, w.sweeps, w.requests) }

func (w world) copy() world {
	out := world{hosts: slices.Clone(w.hosts), sweeps: map[string]packing.SweepLimit{}, requests: slices.Clone(w.requests)}
	for i := range out.hosts {
		out.hosts[i].Devices = slices.Clone(out.hosts[i].Devices)
		out.hosts[i].MissingImages = slices.Clone(out.hosts[i].MissingImages)
	}

	for i := range out.requests {
		out.requests[i].FailedHosts = slices.Clone(out.requests[i].FailedHosts)
	}

	maps.Copy(out.sweeps, w.sweeps)

	return out
}

func (w world) request(attempt string) packing.Request {
	i := slices.IndexFunc(w.requests, func(r packing.Request) bool { return r.AttemptID == attempt })

	return w.requests[i]
}

// drawWorld draws few small numbers, so that ties and full hosts are common.
func drawWorld(t *rapid.T) world {
	w := world{sweeps: map[string]packing.SweepLimit{
		"free":   {},
		"paused": {Paused: true},
		"limited": {
			MaxParallel: rapid.IntRange(1, 4).Draw(t, "max parallel"), Running: rapid.IntRange(0, 4).Draw(t, "running"),
			Away: rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "away"),
		},
	}}

	for i := range rapid.IntRange(0, 5).Draw(t, "hosts") {
		w.hosts = append(w.hosts, drawHost(t, fmt.Sprintf("h%d", i)))
	}

	for i := range rapid.IntRange(0, 20).Draw(t, "requests") {
		w.requests = append(w.requests, packing.Request{
			AttemptID: fmt.Sprintf("a%02d", i),
			SweepID:   rapid.SampledFrom([]string{"free", "unknown", "limited", "limited", "paused"}).Draw(t, "sweep"),
			Number:    rapid.IntRange(1, 3).Draw(t, "number"),
			Demands:   drawDemands(t),
			Expected:  time.Duration(rapid.IntRange(0, 3).Draw(t, "expected")) * time.Minute,
			Waited:    time.Duration(rapid.IntRange(0, 12).Draw(t, "waited")) * time.Minute,
			Kept:      rapid.SampledFrom([]packing.Place{{}, {HostID: "h0"}, {HostID: "h1"}, {"h0", "GPU-h0-0"}, {HostID: "gone"}}).Draw(t, "kept"),

			FailedHosts: rapid.SampledFrom([][]string{nil, nil, {"h0"}, {"h0", "h1"}, {"gone"}}).Draw(t, "failed"),
			Away:        rapid.IntRange(0, 4).Draw(t, "away") == 0,
		})
	}

	return w
}

func drawHost(t *rapid.T, id string) berth.Host {
	h := host(id, rapid.Int64Range(1, 8).Draw(t, "cores"), rapid.Int64Range(1, 8).Draw(t, "GiB"))
	h.State = rapid.SampledFrom([]berth.HostState{
		berth.HostReady, berth.HostReady, berth.HostReady, berth.HostReady, berth.HostDraining, berth.HostLost, berth.HostFormer,
	}).Draw(t, "state")
	h.Late = rapid.IntRange(0, 5).Draw(t, "late") == 0
	h.FailedStarts = rapid.IntRange(0, 1).Draw(t, "failed starts")
	drawCordon(t, &h)

	h.MemoryHeadroomBytes = gib / 8 * rapid.Int64Range(0, 4).Draw(t, "headroom")
	h.MemoryFreeBytes = min(gib*rapid.Int64Range(0, 16).Draw(t, "free"), h.MemoryBytes)
	h.MemoryReservedBytes = (h.MemoryBytes - h.MemoryHeadroomBytes) / 4 * rapid.SampledFrom([]int64{0, 0, 1, 2, 4}).Draw(t, "reserved")
	h.DiskHeadroomBytes = 2 * gib
	h.DiskFreeBytes = gib * rapid.SampledFrom([]int64{2, 2, 3, 8, 1, 0}).Draw(t, "disk free")
	h.CPUMilliReserved = h.CPUMilli / 4 * rapid.SampledFrom([]int64{0, 0, 1, 2, 4}).Draw(t, "CPU reserved")
	h.Attempts = rapid.IntRange(0, 3).Draw(t, "attempts")
	h.MaxAttempts = rapid.SampledFrom([]int{0, 3, 6}).Draw(t, "max attempts")
	h.Exclusive = h.Attempts == 1 && rapid.Bool().Draw(t, "exclusive")

	h = withDevices(h, rapid.IntRange(0, 3).Draw(t, "devices"), rapid.Int64Range(1, 8).Draw(t, "device GiB"))

	for i := range h.Devices {
		dev := &h.Devices[i]
		dev.Mode = rapid.SampledFrom([]berth.SharingMode{berth.SharingTimeSlicing, berth.SharingMPS, berth.SharingExclusive}).Draw(t, "mode")
		dev.HeadroomBytes = gib / 4 * rapid.Int64Range(0, 2).Draw(t, "device headroom")
		dev.MaxContexts = rapid.IntRange(0, 4).Draw(t, "max contexts")
		dev.MPSContexts = rapid.IntRange(0, 4).Draw(t, "MPS contexts")
		dev.ActivityReserved = rapid.SampledFrom([]int64{0, 0, 400, 1300}).Draw(t, "activity")
		dev.MPSProblem = rapid.SampledFrom([]string{"", "", "its daemon is gone"}).Draw(t, "MPS problem")
		dev.ContextsReserved = rapid.IntRange(0, dev.ContextsBy(dev.Mode)).Draw(t, "contexts")
		dev.Attempts = rapid.IntRange(min(dev.ContextsReserved, 1), dev.ContextsReserved).Draw(t, "device attempts")
		dev.MaxAttempts = rapid.SampledFrom([]int{0, 0, 2, 3}).Draw(t, "max device attempts")
		dev.ReservedBytes = dev.CapacityBytes() / 4 * rapid.SampledFrom([]int64{0, 0, 1, 2, 4}).Draw(t, "device reserved")
		dev.FreeBytes = gib * rapid.Int64Range(0, 8).Draw(t, "device free")
		dev.Exclusive = dev.Attempts == 1 && rapid.Bool().Draw(t, "device exclusive")
		dev.Problem = rapid.SampledFrom([]string{"", "", "", "it fell off the bus"}).Draw(t, "device problem")

		if rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, "device cordoned") {
			dev.CordonedAt, dev.CordonReason = new(time.Unix(0, 0)), "it is loud"
		}
	}

	return h
}

// drawCordon draws a host that fails starts, or lacks the images of sweeps.
func drawCordon(t *rapid.T, h *berth.Host) {
	if rapid.IntRange(0, 5).Draw(t, "cordoned") == 0 {
		h.CordonedAt, h.CordonReason = new(time.Unix(0, 0)), "runc: no"
		h.CordonSweep = rapid.SampledFrom([]string{"", "free", "limited"}).Draw(t, "cordoned for")
		h.TestDue = rapid.Bool().Draw(t, "test due")
	}

	for _, sweep := range []string{"free", "limited"} {
		if rapid.IntRange(0, 4).Draw(t, "image missing") == 0 {
			cordoned := rapid.Bool().Draw(t, "cordoned")
			h.MissingImages = append(h.MissingImages, berth.MissingImage{
				SweepID: sweep, Reason: "no image", Cordoned: cordoned, TestDue: cordoned && rapid.Bool().Draw(t, "image test due"),
			})
		}
	}
}

// drawDemands draws a request's demands, on one class of device or several.
func drawDemands(t *rapid.T) berth.Demands {
	demands := berth.Demands{}
	classes := [][]berth.DeviceClass{{berth.ClassCPU}, {berth.ClassCPU}, {model, model + " (MPS)"}, {model + " (MPS)"}, {berth.ClassCPU, model}, {"another"}}

	for _, class := range rapid.SampledFrom(classes).Draw(t, "classes") {
		d := berth.Demand{
			MemoryBytes: gib / 4 * rapid.Int64Range(1, 12).Draw(t, "memory"),
			CPUMilli:    250 * rapid.Int64Range(1, 12).Draw(t, "CPU"),
			Exclusive:   rapid.IntRange(0, 4).Draw(t, "exclusive") == 0,
		}

		if class != berth.ClassCPU {
			d.DeviceActivity = rapid.SampledFrom([]int64{0, 20, 300, 600, 1000}).Draw(t, "needs activity")
			d.DeviceBytes = gib / 4 * rapid.Int64Range(1, 12).Draw(t, "device bytes")
			d.Contexts = rapid.IntRange(0, 3).Draw(t, "contexts")
			d.ExclusiveDevice = rapid.IntRange(0, 4).Draw(t, "device exclusive") == 0
		}

		demands[class] = d
	}

	return demands
}

// book applies placements the way the database does.
func book(t require.TestingT, w world, decisions []packing.Decision) []berth.Host {
	hosts := w.copy().hosts

	for _, d := range decisions {
		if !d.Placed {
			continue
		}

		demand, asked := d.Placement.Demand, w.request(d.AttemptID).Demands
		require.Contains(t, asked, d.Placement.Class, "it can use the class")
		require.True(t, demand.MemoryBytes == asked[d.Placement.Class].MemoryBytes || demand.Exclusive && demand.MemoryBytes > asked[d.Placement.Class].MemoryBytes)

		i := slices.IndexFunc(hosts, func(h berth.Host) bool { return h.ID == d.Placement.HostID })
		require.GreaterOrEqual(t, i, 0, "the host is one of those given")

		h := &hosts[i]
		h.MemoryReservedBytes += demand.MemoryBytes
		h.CPUMilliReserved += demand.CPUMilli
		h.Attempts++

		require.Equal(t, berth.HostReady, h.State)
		test(t, h, w.request(d.AttemptID).SweepID)
		require.False(t, h.Exclusive, "nothing joins an exclusive attempt")
		require.False(t, demand.Exclusive && h.Attempts > 1, "an exclusive attempt joins nothing")

		h.Exclusive = demand.Exclusive

		if d.Placement.DeviceID == "" {
			require.Equal(t, berth.ClassCPU, d.Placement.Class)

			continue
		}

		j := slices.IndexFunc(h.Devices, func(dev berth.Device) bool { return dev.ID == d.Placement.DeviceID })
		require.GreaterOrEqual(t, j, 0, "the device is one of the host")

		dev := &h.Devices[j]
		mode := d.Placement.Class.Mode()
		require.True(t, dev.Attempts == 0 || dev.Class() == d.Placement.Class, "attempts of one GPU share it in one mode")
		require.True(t, mode != berth.SharingMPS || dev.MPSContexts > 0 && dev.MPSProblem == "", "by MPS where there is a daemon")
		require.True(t, mode != berth.SharingMPS || dev.Mode != berth.SharingExclusive)

		require.Empty(t, dev.Problem)
		require.Nil(t, dev.CordonedAt)
		require.False(t, dev.Exclusive)
		require.False(t, demand.ExclusiveDevice && dev.Attempts > 0)

		require.True(t, dev.Attempts == 0 || dev.ActivityReserved+demand.DeviceActivity <= 2000-min(demand.DeviceActivity, dev.ActivityReserved), "a full GPU takes no company")

		dev.ActivityReserved += demand.DeviceActivity
		dev.ReservedBytes += demand.DeviceBytes
		dev.ContextsReserved += max(demand.Contexts, 1)
		dev.Attempts++
		if dev.Mode != berth.SharingExclusive {
			dev.Mode = mode
		}

		dev.Exclusive = demand.ExclusiveDevice
	}

	return hosts
}

// test uses up the host's test attempt, where it takes no others of the sweep.
func test(t require.TestingT, h *berth.Host, sweep string) {
	if h.FailsStartsOf(sweep) {
		require.True(t, h.TestDue, "a cordoned host takes its test attempt only")
		h.TestDue = false
	}

	if m := h.Missing(sweep); m != nil {
		require.True(t, !m.Cordoned || m.TestDue, "a host without the image takes the test attempt of the sweep only")
		m.TestDue = false
	}
}

// What holds for every decision: no host is over its capacity, each request has one answer,
// which is true, a sweep keeps its limits, and nothing that fits is left.
func TestDecide_Properties(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		decisions := w.decide()
		after := book(t, w, decisions)

		requireCapacity(t, w, after)
		requireAnswers(t, w, decisions, after)
		requireLimits(t, w, decisions)
		requireNothingFits(t, w, decisions, after)
	})
}

func requireCapacity(t *rapid.T, w world, after []berth.Host) {
	for i, h := range after {
		if h.Attempts == w.hosts[i].Attempts {
			continue // nothing of ours came to it
		}

		require.LessOrEqual(t, h.MemoryReservedBytes, h.MemoryBytes-h.MemoryHeadroomBytes)
		require.LessOrEqual(t, h.MemoryReservedBytes, h.MemoryFreeBytes)
		require.LessOrEqual(t, h.CPUMilliReserved, h.CPUMilli)
		require.GreaterOrEqual(t, h.DiskFreeBytes, h.DiskHeadroomBytes)
		require.True(t, h.MaxAttempts == 0 || h.Attempts <= h.MaxAttempts)

		for j, dev := range h.Devices {
			if dev.Attempts == w.hosts[i].Devices[j].Attempts {
				continue
			}

			require.True(t, dev.Limit() == 0 || dev.Attempts <= dev.Limit())

			require.LessOrEqual(t, dev.ReservedBytes, dev.CapacityBytes())
			require.LessOrEqual(t, dev.ReservedBytes, dev.FreeBytes)
			require.LessOrEqual(t, dev.ContextsReserved, dev.ContextsBy(dev.Mode))
		}
	}
}

func TestDecide_IsPureAndIndependentOfOrder(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		before := w.copy()
		decisions := w.decide()

		require.Equal(t, before, w.copy(), "the arguments are as they were")
		require.Equal(t, facts(decisions), facts(w.decide()), "again gives the same")

		shuffled := w.copy()
		shuffled.hosts = rapid.Permutation(shuffled.hosts).Draw(t, "hosts shuffled")
		shuffled.requests = rapid.Permutation(shuffled.requests).Draw(t, "requests shuffled")

		for i := range shuffled.hosts {
			slices.Reverse(shuffled.hosts[i].Devices)
			slices.Reverse(shuffled.hosts[i].MissingImages)
		}

		require.Equal(t, facts(decisions), facts(shuffled.decide()))
	})
}

// fact is all that a decision says.
type fact struct {
	attempt    string
	placement  berth.Placement
	rejections []berth.Rejection
	impossible bool
	kept       packing.Place
}

func facts(decisions []packing.Decision) []fact {
	out := make([]fact, len(decisions))
	for i, d := range decisions {
		out[i] = fact{d.AttemptID, d.Placement, d.Rejections(0), d.Impossible, d.Kept}
	}

	return out
}

func requireAnswers(t *rapid.T, w world, decisions []packing.Decision, after []berth.Host) {
	answered := map[string]bool{}

	for _, d := range decisions {
		require.False(t, answered[d.AttemptID])
		answered[d.AttemptID] = true

		rejections := d.Rejections(0)
		require.Equal(t, d.Placed, len(rejections) == 0)
		require.LessOrEqual(t, len(d.Rejections(2)), 2)

		request := w.request(d.AttemptID)
		hosts := slices.DeleteFunc(slices.Clone(w.hosts), func(h berth.Host) bool { return h.State == berth.HostFormer })
		could := slices.ContainsFunc(w.hosts, func(h berth.Host) bool { return holds(h, request) })
		require.Equal(t, len(hosts) > 0 && !could && offers(w.hosts, request) && !d.Limited(), d.Impossible)

		said := map[string]bool{}

		for _, r := range rejections {
			require.NotEmpty(t, packing.Explain(r))

			if r.HostID == "" {
				continue
			}

			i := slices.IndexFunc(after, func(h berth.Host) bool { return h.ID == r.HostID })
			if after[i].State == berth.HostFormer {
				require.False(t, r.Never)
				require.Contains(t, r.Reason, "the trial waits until")

				continue
			}

			said[r.HostID] = true
			requireTruth(t, r, after[i], request)
		}

		require.True(t, d.Placed || d.Rejections(1)[0].Dimension == berth.DimensionSweep || len(said) == len(hosts), "each host says why not")
	}

	require.Len(t, answered, len(w.requests))
}

// requireTruth checks the rejection of a request against the host at the end of
// the round. The tests with tables show each text.
func requireTruth(t *rapid.T, r berth.Rejection, h berth.Host, request packing.Request) {
	var dev berth.Device

	there := h

	if r.DeviceID != "" {
		dev = h.Devices[slices.IndexFunc(h.Devices, func(dev berth.Device) bool { return dev.ID == r.DeviceID })]
		demands := berth.Demands{}

		for _, mode := range dev.Modes() {
			if d, ok := request.Demands[dev.ClassBy(mode)]; ok {
				demands[dev.ClassBy(mode)] = d
			}
		}

		require.NotEmpty(t, demands, "a GPU that it cannot use says nothing")

		request.Demands = demands
		there.Devices = []berth.Device{dev}
	}

	if len(there.Devices) == 1 && r.DeviceID != "" || len(request.Demands) == 1 && len(there.Devices) <= 1 {
		require.Equal(t, !holds(there, request), r.Never, "never = not even on the empty host")
	}

	if r.Dimension != berth.DimensionState && r.Dimension != berth.DimensionExclusive {
		require.Greater(t, r.Needed, r.Free)
		require.GreaterOrEqual(t, r.Free, int64(0))
	}
}

// holds reports whether a request fits the host when nothing is on it.
func holds(h berth.Host, r packing.Request) bool {
	alone := world{hosts: []berth.Host{empty(h)}, requests: []packing.Request{{AttemptID: "a", Demands: r.Demands}}}

	return alone.decide()[0].Placed
}

// offers reports whether a host has a class that the request can use.
func offers(hosts []berth.Host, r packing.Request) bool {
	if _, ok := r.Demands[berth.ClassCPU]; ok {
		return true
	}

	return slices.ContainsFunc(hosts, func(h berth.Host) bool {
		return slices.ContainsFunc(h.Devices, func(dev berth.Device) bool {
			return slices.ContainsFunc(dev.Modes(), func(mode berth.SharingMode) bool {
				_, ok := r.Demands[dev.ClassBy(mode)]

				return ok
			})
		})
	})
}

// empty is a host that nothing uses.
func empty(h berth.Host) berth.Host {
	h.CordonedAt, h.MissingImages = nil, nil
	h.State, h.Exclusive, h.Attempts, h.MemoryReservedBytes, h.CPUMilliReserved = berth.HostReady, false, 0, 0, 0
	h.MemoryFreeBytes, h.DiskFreeBytes = h.MemoryBytes, h.DiskHeadroomBytes
	h.Devices = slices.Clone(h.Devices)

	for i := range h.Devices {
		dev := &h.Devices[i]
		dev.ReservedBytes, dev.ContextsReserved, dev.Attempts, dev.FreeBytes, dev.Exclusive, dev.ActivityReserved = 0, 0, 0, dev.MemoryBytes, false, 0
		dev.Problem, dev.MPSProblem, dev.CordonedAt = "", "", nil
	}

	return h
}

func requireLimits(t *rapid.T, w world, decisions []packing.Decision) {
	running, away := map[string]int{}, map[string]int{}

	for id, limit := range w.sweeps {
		running[id] = limit.Running
	}

	for _, d := range decisions {
		r := w.request(d.AttemptID)
		sweep := r.SweepID

		if !d.Placed {
			continue
		}

		running[sweep]++

		if r.Away {
			away[sweep]++
		}

		require.NotEqual(t, "paused", sweep)
		require.True(t, sweep != "limited" || running[sweep] <= w.sweeps[sweep].MaxParallel)
		require.True(t, sweep != "limited" || r.Away || running[sweep]+max(w.sweeps[sweep].Away-away[sweep], 0) <= w.sweeps[sweep].MaxParallel,
			"the places of what is away are for the retries")
	}
}

// avoids reports whether a trial stays away from a host where it failed and its
// image is missing: another one, that takes its attempts, may hold it.
func avoids(w world, r packing.Request, h berth.Host) bool {
	m := h.Missing(r.SweepID)

	return m != nil && !m.Cordoned && slices.Contains(r.FailedHosts, h.ID) && slices.ContainsFunc(w.hosts, func(other berth.Host) bool {
		return other.State == berth.HostReady && other.Missing(r.SweepID) == nil && !other.CordonedFor(r.SweepID) && holds(other, r)
	})
}

// waitsFor is a request's demand on a GPU kept free for it.
func waitsFor(h berth.Host, dev berth.Device, r packing.Request) (own berth.Demand) {
	h.Devices = []berth.Device{dev}

	for _, mode := range slices.Backward(dev.Modes()) {
		class := dev.ClassBy(mode)

		d, ok := r.Demands[class]
		if ok && holds(h, packing.Request{Demands: berth.Demands{class: d}}) && (own.MemoryBytes == 0 || dev.Attempts == 0 || mode == dev.Mode) {
			own = d
		}
	}

	return own
}

// requireNothingFits checks that a request which is not placed fits nowhere at the end,
// unless its sweep or a kept host forbids it (backfill).
func requireNothingFits(t *rapid.T, w world, decisions []packing.Decision, after []berth.Host) {
	closed := map[string]bool{}

	for _, d := range decisions {
		if d.Kept.DeviceID == "" {
			closed[d.Kept.HostID] = true

			continue
		}

		// The GPU is closed, and the host keeps room beside it.
		h := &after[slices.IndexFunc(after, func(h berth.Host) bool { return h.ID == d.Kept.HostID })]
		dev := &h.Devices[slices.IndexFunc(h.Devices, func(dev berth.Device) bool { return dev.ID == d.Kept.DeviceID })]
		own := waitsFor(*h, *dev, w.request(d.AttemptID))
		dev.Problem = "kept"
		h.MemoryReservedBytes += own.MemoryBytes
		h.CPUMilliReserved += own.CPUMilli
		h.Attempts++
		h.Exclusive = h.Exclusive || own.Exclusive
	}

	open := slices.DeleteFunc(after, func(h berth.Host) bool { return closed[h.ID] })

	for _, d := range decisions {
		if d.Placed || d.Rejections(1)[0].Dimension == berth.DimensionSweep {
			continue
		}

		r := w.request(d.AttemptID)
		again := world{hosts: slices.DeleteFunc(slices.Clone(open), func(h berth.Host) bool { return avoids(w, r, h) }), requests: []packing.Request{r}}
		require.False(t, again.decide()[0].Placed, "%s would fit", d.AttemptID)
	}
}
