package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// small is an idle GPU of 9 GiB, with 1 GiB kept free, without MPS.
func small(id string) berth.Device {
	dev := gpu(id)
	dev.MemoryBytes, dev.HeadroomBytes, dev.FreeBytes, dev.MaxContexts, dev.MPSContexts = 9*gib, gib, 8*gib, 3, 0

	return dev
}

// askGPU makes a request, and a placement of it on a GPU with this much memory.
func (b *bundle) askGPU(t *testing.T, id string, memory int64) (berth.PlacementRequest, map[string]berth.Placement) {
	t.Helper()

	r := b.request(t, gib)
	r.Demand.DeviceBytes, r.Demand.Contexts = memory*gib, 1

	return r, map[string]berth.Placement{r.AttemptID: {HostID: b.host.ID, DeviceID: id, Class: h200, Demand: r.Demand}}
}

// device is a GPU of the bundle's host, as the ledger has it; zero = it has none.
func (b *bundle) device(t *testing.T, id string) berth.Device {
	t.Helper()

	hosts, err := b.store.ListHosts(t.Context())
	require.NoError(t, err)

	for _, h := range hosts {
		for _, d := range h.Devices {
			if d.ID == id && h.ID == b.host.ID {
				return d
			}
		}
	}

	return berth.Device{}
}

// lost ends an attempt whose host was lost, and frees its place.
func (b *bundle) lost(t *testing.T, attemptID string) {
	t.Helper()
	require.NoError(t, b.store.AbandonAttempt(t.Context(), attemptID, "host lost"))
	require.NoError(t, b.store.ReleaseLease(t.Context(), attemptID, "no container"))
}

// A round decides on the state at its beginning. A GPU that a person has cordoned
// since takes no attempt of the round; other attempts are placed.
func TestPlace_ACordonedGPU(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ctx := t.Context()
	one, two := "GPU-1", "GPU-2"
	b.host.Devices = []berth.Device{small(one), small(two)}
	b.register(t)

	_, there := b.askGPU(t, one, 1)
	second, beside := b.askGPU(t, two, 1)
	third := b.request(t, gib)
	there[second.AttemptID], there[third.AttemptID] = beside[second.AttemptID], berth.Placement{HostID: b.host.ID, Class: berth.ClassCPU, Demand: third.Demand}

	require.NoError(t, b.store.CordonDevice(ctx, one, "its fan is loud"))
	b.register(t) // a cordon outlives the worker

	placed, err := b.store.Place(ctx, there)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{second.AttemptID, third.AttemptID}, placed)
	require.Equal(t, 2, b.first(t).Attempts)

	require.NoError(t, b.store.ReadyDevice(ctx, one))

	placed, err = b.store.Place(ctx, there)
	require.NoError(t, err)
	require.Len(t, placed, 1, "it waited, and has its place now")
}

// The same for a host that a person drains.
func TestPlace_ADrainedHost(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ctx := t.Context()
	r := b.request(t, gib)

	require.NoError(t, b.store.SetHostState(ctx, b.host.ID, berth.HostDraining))

	placed, err := b.store.Place(ctx, map[string]berth.Placement{r.AttemptID: {HostID: b.host.ID, Class: berth.ClassCPU, Demand: r.Demand}})
	require.NoError(t, err)
	require.Empty(t, placed)
	require.Zero(t, b.first(t).Attempts)

	require.Equal(t, berth.RequestWaiting, b.status(t, r))

	require.NoError(t, b.store.SetHostState(ctx, b.host.ID, berth.HostReady))
	b.place(t, r)
}

// A host's GPUs are the ones its worker found; each holds its leases' memory.
func TestRegisterHost_GPUs(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ctx := t.Context()
	one, two := "GPU-1", "GPU-2"
	b.host.Devices = []berth.Device{small(one), small(two)}
	b.host.Devices[1].Profile, b.host.Devices[1].Mode, b.host.Devices[1].MaxAttempts = "1g.18gb", berth.SharingExclusive, 4
	b.register(t)

	want := b.host.Devices[1]
	want.HostID = b.host.ID
	require.Equal(t, want, b.device(t, two))
	require.Len(t, b.first(t).Devices, 2)

	first, there := b.askGPU(t, one, 6)
	placed, err := b.store.Place(ctx, there)
	require.NoError(t, err)
	require.Equal(t, []string{first.AttemptID}, placed)

	a := b.attempt(t, first.AttemptID)
	require.Equal(t, one, a.DeviceID)
	require.Equal(t, berth.DeviceClass(h200), a.Class)
	require.Equal(t, first.Demand, a.Demand)
	require.Equal(t, int64(6*gib), b.device(t, one).ReservedBytes)
	require.Equal(t, []int{1, 1}, []int{b.device(t, one).ContextsReserved, b.device(t, one).Attempts})
	require.Zero(t, b.device(t, two).Attempts)

	second, there := b.askGPU(t, one, 3)
	_, err = b.store.Place(ctx, there)
	require.Equal(t, berth.KindExhausted, berth.KindOf(err), "%v", err)

	there[second.AttemptID] = berth.Placement{HostID: b.host.ID, DeviceID: two, Class: h200 + " 1g.18gb", Demand: berth.Demand{
		MemoryBytes: gib, CPUMilli: 500, DeviceBytes: 3 * gib, Contexts: 2, ExclusiveDevice: true, DeviceActivity: 640, SpillBytes: gib / 2,
	}}
	_, err = b.store.Place(ctx, there)
	require.NoError(t, err)
	require.Equal(t, int64(gib/2), b.attempt(t, second.AttemptID).Demand.SpillBytes)

	who, err := b.store.Assignee(ctx, second.AttemptID)
	require.NoError(t, err)
	require.Equal(t, int64(gib/2), who.Attempt.Demand.SpillBytes)
	require.Equal(t, int64(9*gib), who.CardBytes)
	require.True(t, b.device(t, two).Exclusive)
	require.Equal(t, 2, b.device(t, two).ContextsReserved)
	require.Equal(t, int64(640), b.device(t, two).ActivityReserved)

	require.NoError(t, b.store.TouchHost(ctx, b.host.ID, berth.HostFree{MemoryBytes: gib, Devices: []berth.DeviceFree{
		{ID: one, FreeBytes: 5 * gib}, {ID: two, FreeBytes: 7 * gib, Problem: "it fell off the bus", MPSProblem: "its daemon is gone"}, {ID: "of another", Problem: "no"},
	}}, nil))
	require.Equal(t, int64(5*gib), b.device(t, one).FreeBytes)
	require.Empty(t, b.device(t, one).Problem)
	require.Equal(t, "it fell off the bus", b.device(t, two).Problem)
	require.Equal(t, "its daemon is gone", b.device(t, two).MPSProblem)

	// A worker that finds only one of them again, and less of it.
	b.host.Devices = []berth.Device{small(one)}
	b.host.Devices[0].HeadroomBytes, b.host.Devices[0].FreeBytes = 5*gib, 4*gib
	b.register(t)
	require.Equal(t, int64(6*gib), b.device(t, one).ReservedBytes, "what is held stays booked")
	require.Equal(t, berth.NotHandedOut, b.device(t, two).Problem)

	b.lost(t, first.AttemptID)
	b.lost(t, second.AttemptID)

	require.Zero(t, b.device(t, one).ReservedBytes)
	require.Zero(t, b.device(t, one).ContextsReserved)
	require.Equal(t, berth.NotHandedOut, b.device(t, two).Problem, "it may come back: what needs one waits")

	b.pass(t, berth.HostGrace+time.Second)
	require.Len(t, b.first(t).Devices, 1, "nothing of the other is left")

	b.host.Devices = []berth.Device{small(one), small(two)}
	b.register(t)
	require.Empty(t, b.device(t, two).Problem)
	require.Empty(t, b.device(t, two).MPSProblem)
}

// How the attempts on a GPU share it is decided with the placement of the first,
// and stays when its worker starts again.
func TestRegisterHost_KeepsTheModeOfAGPU(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ctx := t.Context()
	id, alone := "GPU-1", "GPU-2"
	b.host.Devices = []berth.Device{small(id), small(alone)}
	b.host.Devices[0].MPSContexts, b.host.Devices[1].Mode = 2, berth.SharingExclusive
	b.register(t)

	place := func(id string, class berth.DeviceClass) berth.PlacementRequest {
		t.Helper()

		r, there := b.askGPU(t, id, 1)
		p := there[r.AttemptID]
		p.Class = class
		there[r.AttemptID] = p
		_, err := b.store.Place(ctx, there)
		require.NoError(t, err)

		return r
	}

	require.Equal(t, 2, b.device(t, id).MPSContexts)

	first := place(id, h200+" (MPS)")
	require.Equal(t, berth.SharingMPS, b.device(t, id).Mode)
	require.Equal(t, berth.DeviceClass(h200+" (MPS)"), b.attempt(t, first.AttemptID).Class)

	b.register(t)
	require.Equal(t, berth.SharingMPS, b.device(t, id).Mode, "its attempt is there")

	b.host.Devices[0].MPSContexts = 0
	b.register(t)
	require.Equal(t, berth.SharingMPS, b.device(t, id).Mode)
	require.Zero(t, b.device(t, id).MPSContexts, "it takes no more of them")

	for _, mode := range []berth.SharingMode{berth.SharingExclusive, berth.SharingTimeSlicing} {
		b.host.Devices[0].Mode = mode
		b.register(t)
		require.Equal(t, berth.SharingMPS, b.device(t, id).Mode, "no others join it")
	}

	b.lost(t, first.AttemptID)
	b.register(t)
	require.Equal(t, berth.SharingTimeSlicing, b.device(t, id).Mode)

	place(alone, h200)
	require.Equal(t, berth.SharingExclusive, b.device(t, alone).Mode, "as a person wants it")

	// The worker comes back with other settings, while attempts run.
	place(id, h200)
	b.host.Devices[0].Mode, b.host.Devices[1].Mode = berth.SharingExclusive, berth.SharingTimeSlicing
	b.register(t)
	require.Equal(t, berth.SharingExclusive, b.device(t, id).Mode, "it takes no other now")
	require.Equal(t, berth.SharingTimeSlicing, b.device(t, alone).Mode, "one that was alone shares by time slices")
}

// A GPU is one host's: of two that register it the second is refused, as long
// as the first is served, or holds something there.
func TestRegisterHost_AGPUMoves(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ctx := t.Context()
	id := "GPU-1"
	b.host.Devices = []berth.Device{small(id)}
	b.register(t)

	r, there := b.askGPU(t, id, 1)
	_, err := b.store.Place(ctx, there)
	require.NoError(t, err)

	other := b.host
	other.ID, other.Name, other.Devices = uuid.NewString(), "b", []berth.Device{small(id)}
	require.Equal(t, berth.KindConflict, berth.KindOf(b.store.RegisterHost(ctx, other, "test")), "its worker answers")

	b.pass(t, berth.HostLostAfter+time.Second)
	require.Equal(t, berth.KindConflict, berth.KindOf(b.store.RegisterHost(ctx, other, "test")), "a trial may still run there")

	b.lost(t, r.AttemptID)
	require.NoError(t, b.store.RegisterHost(ctx, other, "test"))
	require.Zero(t, b.device(t, id), "it is there now")

	b.host = other
	require.NotZero(t, b.device(t, id))
}
