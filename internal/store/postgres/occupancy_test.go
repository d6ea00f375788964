package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// leases reads all leases, one at a time.
func (b *bundle) leases(t *testing.T) (all []berth.HeldLease) {
	t.Helper()

	for after := (berth.LeaseKey{}); ; {
		page, err := b.store.ListLeases(t.Context(), after, 1)
		require.NoError(t, err)

		if len(page) == 0 {
			return all
		}

		all, after = append(all, page...), page[0].Key()
	}
}

// The list equals the host's own books, without released leases.
func TestListLeases(t *testing.T) {
	t.Parallel()

	b := setup(t)
	require.Empty(t, b.leases(t))

	var requests []berth.PlacementRequest

	for range 4 {
		r := b.request(t, gib)
		b.place(t, r)
		requests = append(requests, r)
	}

	b.end(t, requests[1])

	b.exec(t, "UPDATE leases SET state = 'suspect' WHERE attempt_id = $1", requests[2].AttemptID)

	put := func(points ...berth.MemoryPoint) {
		require.NoError(t, b.store.PutMemory(t.Context(), requests[0].AttemptID, b.placement(t, requests[0]).Token, points))
	}
	put(berth.MemoryPoint{Second: 7, HostBytes: new(int64(9)), DeviceBytes: new(int64(9))}, berth.MemoryPoint{Second: 8, HostBytes: new(int64(5))})

	held := b.leases(t)
	require.Equal(t, new(int64(5)), held[0].MeasuredBytes, "the newest point")
	require.Equal(t, new(int64(9)), held[0].MeasuredDeviceBytes, "the point before knows it")
	require.WithinDuration(t, held[0].Since.Add(8*time.Second), *held[0].MeasuredAt, time.Second, "no container has started: since it was placed")
	require.Nil(t, held[1].MeasuredBytes, "nothing was measured yet")
	require.Nil(t, held[1].MeasuredAt)

	for _, tt := range []struct {
		read, later int // second of the GPU's last reading, and of one of the host alone
		known       bool
	}{{100, 110, true}, {200, 211, false}, {5000, 5016, true}, {5100, 5140, false}} { // from 4000 s on an interval is 16 s long
		put(berth.MemoryPoint{Second: tt.read, DeviceBytes: new(int64(9))}, berth.MemoryPoint{Second: tt.later, HostBytes: new(int64(5))})
		require.Equal(t, tt.known, b.leases(t)[0].MeasuredDeviceBytes != nil, tt.later)
	}

	memory, cpu := b.reserved(t)

	for i, want := range []int{1, 3, 4} {
		l := held[i]
		memory, cpu = memory-l.Demand.MemoryBytes, cpu-l.Demand.CPUMilli

		require.Equal(t, []any{want, requests[want-1].AttemptID, b.sweep, b.host.ID, b.host.Name, berth.PurposeRun, berth.AttemptPlaced},
			[]any{l.TrialNumber, l.AttemptID, l.SweepID, l.HostID, l.HostName, l.Purpose, l.AttemptState})
		require.Equal(t, want == 3, l.State == berth.LeaseSuspect)
		require.WithinDuration(t, time.Now(), l.Since, time.Minute)
		require.NotEmpty(t, l.SweepName)
	}

	require.Len(t, held, 3)
	require.Zero(t, memory, "its leases are what the host has reserved")
	require.Zero(t, cpu)
}

// The queue is in the order in which the placer reads it, also for paused sweeps and
// requests put off.
func TestListQueue_InThePlacersOrder(t *testing.T) {
	t.Parallel()

	b := setup(t)
	paused := b.another(t, berth.Resources{})

	b.request(t, gib)
	held := []string{paused.request(t, gib).AttemptID}
	explained := b.request(t, gib)
	off := b.request(t, gib)
	held = append(held, paused.request(t, gib).AttemptID)
	b.request(t, gib)

	paused.setState(t, berth.SweepPaused)
	require.NoError(t, b.store.StoreReasons(t.Context(), map[string]berth.Wait{explained.AttemptID: {Reasons: []berth.Rejection{{HostName: "a", Reason: "full"}}}}))
	require.NoError(t, b.store.SetAside(t.Context(), off.AttemptID, "the ledger refuses it"))
	b.exec(t, `UPDATE placement_requests SET not_before = now() + interval '1 hour' WHERE attempt_id = $1`, off.AttemptID)
	b.exec(t, `UPDATE placement_requests SET requested_at = requested_at - interval '1 minute' WHERE attempt_id = $1`, explained.AttemptID)

	want := append(append(ids(b.queue(t).Waiting), held...), off.AttemptID) // behind them requests that the placer does not read
	require.Len(t, want, 6)

	var (
		after berth.QueueKey
		got   []string
	)

	for {
		page, total, err := b.store.ListQueue(t.Context(), after, 1)
		require.NoError(t, err)

		if len(page) == 0 {
			break
		}

		q := page[0]
		got, after = append(got, q.AttemptID), q.Key()
		require.Equal(t, len(got), q.Position)
		require.Equal(t, 6, total)
		require.Equal(t, q.SweepID == paused.sweep, q.SweepState == berth.SweepPaused)
		require.Equal(t, q.AttemptID == off.AttemptID, q.NotBefore != nil)

		if q.AttemptID == explained.AttemptID {
			require.Equal(t, "full", q.Reasons[0].Reason)
		}
	}

	require.Equal(t, want, got)
	require.Equal(t, explained.AttemptID, got[0], "the oldest")
}

// The store tells since when capacity has been kept free for a request; the time starts again with another
// host, with none, or when the request is put off.
func TestStoreReasons_WhatIsKept(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := b.request(t, gib)

	store := func(kept berth.KeptPlace) {
		t.Helper()
		require.NoError(t, b.store.StoreReasons(t.Context(), map[string]berth.Wait{r.AttemptID: {Kept: kept}}))
	}
	told := func() *berth.KeptHost {
		t.Helper()

		queue, _, err := b.store.ListQueue(t.Context(), berth.QueueKey{}, 1)
		require.NoError(t, err)

		require.Equal(t, queue[0].Kept, b.getTrial(t, 1).Kept)

		page, err := b.store.PageTrials(t.Context(), b.sweep, berth.TrialQuery{Sort: berth.Sort{By: berth.SortNumber}, Limit: 1})
		require.NoError(t, err)
		require.Equal(t, queue[0].Kept, page.Rows[0].Kept)

		return queue[0].Kept
	}

	require.Nil(t, told())

	store(berth.KeptPlace{HostID: b.host.ID})

	first := told()
	require.Equal(t, &berth.KeptHost{HostID: b.host.ID, HostName: b.host.Name, Since: first.Since}, first)
	require.WithinDuration(t, time.Now(), first.Since, time.Minute)

	require.Equal(t, berth.KeptPlace{HostID: b.host.ID}, b.queue(t).Waiting[0].Kept, "a round sees what the last one stored")

	b.exec(t, "UPDATE placement_requests SET kept_since = kept_since - interval '1 hour'")
	store(berth.KeptPlace{HostID: b.host.ID})
	require.Equal(t, first.Since.Add(-time.Hour), told().Since, "the same host")

	store(berth.KeptPlace{HostID: b.host.ID, DeviceID: "GPU-1"})
	require.Equal(t, "GPU-1", told().DeviceID)
	require.True(t, told().Since.After(first.Since), "a GPU of it is another place")

	store(berth.KeptPlace{HostID: uuid.NewString()})
	require.Nil(t, told(), "that host is gone")

	store(berth.KeptPlace{HostID: b.host.ID})
	require.NoError(t, b.store.SetAside(t.Context(), r.AttemptID, "the ledger refuses it"))
	require.Nil(t, told())

	store(berth.KeptPlace{HostID: b.host.ID})
	store(berth.KeptPlace{})
	require.Nil(t, told())
}

// The queue has the expected end of a request's blocker: its start and the median time of the trials of its
// sweep.
func TestListQueue_WhenTheBlockerEnds(t *testing.T) {
	t.Parallel()

	b := setup(t)
	other := b.another(t, berth.Resources{})
	first, second, lost, waits := b.request(t, gib), b.request(t, gib), other.request(t, gib), other.request(t, gib)

	for _, r := range []berth.PlacementRequest{first, second, lost} {
		b.place(t, r)
	}

	ends := func() *time.Time {
		t.Helper()

		queue, _, err := b.store.ListQueue(t.Context(), berth.QueueKey{}, 10)
		require.NoError(t, err)
		require.Len(t, queue, 1)

		return queue[0].BlockerEndsAt
	}

	b.exec(t, `UPDATE attempts SET placed_at = '2026-11-21 12:00Z' WHERE id = $1`, first.AttemptID)
	b.exec(t, `UPDATE attempts SET placed_at = '2026-11-21 12:04Z' WHERE id = $1`, second.AttemptID)
	b.exec(t, `UPDATE attempts SET placed_at = '2026-11-21 11:00Z' WHERE id = $1`, lost.AttemptID)
	b.exec(t, `UPDATE leases SET state = 'suspect' WHERE attempt_id = $1`, lost.AttemptID) // the end of an abandoned attempt is unknown
	require.NoError(t, b.store.StoreReasons(t.Context(), map[string]berth.Wait{waits.AttemptID: {Reasons: []berth.Rejection{
		{HostID: b.host.ID, HostName: b.host.Name, Dimension: berth.DimensionMemory, Needed: gib},
	}}}))
	require.Nil(t, ends(), "no trial has ended")

	b.exec(t, `INSERT INTO shapes (key, shape) VALUES ('timed', '{}')`)
	b.exec(t, `INSERT INTO trials (id, sweep_id, number, params, shape_key, state, started_at, finished_at)
		SELECT gen_random_uuid(), s, 10 + n, '{}', 'timed', 'succeeded', now() - n * n * interval '1 min', now()
		FROM generate_series(1, 3) n, unnest($1::uuid[]) s`, []string{b.sweep, other.sweep}) // 1, 4 and 9 minutes
	require.Equal(t, new(time.Date(2026, 11, 21, 12, 4, 0, 0, time.UTC)), ends())

	b.exec(t, `UPDATE leases SET state = 'released', released_at = now(), proof = 'x' WHERE attempt_id = $1`, first.AttemptID)
	require.Equal(t, new(time.Date(2026, 11, 21, 12, 8, 0, 0, time.UTC)), ends())
}
