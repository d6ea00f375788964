package postgres_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// heard publishes the announced events. It returns the events after a sequence,
// each as "kind data", and the last sequence.
func (b *bundle) heard(t *testing.T, after int64) (events []berth.Event, last int64) {
	t.Helper()

	_, err := b.store.PublishEvents(t.Context(), 500)
	require.NoError(t, err)

	events, err = b.store.ListEvents(t.Context(), after, nil, 500)
	require.NoError(t, err)

	if len(events) > 0 {
		after = events[len(events)-1].Sequence
	}

	return events, after
}

// says is the content of the one event since the last call.
func (b *bundle) says(t *testing.T, last *int64, kind, subject string) map[string]any {
	t.Helper()

	var events []berth.Event

	events, *last = b.heard(t, *last)
	require.Len(t, events, 1)
	require.Equal(t, []string{kind, subject}, []string{events[0].Kind, events[0].Subject})

	raw, is := events[0].Data.(json.RawMessage)
	require.True(t, is)

	var data map[string]any

	require.NoError(t, json.Unmarshal(raw, &data))

	return data
}

func TestEvents_SayTheirTrial(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.request(t, gib)
	r := b.request(t, gib)
	_, last := b.heard(t, 0)

	token := b.place(t, r).Token
	require.NoError(t, b.store.AttemptRunning(t.Context(), r.AttemptID, token, "c", time.Now()))
	require.NoError(t, b.store.AttemptRunning(t.Context(), r.AttemptID, token, "c", time.Now())) // a worker that took over
	b.end(t, r)

	events, _ := b.heard(t, last)
	got := []string{}

	for _, e := range events {
		got = append(got, e.Kind)
		require.Equal(t, 2, e.TrialNumber, e.Kind)
		require.Equal(t, b.sweep, e.SweepID)
	}

	require.Equal(t, []string{"trial.state", "attempt.running", "attempt.finished"}, got)
}

// Hosts and GPUs tell when they take attempts or do not, and nothing else.
func TestEvents_OfMachines(t *testing.T) {
	t.Parallel()

	b := setup(t)
	_, last := b.heard(t, 0)
	free := berth.HostFree{MemoryBytes: gib, Devices: []berth.DeviceFree{{ID: "GPU-1", FreeBytes: gib}}}

	touch := func(change func()) {
		t.Helper()
		change()
		require.NoError(t, b.store.TouchHost(t.Context(), b.host.ID, free, nil))
	}

	quiet := func() {
		t.Helper()

		events, _ := b.heard(t, last)
		require.Empty(t, events)
	}

	b.host.Devices = []berth.Device{{ID: "GPU-1", Model: "NVIDIA H200", Mode: berth.SharingTimeSlicing, MemoryBytes: 100 * gib, FreeBytes: 100 * gib, MaxContexts: 48}}
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))
	require.Equal(t, b.host.ID, b.says(t, &last, "device.state", "GPU-1")["host_id"])

	touch(func() { free.MemoryBytes++ })
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))
	quiet()

	touch(func() { free.Problem = "Docker is down" })
	require.Equal(t, "Docker is down", b.says(t, &last, "host.state", b.host.ID)["problem"])
	touch(func() {})
	quiet()
	touch(func() { free.Problem = "" })
	require.Empty(t, b.says(t, &last, "host.state", b.host.ID)["problem"])

	require.NoError(t, b.store.SetHostState(t.Context(), b.host.ID, berth.HostDraining))
	require.Equal(t, "draining", b.says(t, &last, "host.state", b.host.ID)["state"])
	require.NoError(t, b.store.SetHostState(t.Context(), b.host.ID, berth.HostReady))
	b.says(t, &last, "host.state", b.host.ID)

	touch(func() { free.Devices[0].Problem = "XID 79" })
	require.Equal(t, "XID 79", b.says(t, &last, "device.state", "GPU-1")["problem"])
	touch(func() { free.Devices[0].Problem = "" })
	b.says(t, &last, "device.state", "GPU-1")

	require.NoError(t, b.store.CordonDevice(t.Context(), "GPU-1", "its fan is loud"))
	require.Equal(t, true, b.says(t, &last, "device.state", "GPU-1")["cordoned"])
	require.NoError(t, b.store.ReadyDevice(t.Context(), "GPU-1"))
	require.Equal(t, false, b.says(t, &last, "device.state", "GPU-1")["cordoned"])

	b.host.Devices = nil
	require.NoError(t, b.store.RegisterHost(t.Context(), b.host, "test"))
	require.Equal(t, true, b.says(t, &last, "device.state", "GPU-1")["lost"])

	require.NoError(t, b.store.RemoveHost(t.Context(), b.host.ID, true))
	require.Equal(t, true, b.says(t, &last, "host.state", b.host.ID)["removed"])
}
