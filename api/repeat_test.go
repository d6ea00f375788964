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

// A copy takes the file as a person wrote it, and looks up the images of its stages and its data sets again.
func TestRepeat_OfASweepWithStages(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.Exec("UPDATE hosts SET datasets = '{flowers@0123456789abcdef}'")

	file := apitest.SweepFile + "stages: [{name: base, command: [x], image: other:1}]\ndatasets: [{name: flowers, target: /data/f}]\n"
	first := read[openapi.Sweep](t, r.want(http.StatusCreated, "POST", "/api/v1/sweeps", file, asYAML, "Idempotency-Key: staged"))
	require.NotContains(t, string(first.Spec), "digest")
	require.NotContains(t, string(first.Spec), "version\":\"0123456789abcdef")

	stored, err := store.SweepRecord(t.Context(), first.ID)
	require.NoError(t, err)
	require.Equal(t, "0123456789abcdef", stored.Spec.Datasets[0].Version)
	require.Contains(t, stored.Spec.Stages[0].ImageDigest, "other:1@sha256:")

	store.Exec("UPDATE hosts SET datasets = '{flowers@fedcba9876543210}'")

	clone := read[openapi.Sweep](t, r.want(http.StatusCreated, "POST", "/api/v1/sweeps/"+first.ID+"/clone", "", "Idempotency-Key: anew"))
	stored, err = store.SweepRecord(t.Context(), clone.ID)
	require.NoError(t, err)
	require.Equal(t, "fedcba9876543210", stored.Spec.Datasets[0].Version)
}
