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

func TestListSweeps_FiltersAndSorts(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	for i, name := range []string{"LR 100%", "lr wide", "other"} {
		sweep := store.Sweeps[0]
		sweep.ID, sweep.Name, sweep.CreatedAt = apitest.NewID(500+i), name, apitest.Start.Add(time.Duration(i+1)*time.Second)
		sweep.State, sweep.CreatedBy = berth.SweepRunning, "ci"
		store.Sweeps = append(store.Sweeps, sweep)
	}

	r := setup(t, store)

	for query, want := range map[string][]string{
		"":                                  {"other", "lr wide", "LR 100%", "digits"},
		"?sort=created_at":                  {"digits", "LR 100%", "lr wide", "other"},
		"?sort=name":                        {"digits", "LR 100%", "lr wide", "other"},
		"?sort=-name&created_by=ci":         {"other", "lr wide", "LR 100%"},
		"?name=LR&sort=created_at":          {"LR 100%", "lr wide"},
		"?name=100%25":                      {"LR 100%"},
		"?state=succeeded,failed":           {"digits"},
		"?created_by=nobody":                {},
		"?name=lr&state=running&sort=-name": {"lr wide", "LR 100%"},
	} {
		status, body := r.text("GET", "/api/v1/sweeps"+query, "")
		require.Equal(t, http.StatusOK, status, body)

		list := read[openapi.SweepList](t, body)
		names := []string{}

		for _, sweep := range list.Data {
			names = append(names, sweep.Name)
		}

		require.Equal(t, want, names, query)
		require.Equal(t, len(want), list.Total, query)
		require.Empty(t, list.NextCursor)
	}
}

// A cursor goes with the filters and the sort of its list, and carries its total.
func TestCursors_BelongToTheirList(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	for i := range 4 {
		sweep := store.Sweeps[0]
		sweep.ID = apitest.NewID(500 + i)
		store.Sweeps = append(store.Sweeps, sweep)
	}

	r := setup(t, store)

	first := func(path string) string {
		_, body := r.text("GET", path, "")
		list := read[openapi.SweepList](t, body)
		require.NotEmpty(t, list.NextCursor, path)
		require.NotZero(t, list.Total, path)

		return list.NextCursor
	}

	sweeps := first("/api/v1/sweeps?limit=2&sort=name&name=d")

	store.Change(func() { store.Sweeps = store.Sweeps[:4] })

	status, body := r.text("GET", "/api/v1/sweeps?limit=3&sort=name&name=d&cursor="+sweeps, "")
	require.Equal(t, http.StatusOK, status, "another limit is the same list")
	require.NotZero(t, read[openapi.SweepList](t, body).Total)

	for _, path := range []string{
		"/api/v1/sweeps?name=d&cursor=", "/api/v1/sweeps?sort=-name&name=d&cursor=", "/api/v1/sweeps?sort=name&cursor=",
		"/api/v1/sweeps?sort=name&name=d&state=failed&cursor=", "/api/v1/sweeps?sort=name&name=d&created_by=local&cursor=",
	} {
		status, body := r.text("GET", path+sweeps, "")
		require.Equal(t, http.StatusBadRequest, status, path)
		require.Contains(t, read[openapi.Problem](t, body).Detail, "other filters or another sort", path)
	}
}

func TestListTrials_FiltersAndSorts(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Trials[3].State, store.Trials[3].Value = berth.TrialWaiting, nil
	r := setup(t, store)
	trials := "/api/v1/sweeps/" + apitest.NewID(1) + "/trials"

	for query, want := range map[string][]int{
		"": {1, 2, 3, 4}, "?sort=-number": {4, 3, 2, 1}, "?sort=value": {1, 3, 2, 4}, "?sort=-value": {2, 3, 1, 4},
		"?value_min=0.95": {2, 3}, "?value_max=0.95": {1, 3}, "?value_min=0.92&value_max=0.96": {3}, "?state=waiting": {4}, "?value_min=2": {},
	} {
		status, body := r.text("GET", trials+query, "")
		require.Equal(t, http.StatusOK, status, body)

		list := read[openapi.TrialList](t, body)
		numbers := []int{}

		for _, trial := range list.Data {
			numbers = append(numbers, trial.Number)
			require.Equal(t, trial.Number == 4, trial.WaitingSince != nil)
			require.Equal(t, "laptop", trial.LatestAttempt.HostName)
		}

		require.Equal(t, want, numbers, query)
		require.Equal(t, len(want), list.Total, query)
	}

	for query, pointer := range map[string]string{"?value_min=2&value_max=1": "value_min", "?value_max=NaN": "value_max", "?sort=odd": "sort", "?value_min=x": "value_min"} {
		status, body := r.text("GET", trials+query, "")
		require.Equal(t, http.StatusBadRequest, status, body)
		require.Equal(t, pointer, read[openapi.Problem](t, body).Errors[0].Pointer, body)
	}

	_, body := r.text("GET", trials+"?limit=1&sort=value", "")
	cursor := read[openapi.TrialList](t, body).NextCursor

	status, body := r.text("GET", trials+"?limit=1&sort=value&cursor="+cursor, "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, 4, read[openapi.TrialList](t, body).Total)

	status, _ = r.text("GET", trials+"?limit=1&sort=value&value_min=0&cursor="+cursor, "")
	require.Equal(t, http.StatusBadRequest, status)
}
