package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// curvy is the sample with 40 points of a loss in each attempt.
func curvy(t *testing.T) *apitest.Store {
	t.Helper()

	store := apitest.Sample(t)
	store.Exec("INSERT INTO metrics (attempt_id, name, step, value, status, at) SELECT id, 'loss', step, step % 7, 'finite', now() FROM attempts, generate_series(0, 39) step")
	store.AddMetric(apitest.AttemptID(2, 1), "loss", 99, 0, berth.MetricNaN)

	return store
}

func TestQuery_IsText(t *testing.T) {
	t.Parallel()

	r := setup(t, apitest.Sample(t))

	for _, path := range []string{"/api/v1/sweeps?name=%00", "/api/v1/sweeps?created_by=%ff", "/api/v1/sweeps/" + apitest.NewID(1) + "/metrics?name=a%00"} {
		body := r.want(http.StatusBadRequest, "GET", path, "")
		require.Contains(t, body, "must be text in UTF-8 without NUL")
	}
}

func TestListCurves(t *testing.T) {
	t.Parallel()

	r := setup(t, curvy(t))
	metrics := "/api/v1/sweeps/" + apitest.NewID(1) + "/metrics?name=loss"

	for query, want := range map[string][]int{"": {1, 2, 3, 4}, "&trials=2": {2}, "&trials=3-4,1,1": {1, 3, 4}, "&trials=1-80,1-80": {1, 2, 3, 4}, "&trials=4,9": {4}, "&trials=77": {}} {
		list := get[openapi.CurveList](r, metrics+query)
		numbers := []int{}

		for _, c := range list.Data {
			numbers = append(numbers, c.Trial)
			require.Len(t, c.Steps, 40)
			require.Len(t, c.Values, 40)
			require.Equal(t, c.Trial == 2, c.NotFinite == 1 && *c.FirstNotFiniteStep == 99)
		}

		require.Equal(t, want, numbers, query)
	}

	_, body := r.text("GET", metrics+"&trials=1&max_points=8", "")
	curve := read[openapi.CurveList](t, body).Data[0]
	require.LessOrEqual(t, len(curve.Steps), 8)
	require.Equal(t, 40, curve.Total)

	for query, detail := range map[string]string{
		"&trials=5-3": `"5-3" is no range of trials`, "&trials=0": "begin at 1", "&trials=1-501": "more than 500 trials",
		"&trials=1-500,1-101,501-520":   "more than 500 trials",
		"&trials=1-100&max_points=1001": "send max_points=1000, or fewer trials", "&trials=1,,2": "", "&max_points=3": "", "&trials=": "",
	} {
		body := r.want(http.StatusBadRequest, "GET", metrics+query, "")
		require.Contains(t, fmt.Sprint(read[openapi.Problem](t, body).Errors), detail, query)
	}

	r.want(http.StatusNotFound, "GET", "/api/v1/sweeps/"+apitest.NewID(77)+"/metrics?name=loss", "")
}

func TestListMetricNames(t *testing.T) {
	t.Parallel()

	r := setup(t, curvy(t))

	body := r.want(http.StatusOK, "GET", "/api/v1/sweeps/"+apitest.NewID(1)+"/metric-names", "")
	require.Equal(t, []openapi.MetricName{{Name: "loss", Trials: 4, LastStep: 99}}, read[openapi.MetricNameList](t, body).Data)
}
