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
