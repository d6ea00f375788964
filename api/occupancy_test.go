package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/testkit/apitest"
)

func TestLeasesAndQueue(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.SweepIs(berth.SweepRunning)
	store.Exec(`UPDATE attempts SET state = 'running', failure_kind = '', finished_at = NULL WHERE number = 1 AND id <> $1`, apitest.AttemptID(4, 1))
	store.Exec(`INSERT INTO leases (attempt_id, sweep_id, host_id, memory_bytes, cpu_milli, expires_at, created_at)
		SELECT a.id, t.sweep_id, a.host_id, 1 << 30, 500, '2100-01-01', $1::timestamptz + t.number * interval '1 second'
		FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE a.state = 'running'`, apitest.Start)
	store.Exec(`INSERT INTO placement_requests (attempt_id, sweep_id, trial_id, workflow_id, number, stage, purpose, shape_key, memory_bytes, cpu_milli, requested_at, reasons)
		SELECT gen_random_uuid(), sweep_id, id, 'w', 3, 'main', 'run', shape_key, 1, 1, $1::timestamptz + number * interval '1 second', '[{"host_name": "laptop", "dimension": "memory", "reason": "full"}]'
		FROM trials WHERE number < 4`, apitest.Start)
	store.Exec("UPDATE placement_requests SET kept_host_id = $1, kept_device_id = 'GPU-1', kept_since = $2 WHERE trial_id = $3", apitest.HostID, apitest.Start, apitest.TrialID(2))
	store.Exec("INSERT INTO memory_points (attempt_id, at_second, host_bytes) VALUES ($1, 0, 9)", apitest.AttemptID(1, 1))

	leases := get[openapi.LeaseList](r, "/api/v1/leases?limit=2")
	require.Len(t, leases.Data, 2)
	require.Equal(t, int64(1<<30), leases.Data[0].Demand.MemoryBytes)
	require.Equal(t, new(int64(9)), leases.Data[0].MeasuredBytes)
	require.Equal(t, &apitest.Start, leases.Data[0].MeasuredAt)
	require.Nil(t, leases.Data[1].MeasuredBytes)
	require.Nil(t, leases.Data[1].MeasuredAt)

	require.Equal(t, 3, get[openapi.LeaseList](r, "/api/v1/leases?limit=2&cursor="+leases.NextCursor).Data[0].Trial)

	queue := get[openapi.QueueList](r, "/api/v1/queue?limit=2")
	require.Len(t, queue.Data, 2)
	require.Equal(t, 3, queue.Total)
	require.Equal(t, "full", queue.Data[1].Waiting[0].Reason)
	require.Nil(t, queue.Data[0].KeptHost)
	require.Equal(t, &openapi.KeptHost{ID: apitest.HostID, Name: "laptop", DeviceID: "GPU-1", Since: apitest.Start}, queue.Data[1].KeptHost)

	require.Equal(t, 3, get[openapi.QueueList](r, "/api/v1/queue?limit=2&cursor="+queue.NextCursor).Data[0].Trial)

	for _, path := range []string{"/api/v1/leases?cursor=" + queue.NextCursor, "/api/v1/queue?cursor=e30", "/api/v1/leases?cursor=x"} {
		r.want(http.StatusBadRequest, "GET", path, "")
	}
}
