package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// Of a large sweep the newest 10,000 ended trials count, and the open ones among them.
func TestInsight_OfALargeSweep(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	sweep := store.AddSweep(2, "large", berth.SweepRunning)

	// Trial 7 runs, and so does 10,003; trials 1 to 3 are too old.
	store.Exec(`INSERT INTO trials (id, sweep_id, number, params, shape_key, state, value, origin, finished_at)
		SELECT md5('large' || n)::uuid, $1, n, json_build_object('lr', n % 2, 'width', n % 4), $2, state, CASE state WHEN 'succeeded' THEN n % 4 END,
			'{"by": "gp"}', CASE state WHEN 'succeeded' THEN $3::timestamptz + n * interval '1 second' END
		FROM generate_series(1, 10005) n, LATERAL (SELECT CASE WHEN n IN (7, 10003) THEN 'running' ELSE 'succeeded' END) s (state)`, sweep, apitest.SmallShape, apitest.Start)
	store.Exec(`INSERT INTO rungs (trial_id, rung, sweep_id, step, value, stop, why)
		SELECT id, rung, sweep_id, 3 * (rung + 1) + number % 2, number % 5, number % 3 = 0 AND number % 5 < 3, 'why' FROM trials, generate_series(0, 1) rung
		WHERE sweep_id = $1 AND number % (rung + 1) = 0`, sweep)

	found := get[openapi.SweepInsight](r, "/api/v1/sweeps/"+sweep+"/insight")
	require.Equal(t, 4, found.FromTrial)
	require.Equal(t, 10_002, found.Trials)
	require.Equal(t, openapi.InsightSample{Trials: 10_000, TopShare: 0.1}, found.ImportanceOf)
	require.Equal(t, []openapi.InsightOrigin{{By: "gp", Trials: 10_002}}, found.Origins)
	require.Equal(t, []openapi.InsightBest{
		{Trial: 4, Value: 0, At: apitest.Start.Add(4 * time.Second)},
		{Trial: 5, Value: 1, At: apitest.Start.Add(5 * time.Second)},
		{Trial: 6, Value: 2, At: apitest.Start.Add(6 * time.Second)},
		{Trial: 11, Value: 3, At: apitest.Start.Add(11 * time.Second)},
	}, found.Best)

	require.Len(t, found.Importance, 2)
	require.Equal(t, "width", found.Importance[0].Parameter)
	require.Greater(t, *found.Importance[0].Importance, 0.5, "the value is width")
	require.Equal(t, 10_000, found.Importance[1].Trials)

	require.Equal(t, []openapi.InsightRung{
		{Rung: 0, Step: 3, LastStep: 4, Trials: 10_002, Stopped: 2001, Best: new(4.0), Cut: new(2.0)},
		{Rung: 1, Step: 6, LastStep: 6, Trials: 5001, Stopped: 1001, Best: new(4.0), Cut: new(2.0)},
	}, found.Rungs)

	for path, want := range map[string]int{apitest.NewID(9): http.StatusNotFound, "nonsense": http.StatusNotFound} {
		status, body := r.text("GET", "/api/v1/sweeps/"+path+"/insight", "")
		require.Equal(t, want, status, body)
	}
}
