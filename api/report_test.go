package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/testkit/apitest"
)

func TestReport_OfNothing(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.AddSweep(2, "empty", berth.SweepPending)

	empty := get[openapi.SweepReport](r, "/api/v1/sweeps/"+apitest.NewID(2)+"/report")
	require.False(t, empty.Ended)
	require.NotNil(t, empty.Trials)
	require.NotNil(t, empty.Places)
	require.Contains(t, empty.Notes, "The sweep has no trials yet.")

	for path, want := range map[string]int{
		apitest.NewID(9): http.StatusNotFound, "nonsense": http.StatusNotFound,
		apitest.NewID(1) + "/report?cursor=x": http.StatusBadRequest, apitest.NewID(1) + "/report?limit=0": http.StatusBadRequest,
	} {
		if want == http.StatusNotFound {
			path += "/report"
		}

		status, body := r.text("GET", "/api/v1/sweeps/"+path, "")
		require.Equal(t, want, status, body)
	}
}
