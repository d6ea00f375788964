package api_test

import (
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
	store.Queued[1].BlockerEndsAt = &apitest.Start
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
	require.Nil(t, queue.Data[0].BlockerEndsAt)
	require.Equal(t, &apitest.Start, queue.Data[1].BlockerEndsAt)
	require.Equal(t, &openapi.KeptHost{ID: apitest.NewID(100), Name: "laptop", DeviceID: "GPU-1", Since: apitest.Start}, queue.Data[1].KeptHost)

	_, body = r.text("GET", "/api/v1/queue?limit=2&cursor="+queue.NextCursor, "")
	require.Equal(t, 9, read[openapi.QueueList](t, body).Data[0].Trial)

	for _, path := range []string{"/api/v1/leases?cursor=" + queue.NextCursor, "/api/v1/queue?cursor=e30", "/api/v1/leases?cursor=x"} {
		status, body := r.text("GET", path, "")
		require.Equal(t, http.StatusBadRequest, status, body)
	}
}
