package postgres_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// heard publishes the announced events and returns the ones after a sequence, which moves
// to the last one.
func (b *bundle) heard(t *testing.T, after *int64) []berth.Event {
	t.Helper()

	_, err := b.store.PublishEvents(t.Context(), 500)
	require.NoError(t, err)

	events, err := b.store.ListEvents(t.Context(), *after, nil, 500)
	require.NoError(t, err)

	if len(events) > 0 {
		*after = events[len(events)-1].Sequence
	}

	return events
}

func TestEvents_SayTheirTrial(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.request(t, gib)
	r := b.request(t, gib)
	last := int64(0)
	b.heard(t, &last)

	token := b.place(t, r).Token
	require.NoError(t, b.store.AttemptRunning(t.Context(), r.AttemptID, token, "c", time.Now()))
	require.NoError(t, b.store.AttemptRunning(t.Context(), r.AttemptID, token, "c", time.Now())) // a worker that took over
	b.end(t, r)

	got := []string{}

	for _, e := range b.heard(t, &last) {
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
	last := int64(0)
	b.heard(t, &last)

	free := berth.HostFree{MemoryBytes: gib, Devices: []berth.DeviceFree{{ID: "GPU-1", FreeBytes: gib}}}
	touch := func() { b.touch(t, free) }
	register := func() { b.register(t) }
	ok := func(err error) { require.NoError(t, err) }

	for _, step := range []struct {
		do    func()
		about string // GPU-1, or the host; empty = nothing is told
		key   string
		value any
	}{
		{func() { b.register(t, "GPU-1") }, "GPU-1", "host_id", b.host.ID},
		{func() { free.MemoryBytes++; touch(); register() }, "", "", nil},
		{func() { free.Problem = "Docker is down"; touch() }, "host", "problem", "Docker is down"},
		{touch, "", "", nil},
		{func() { free.Problem = ""; touch() }, "host", "problem", ""},
		{func() { ok(b.store.SetHostState(t.Context(), b.host.ID, berth.HostDraining)) }, "host", "state", "draining"},
		{func() { ok(b.store.SetHostState(t.Context(), b.host.ID, berth.HostReady)) }, "host", "state", "ready"},
		{func() { free.Devices[0].Problem = "XID 79"; touch() }, "GPU-1", "problem", "XID 79"},
		{func() { free.Devices[0].Problem = ""; touch() }, "GPU-1", "problem", ""},
		{func() { ok(b.store.CordonDevice(t.Context(), "GPU-1", "its fan is loud")) }, "GPU-1", "cordoned", true},
		{func() { ok(b.store.ReadyDevice(t.Context(), "GPU-1")) }, "GPU-1", "cordoned", false},
		{func() { b.host.Devices = nil; register() }, "GPU-1", "lost", true},
		{func() { ok(b.store.RemoveHost(t.Context(), b.host.ID, true)) }, "host", "removed", true},
	} {
		step.do()

		events := b.heard(t, &last)
		if step.about == "" {
			require.Empty(t, events)

			continue
		}

		want := []string{"device.state", "GPU-1"}
		if step.about == "host" {
			want = []string{"host.state", b.host.ID}
		}

		require.Len(t, events, 1, "%s %v", step.key, step.value)
		require.Equal(t, want, []string{events[0].Kind, events[0].Subject})

		raw, is := events[0].Data.(json.RawMessage)
		require.True(t, is)

		var data map[string]any

		require.NoError(t, json.Unmarshal(raw, &data))

		if step.value == "" {
			require.Empty(t, data[step.key])
		} else {
			require.Equal(t, step.value, data[step.key], step.key)
		}
	}
}
