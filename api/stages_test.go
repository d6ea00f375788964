package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/testkit/apitest"
)

func stagesOf(r *running, query string) (keys []string) {
	r.t.Helper()

	for _, stage := range get[openapi.StageList](r, "/api/v1/stages"+query).Data {
		keys = append(keys, stage.Key)
	}

	return keys
}

// The list has outputs; that of a sweep has the stages that wait for theirs, too.
func TestStages_List(t *testing.T) {
	t.Parallel()

	store, made, awaited := apitest.Staged(t)
	r := setup(t, store)
	sweep := "?sweep=" + apitest.NewID(2)[:8]

	require.Equal(t, []string{made}, stagesOf(r, ""))
	require.Equal(t, []string{awaited, made}, stagesOf(r, sweep))
	require.Equal(t, []string{made}, stagesOf(r, "?sweep="+apitest.SweepID[:8]))

	first := get[openapi.StageList](r, "/api/v1/stages"+sweep+"&limit=1")
	require.Equal(t, awaited, first.Data[0].Key)
	require.Equal(t, []string{made}, stagesOf(r, sweep+"&limit=1&cursor="+first.NextCursor))

	r.want(http.StatusNotFound, "GET", "/api/v1/stages?sweep=nope", "")
}

// A stage says who ran it, who uses it, what its key is of, and why it is not the nearest one.
func TestStages_Get(t *testing.T) {
	t.Parallel()

	store, made, awaited := apitest.Staged(t)
	r := setup(t, store)

	waits := get[openapi.Stage](r, "/api/v1/stages/"+awaited[:8])
	require.Equal(t, "differs from "+made[:8]+" (sweep digits, trial 1) in values: width is 64, there it was 32", waits.Why)
	require.Nil(t, waits.Output)
	require.Equal(t, []any{"again", 2, 1, 0, true}, []any{waits.SweepName, waits.Trial, waits.OpenTrials, waits.EndedTrials, waits.Held})
	require.Equal(t, &openapi.StageParts{
		Earlier: []string{}, Image: "berth-examples/digits@sha256:1", Command: []string{"python3", "base.py", "--width=64"},
		Values: openapi.Values{"width": berth.IntValue(64)},
	}, waits.Parts)

	store.AddFile(apitest.AttemptID(1, 1), "base.keras", "weights")
	store.FilesAre(apitest.AttemptID(1, 1), berth.FilesStored, "")

	is := get[openapi.Stage](r, "/api/v1/stages/"+made)
	require.Equal(t, &openapi.StageOutput{
		AttemptID: apitest.AttemptID(1, 1), HostID: apitest.HostID, HostName: "laptop", MadeAt: apitest.Start, Seconds: 40, Files: 1, Bytes: 7,
	}, is.Output)
	require.Equal(t, []any{"base", apitest.SweepID, "digits", 1, 1, 1, true}, []any{is.Stage, is.SweepID, is.SweepName, is.Trial, is.OpenTrials, is.EndedTrials, is.Held})
	require.Equal(t, "no other output of stage base is known", is.Why)

	store.Exec("UPDATE hosts SET last_seen_at = now() - interval '1 hour'")
	require.Empty(t, get[openapi.Stage](r, "/api/v1/stages/"+made).Output.Lost, "the store has it")
	store.FilesAre(apitest.AttemptID(1, 1), berth.FilesPending, "")
	require.Equal(t, "its host is silent", get[openapi.Stage](r, "/api/v1/stages/"+made).Output.Lost)

	store.Exec("UPDATE sweeps SET image_digest = 'another' WHERE id = $1", apitest.NewID(2)) // as if the key had another format
	unknown := get[openapi.Stage](r, "/api/v1/stages/"+awaited)
	require.Nil(t, unknown.Parts)
	require.Contains(t, unknown.Why, "another version of Berth")

	r.want(http.StatusNotFound, "GET", "/api/v1/stages/00000000", "")
	require.Contains(t, r.want(http.StatusNotFound, "GET", "/api/v1/stages/"+made[:7], ""), "at least 8")
}

// A stage that a trial needs is not forgotten; afterwards its files go, and nothing knows it.
func TestStages_Forget(t *testing.T) {
	t.Parallel()

	store, made, awaited := apitest.Staged(t)
	r := setup(t, store)

	require.Contains(t, r.want(http.StatusConflict, "DELETE", "/api/v1/stages/"+made[:12], ""),
		"trials of sweep again ("+apitest.NewID(2)+") that have not ended need it; forget it when they have ended, or cancel that sweep")
	require.Contains(t, r.want(http.StatusNotFound, "DELETE", "/api/v1/stages/"+awaited, ""), "has no output")

	store.Exec("UPDATE trials SET state = 'canceled', finished_at = now() WHERE finished_at IS NULL")
	store.AddFile(apitest.AttemptID(1, 1), "base.keras", "weights")
	r.want(http.StatusNoContent, "DELETE", "/api/v1/stages/"+made[:12], "")

	require.Empty(t, stagesOf(r, ""))
	require.ElementsMatch(t, []string{made, awaited}, stagesOf(r, "?sweep="+apitest.NewID(2)), "the keys stay, without outputs")
	require.Equal(t, apitest.AttemptID(1, 1), store.Text("SELECT attempt_id::text FROM output_removals"))
	require.Equal(t, "its stage was forgotten", store.Text("SELECT outputs_removed_why FROM attempts"))
	require.Zero(t, store.Count("artifacts"))
	require.Contains(t, audits(store), "local DELETE /api/v1/stages/:id "+made[:12]+" 127.0.0.1 204")
	r.want(http.StatusNotFound, "DELETE", "/api/v1/stages/"+made, "")
}
