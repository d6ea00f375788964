package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// The answer of the first call was lost, and by the time of the second the registry is
// down, or the tag is gone: the sweep exists all the same, and "Nothing was stored" would
// make a person submit it again.
func TestRepeat_NeedsNoImage(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)

	body := r.want(http.StatusCreated, "POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: nightly-7")
	first := read[openapi.Sweep](t, body)

	store.Change(func() {
		store.ImageErr = &berth.SpecError{Problems: []berth.Problem{{Code: "E_IMAGE_REGISTRY", Pointer: "/image", Message: "it does not answer"}}}
	})

	body = r.want(http.StatusOK, "POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: nightly-7")
	require.Equal(t, first.ID, read[openapi.Sweep](t, body).ID)
}

// The same call of a rerun returns the first one's sweep, also when more trials of
// the running sweep have failed since. Another body, or another copy, is another
// call.
func TestRepeat_OfARerunIsTheFirst(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	at := "/api/v1/sweeps/" + apitest.NewID(1) + "/rerun-failed"

	store.TrialIs(1, berth.TrialFailed)

	body := r.want(http.StatusCreated, "POST", at, "{}", asJSON, "Idempotency-Key: again")

	first := read[openapi.Sweep](t, body)

	store.TrialIs(2, berth.TrialFailed)

	body = r.want(http.StatusOK, "POST", at, "{}", asJSON, "Idempotency-Key: again")
	require.Equal(t, first.ID, read[openapi.Sweep](t, body).ID)

	r.requireProblem(409, "E_IDEMPOTENCY", "used for another body", "POST", at, `{"name":"other"}`, asJSON, "Idempotency-Key: again")

	body = r.want(http.StatusCreated, "POST", "/api/v1/sweeps/"+apitest.NewID(1)+"/clone", "", "Idempotency-Key: again")
	require.NotEqual(t, first.ID, read[openapi.Sweep](t, body).ID)
}
