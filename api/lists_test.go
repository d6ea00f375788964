package api_test

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// A cursor goes with the filters and the sort of its list, and carries its total.
func TestCursors_BelongToTheirList(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	for i := range 4 {
		store.AddSweep(500+i, "digits", berth.SweepSucceeded)
	}

	first := func(path string) string {
		list := get[openapi.SweepList](r, path)
		require.NotEmpty(t, list.NextCursor, path)
		require.NotZero(t, list.Total, path)

		return list.NextCursor
	}

	sweeps := first("/api/v1/sweeps?limit=2&sort=name&name=d")

	store.Exec("DELETE FROM sweeps WHERE id = $1", apitest.NewID(503))

	body := r.want(http.StatusOK, "GET", "/api/v1/sweeps?limit=3&sort=name&name=d&cursor="+sweeps, "") // another limit is the same list
	require.NotZero(t, read[openapi.SweepList](t, body).Total)

	for _, path := range []string{
		"/api/v1/sweeps?name=d&cursor=", "/api/v1/sweeps?sort=-name&name=d&cursor=", "/api/v1/sweeps?sort=name&cursor=",
		"/api/v1/sweeps?sort=name&name=d&state=failed&cursor=", "/api/v1/sweeps?sort=name&name=d&created_by=local&cursor=",
	} {
		body := r.want(http.StatusBadRequest, "GET", path+sweeps, "")
		require.Contains(t, read[openapi.Problem](t, body).Detail, "other filters or another sort", path)
	}
}

// Each parameter of a list reaches its query.
func TestLists_Parameters(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.AddSweep(500, "LR 100%", berth.SweepRunning)
	store.AddSweep(501, "lr wide", berth.SweepRunning)
	trials := "/api/v1/sweeps/" + apitest.NewID(1) + "/trials"

	for path, want := range map[string]string{
		"/api/v1/sweeps": "lr wide, LR 100%, digits", "/api/v1/sweeps?sort=name": "digits, LR 100%, lr wide", "/api/v1/sweeps?name=100%25": "LR 100%",
		"/api/v1/sweeps?created_by=ci": "lr wide, LR 100%", "/api/v1/sweeps?state=succeeded,failed": "digits",
		trials + "?sort=-value": "2, 3, 4, 1", trials + "?value_min=0.95": "2, 3", trials + "?value_max=0.92": "1", trials + "?state=failed": "",
	} {
		body := r.want(http.StatusOK, "GET", path, "")

		list := read[struct {
			Data []struct {
				Name   string
				Number int
			}
			Total int
		}](t, body)
		names := []string{}

		for _, row := range list.Data {
			names = append(names, cmp.Or(row.Name, strconv.Itoa(row.Number)))
		}

		require.Equal(t, want, strings.Join(names, ", "), path)
		require.Equal(t, len(names), list.Total, path)
	}

	for query, pointer := range map[string]string{"?value_min=2&value_max=1": "value_min", "?value_max=NaN": "value_max", "?sort=odd": "sort", "?value_min=x": "value_min", "?stage=X": "stage"} {
		body := r.want(http.StatusBadRequest, "GET", trials+query, "")
		require.Equal(t, pointer, read[openapi.Problem](t, body).Errors[0].Pointer, body)
	}

	_, body := r.text("GET", trials+"?limit=1&sort=value", "")
	cursor := read[openapi.TrialList](t, body).NextCursor

	require.Equal(t, 4, get[openapi.TrialList](r, trials+"?limit=1&sort=value&cursor="+cursor).Total)

	r.want(http.StatusBadRequest, "GET", trials+"?limit=1&sort=value&value_min=0&cursor="+cursor, "")
}
