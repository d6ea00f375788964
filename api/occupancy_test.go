package api_test

import (
	"cmp"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/apitest"
	"github.com/berthml/berth/api/openapi"
)

func TestLeasesAndQueue(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	for i := range 3 {
		at := apitest.Start.Add(time.Duration(i) * time.Second)
		store.Leases = append(store.Leases, berth.HeldLease{
			AttemptID: apitest.NewID(700 + i), HostID: apitest.NewID(100), HostName: "laptop", TrialNumber: i + 1, State: berth.LeaseHeld, Since: at,
			Demand: berth.Demand{MemoryBytes: 1 << 30, CPUMilli: 500}, Purpose: berth.PurposeRun, AttemptState: berth.AttemptRunning,
		})
		store.Queued = append(store.Queued, berth.QueuedRequest{
			Position: i + 1, AttemptID: apitest.NewID(800 + i), TrialNumber: i + 7, Since: at, SweepState: berth.SweepRunning,
			Reasons: []berth.Rejection{{HostName: "laptop", Dimension: berth.DimensionMemory, Reason: "full"}},
		})
	}

	store.Queued[1].Kept = &berth.KeptHost{HostID: apitest.NewID(100), HostName: "laptop", DeviceID: "GPU-1", Since: apitest.Start}
	store.Leases[0].MeasuredBytes, store.Leases[0].MeasuredAt = new(int64(9)), &apitest.Start
	r := setup(t, store)

	_, body := r.text("GET", "/api/v1/leases?limit=2", "")
	leases := read[openapi.LeaseList](t, body)
	require.Len(t, leases.Data, 2)
	require.Equal(t, int64(1<<30), leases.Data[0].Demand.MemoryBytes)
	require.Equal(t, new(int64(9)), leases.Data[0].MeasuredBytes)
	require.Equal(t, &apitest.Start, leases.Data[0].MeasuredAt)
	require.Nil(t, leases.Data[1].MeasuredBytes)
	require.Nil(t, leases.Data[1].MeasuredAt)

	_, body = r.text("GET", "/api/v1/leases?limit=2&cursor="+leases.NextCursor, "")
	require.Equal(t, 3, read[openapi.LeaseList](t, body).Data[0].Trial)

	_, body = r.text("GET", "/api/v1/queue?limit=2", "")
	queue := read[openapi.QueueList](t, body)
	require.Len(t, queue.Data, 2)
	require.Equal(t, 3, queue.Total)
	require.Equal(t, "full", queue.Data[1].Waiting[0].Reason)
	require.Nil(t, queue.Data[0].KeptHost)
	require.Equal(t, &openapi.KeptHost{ID: apitest.NewID(100), Name: "laptop", DeviceID: "GPU-1", Since: apitest.Start}, queue.Data[1].KeptHost)

	_, body = r.text("GET", "/api/v1/queue?limit=2&cursor="+queue.NextCursor, "")
	require.Equal(t, 9, read[openapi.QueueList](t, body).Data[0].Trial)

	for _, path := range []string{"/api/v1/leases?cursor=" + queue.NextCursor, "/api/v1/queue?cursor=e30", "/api/v1/leases?cursor=x"} {
		status, body := r.text("GET", path, "")
		require.Equal(t, http.StatusBadRequest, status, body)
	}
}

// When what waits is expected to start, or why nobody knows.
func TestQueue_ExpectedStart(t *testing.T) {
	t.Parallel()

	store, states := apitest.Sample(), map[int]berth.SweepState{1: berth.SweepPaused}
	minute := berth.ShapeTimes{"": {Ended: 3, Mean: time.Minute, Lower: time.Minute, Upper: 2 * time.Minute, Low: time.Minute, High: 2 * time.Minute}}
	host := berth.Host{ID: "h", Name: "h", State: berth.HostReady, CPUMilli: 1000, MemoryBytes: 1 << 30, MemoryFreeBytes: 1 << 30}

	for i := range 5 {
		state := cmp.Or(states[i], berth.SweepRunning)
		q := berth.QueuedRequest{Position: i + 1, AttemptID: apitest.NewID(800 + i), TrialNumber: i + 1, Since: apitest.Start, SweepState: state}
		store.Queued = append(store.Queued, q)
	}

	store.Queued[2].NotBefore = &apitest.Start
	store.Foreseen = berth.Foresight{
		Complete: true, Times: map[string]berth.ShapeTimes{"s": minute},
		Queue: berth.Queue{Hosts: []berth.Host{host}, Sweeps: map[string]berth.SweepUse{"s": {State: berth.SweepRunning}}},
	}

	for i := range 4 { // the fifth asked after that was read
		store.Foreseen.Queue.Waiting = append(store.Foreseen.Queue.Waiting, berth.WaitingRequest{
			AttemptID: apitest.NewID(800 + i), SweepID: "s", TrialNumber: i + 1, Resources: berth.Resources{Memory: 1 << 30, CPUs: 1000},
		})
	}

	r := setup(t, store)
	_, body := r.text("GET", "/api/v1/queue", "")
	rows := read[openapi.QueueList](t, body).Data

	require.Equal(t, openapi.ExpectedStart{MinSeconds: new(0.0), MaxSeconds: new(0.0)}, rows[0].ExpectedStart)
	require.Equal(t, openapi.ExpectedStart{Unknown: openapi.SweepInactive}, rows[1].ExpectedStart, "it was paused since")
	require.Equal(t, openapi.ExpectedStart{Unknown: openapi.PutOff}, rows[2].ExpectedStart)
	require.InDelta(t, 180, *rows[3].ExpectedStart.MinSeconds, 5)
	require.InDelta(t, 360, *rows[3].ExpectedStart.MaxSeconds, 5)
	require.Equal(t, openapi.ExpectedStart{Unknown: openapi.JustAsked}, rows[4].ExpectedStart)

	_, body = r.text("GET", "/api/v1/queue", "")
	require.LessOrEqual(t, *read[openapi.QueueList](t, body).Data[3].ExpectedStart.MaxSeconds, *rows[3].ExpectedStart.MaxSeconds, "from now on, not from when it was found out")

	store.Foreseen.Complete = false
	_, body = setup(t, store).text("GET", "/api/v1/queue", "")
	require.Equal(t, openapi.FarBack, read[openapi.QueueList](t, body).Data[4].ExpectedStart.Unknown)

	// A person resumes a sweep that was paused when it was last found out.
	store.Foreseen.Queue.Sweeps["s"] = berth.SweepUse{State: berth.SweepPaused}
	r = setup(t, store)
	_, body = r.text("GET", "/api/v1/queue", "")
	require.Equal(t, openapi.JustAsked, read[openapi.QueueList](t, body).Data[0].ExpectedStart.Unknown)

	// The queue stands without it.
	store.ForeseeErr = errors.New("it was not found out")
	_, body = setup(t, store).text("GET", "/api/v1/queue", "")
	rows = read[openapi.QueueList](t, body).Data
	require.Empty(t, rows[0].ExpectedStart)
	require.Equal(t, openapi.ExpectedStart{Unknown: openapi.SweepInactive}, rows[1].ExpectedStart)
	require.Equal(t, openapi.ExpectedStart{Unknown: openapi.PutOff}, rows[2].ExpectedStart)
}
