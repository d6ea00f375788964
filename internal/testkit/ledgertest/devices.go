package ledgertest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// gpu is an idle GPU of 9 GiB, with 1 GiB kept free.
func gpu(id string) berth.Device {
	return berth.Device{
		ID: id, Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MemoryBytes: 9 * gib, HeadroomBytes: gib, FreeBytes: 8 * gib, MaxContexts: 3,
	}
}

// onGPU makes a request, and a placement of it on a GPU with this much memory.
func (b *bench) onGPU(t *testing.T, id string, memory int64) (berth.PlacementRequest, map[string]berth.Placement) {
	t.Helper()

	r := b.ask(t, 1)
	r.Demand.DeviceBytes, r.Demand.Contexts = memory*gib, 1

	return r, map[string]berth.Placement{r.AttemptID: {HostID: b.host.ID, DeviceID: id, Class: "NVIDIA H200", Demand: r.Demand}}
}

func (b *bench) devices(t *testing.T) []berth.Device {
	t.Helper()

	hosts, err := b.ListHosts(t.Context())
	require.NoError(t, err)

	for _, h := range hosts {
		if h.ID == b.host.ID {
			return h.Devices
		}
	}

	require.Fail(t, "the host is not there")

	return nil
}

// A host's GPUs are the ones its worker found; each holds its leases' memory.
func testDevices(t *testing.T, b *bench) {
	ctx := t.Context()
	one, two := uuid.NewString(), uuid.NewString()
	b.host.Devices = []berth.Device{gpu(one), gpu(two)}
	b.host.Devices[1].Profile, b.host.Devices[1].Mode, b.host.Devices[1].MaxAttempts = "1g.18gb", berth.SharingExclusive, 4
	require.NoError(t, b.RegisterHost(ctx, b.host, "test"))

	named := func(id string) berth.Device {
		t.Helper()

		for _, d := range b.devices(t) {
			if d.ID == id {
				return d
			}
		}

		return berth.Device{}
	}
	want := b.host.Devices[1]
	want.HostID = b.host.ID
	require.Equal(t, want, named(two))
	require.Len(t, b.devices(t), 2)

	first, there := b.onGPU(t, one, 6)
	placed, err := b.Place(ctx, there)
	require.NoError(t, err)
	require.Equal(t, []string{first.AttemptID}, placed)

	a := b.attempt(t, first.AttemptID)
	require.Equal(t, one, a.DeviceID)
	require.Equal(t, berth.DeviceClass("NVIDIA H200"), a.Class)
	require.Equal(t, first.Demand, a.Demand)
	require.Equal(t, int64(6*gib), named(one).ReservedBytes)
	require.Equal(t, []int{1, 1}, []int{named(one).ContextsReserved, named(one).Attempts})
	require.Zero(t, named(two).Attempts)

	second, there := b.onGPU(t, one, 3)
	_, err = b.Place(ctx, there)
	require.Equal(t, berth.KindExhausted, berth.KindOf(err), "%v", err)

	there[second.AttemptID] = berth.Placement{HostID: b.host.ID, DeviceID: two, Class: "NVIDIA H200 1g.18gb", Demand: berth.Demand{
		MemoryBytes: gib, CPUMilli: 500, DeviceBytes: 3 * gib, Contexts: 2, ExclusiveDevice: true, DeviceActivity: 640, SpillBytes: gib / 2,
	}}
	_, err = b.Place(ctx, there)
	require.NoError(t, err)
	require.Equal(t, int64(gib/2), b.attempt(t, second.AttemptID).Demand.SpillBytes)

	who, err := b.Assignee(ctx, second.AttemptID)
	require.NoError(t, err)
	require.Equal(t, int64(gib/2), who.Attempt.Demand.SpillBytes)
	require.Equal(t, int64(9*gib), who.CardBytes)
	require.True(t, named(two).Exclusive)
	require.Equal(t, 2, named(two).ContextsReserved)
	require.Equal(t, int64(640), named(two).ActivityReserved)

	require.NoError(t, b.TouchHost(ctx, b.host.ID, berth.HostFree{MemoryBytes: gib, Devices: []berth.DeviceFree{
		{ID: one, FreeBytes: 5 * gib}, {ID: two, FreeBytes: 7 * gib, Problem: "it fell off the bus", MPSProblem: "its daemon is gone"}, {ID: "of another", Problem: "no"},
	}}, nil))
	require.Equal(t, int64(5*gib), named(one).FreeBytes)
	require.Empty(t, named(one).Problem)
	require.Equal(t, "it fell off the bus", named(two).Problem)
	require.Equal(t, "its daemon is gone", named(two).MPSProblem)

	// A worker that finds only one of them again, and less of it.
	b.host.Devices = []berth.Device{gpu(one)}
	b.host.Devices[0].HeadroomBytes, b.host.Devices[0].FreeBytes = 5*gib, 4*gib
	require.NoError(t, b.RegisterHost(ctx, b.host, "test"))
	require.Equal(t, int64(6*gib), named(one).ReservedBytes, "what is held stays booked")
	require.Equal(t, berth.NotHandedOut, named(two).Problem)

	for _, id := range []string{first.AttemptID, second.AttemptID} {
		require.NoError(t, b.AbandonAttempt(ctx, id, "host lost"))
		require.NoError(t, b.ReleaseLease(ctx, id, "no container"))
	}

	require.Zero(t, named(one).ReservedBytes)
	require.Zero(t, named(one).ContextsReserved)
	require.Equal(t, berth.NotHandedOut, named(two).Problem, "it may come back: what needs one waits")

	b.Pass(t, berth.HostGrace+time.Second)
	require.Len(t, b.devices(t), 1, "nothing of the other is left")

	b.host.Devices = []berth.Device{gpu(one), gpu(two)}
	require.NoError(t, b.RegisterHost(ctx, b.host, "test"))
	require.Empty(t, named(two).Problem)
	require.Empty(t, named(two).MPSProblem)
}

// How the attempts on a GPU share it is decided with the placement of the first,
// and stays when its worker starts again.
func testDeviceModes(t *testing.T, b *bench) {
	ctx := t.Context()
	id, alone := uuid.NewString(), uuid.NewString()
	b.host.Devices = []berth.Device{gpu(id), gpu(alone)}
	b.host.Devices[0].MPSContexts, b.host.Devices[1].Mode = 2, berth.SharingExclusive
	require.NoError(t, b.RegisterHost(ctx, b.host, "test"))

	device := func(id string) berth.Device {
		t.Helper()

		devices := b.devices(t)

		return devices[slices.IndexFunc(devices, func(d berth.Device) bool { return d.ID == id })]
	}
	place := func(id string, class berth.DeviceClass) berth.PlacementRequest {
		t.Helper()

		r, there := b.onGPU(t, id, 1)
		p := there[r.AttemptID]
		p.Class = class
		there[r.AttemptID] = p
		_, err := b.Place(ctx, there)
		require.NoError(t, err)

		return r
	}

	require.Equal(t, 2, device(id).MPSContexts)

	first := place(id, "NVIDIA H200 (MPS)")
	require.Equal(t, berth.SharingMPS, device(id).Mode)
	require.Equal(t, berth.DeviceClass("NVIDIA H200 (MPS)"), b.attempt(t, first.AttemptID).Class)

	require.NoError(t, b.RegisterHost(ctx, b.host, "test"))
	require.Equal(t, berth.SharingMPS, device(id).Mode, "its attempt is there")

	b.host.Devices[0].MPSContexts = 0
	require.NoError(t, b.RegisterHost(ctx, b.host, "test"))
	require.Equal(t, berth.SharingMPS, device(id).Mode)
	require.Zero(t, device(id).MPSContexts, "it takes no more of them")

	for _, mode := range []berth.SharingMode{berth.SharingExclusive, berth.SharingTimeSlicing} {
		b.host.Devices[0].Mode = mode
		require.NoError(t, b.RegisterHost(ctx, b.host, "test"))
		require.Equal(t, berth.SharingMPS, device(id).Mode, "no others join it")
	}

	require.NoError(t, b.AbandonAttempt(ctx, first.AttemptID, "host lost"))
	require.NoError(t, b.ReleaseLease(ctx, first.AttemptID, "no container"))
	require.NoError(t, b.RegisterHost(ctx, b.host, "test"))
	require.Equal(t, berth.SharingTimeSlicing, device(id).Mode)

	place(alone, "NVIDIA H200")
	require.Equal(t, berth.SharingExclusive, device(alone).Mode, "as a person wants it")

	// The worker comes back with other settings, while attempts run.
	place(id, "NVIDIA H200")
	b.host.Devices[0].Mode, b.host.Devices[1].Mode = berth.SharingExclusive, berth.SharingTimeSlicing
	require.NoError(t, b.RegisterHost(ctx, b.host, "test"))
	require.Equal(t, berth.SharingExclusive, device(id).Mode, "it takes no other now")
	require.Equal(t, berth.SharingTimeSlicing, device(alone).Mode, "one that was alone shares by time slices")
}

// A GPU is one host's: of two that register it the second is refused, as long
// as the first is served, or holds something there.
func testDeviceMoves(t *testing.T, b *bench) {
	ctx := t.Context()
	id := uuid.NewString()
	b.host.Devices = []berth.Device{gpu(id)}
	require.NoError(t, b.RegisterHost(ctx, b.host, "test"))

	r, there := b.onGPU(t, id, 1)
	_, err := b.Place(ctx, there)
	require.NoError(t, err)

	other := b.host
	other.ID, other.Name, other.Devices = uuid.NewString(), "b", []berth.Device{gpu(id)}
	require.Equal(t, berth.KindConflict, berth.KindOf(b.RegisterHost(ctx, other, "test")), "its worker answers")

	b.Pass(t, berth.HostLostAfter+time.Second)
	require.Equal(t, berth.KindConflict, berth.KindOf(b.RegisterHost(ctx, other, "test")), "a trial may still run there")

	require.NoError(t, b.AbandonAttempt(ctx, r.AttemptID, "host lost"))
	require.NoError(t, b.ReleaseLease(ctx, r.AttemptID, "the host was restarted"))
	require.NoError(t, b.RegisterHost(ctx, other, "test"))
	require.Empty(t, b.devices(t), "it is there now")

	b.host = other
	require.Len(t, b.devices(t), 1)
}
