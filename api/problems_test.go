package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// TestProblems keeps every way to be refused as it is: status and body.
func TestProblems(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	sweep := "/api/v1/sweeps/" + apitest.NewID(1)

	var got strings.Builder

	for _, test := range []struct {
		name, method, path, body string
		headers                  []string
	}{
		{"no such route", "GET", "/api/v1/nothing", "", nil},
		{"no such route outside", "GET", "/nothing", "", nil},
		{"method", "PUT", "/api/v1/sweeps", "", nil},
		{"no such sweep", "GET", "/api/v1/sweeps/ffff", "", nil},
		{"no id at all", "GET", "/api/v1/sweeps/%25", "", nil},
		{"no such trial", "GET", sweep + "/trials/99", "", nil},
		{"trial zero", "GET", sweep + "/trials/0", "", nil},
		{"trial that is no number", "GET", sweep + "/trials/one", "", nil},
		{"no such attempt", "GET", "/api/v1/attempts/" + apitest.NewID(9), "", nil},
		{"short attempt", "GET", "/api/v1/attempts/12", "", nil},
		{"no such probe", "GET", "/api/v1/probes/cccc", "", nil},
		{"no such host", "PATCH", "/api/v1/hosts/other", `{"state":"ready"}`, []string{asJSON}},
		{"bad limit and state", "GET", "/api/v1/sweeps?limit=0&state=odd", "", nil},
		{"unknown parameter", "GET", "/api/v1/sweeps?stat=running", "", nil},
		{"bad cursor", "GET", "/api/v1/sweeps?cursor=nonsense", "", nil},
		{"bad body", "PATCH", sweep, `{"max_parallel":-1,"more":1}`, []string{asJSON}},
		{"empty body", "PATCH", sweep, ``, []string{asJSON}},
		{"no JSON", "PATCH", sweep, `{"max`, []string{asJSON}},
		{"other content", "PATCH", sweep, `a`, []string{"Content-Type: text/plain"}},
		{"bad role", "POST", "/api/v1/tokens", `{"name":"x","role":"king"}`, []string{asJSON}},
		{"ended", "POST", sweep + "/pause", "", nil},
		{"nothing failed", "POST", sweep + "/rerun-failed", "", nil},
		{"no key", "POST", "/api/v1/sweeps", apitest.SweepFile, []string{asYAML}},
		{"bad sweep file", "POST", "/api/v1/sweeps", "name: ''\nimage: A\n", []string{asYAML, "Idempotency-Key: 1"}},
		{"wire", "POST", "/api/v1/sweeps", "{", []string{asJSON, "Idempotency-Key: 1"}},
		{"sweep file type", "POST", "/api/v1/sweeps", "name: a", []string{"Content-Type: text/html", "Idempotency-Key: 1"}},
		{"sweep file zipped", "POST", "/api/v1/sweeps", "name: a", []string{asYAML, "Content-Encoding: gzip", "Idempotency-Key: 1"}},
		{"too large", "POST", "/api/v1/sweeps", strings.Repeat("# comment\n", 110_000), []string{asYAML, "Idempotency-Key: 1"}},
		{"too large to preview", "POST", "/api/v1/sweep-previews", strings.Repeat("# comment\n", 110_000), []string{asYAML}},
		{"too much for the machines", "POST", "/api/v1/sweeps", apitest.SweepFile + "resources: {memory: 64GiB}\n", []string{asYAML, "Idempotency-Key: 1"}},
		{"wrong host", "GET", "/api/v1/sweeps", "", []string{"Host: evil.example"}},
		{"wrong host outside", "GET", "/livez", "", []string{"Host: evil.example:8080"}},
		{"cross-site", "POST", sweep + "/cancel", "", []string{"Sec-Fetch-Site: cross-site", "Origin: https://evil.example"}},
		{"other origin", "POST", sweep + "/cancel", "", []string{"Origin: https://evil.example"}},
		{"nonsense token", "GET", "/api/v1/sweeps", "", []string{"Authorization: Bearer abc"}},
		{"basic authorization", "GET", "/api/v1/sweeps", "", []string{"Authorization: Basic YTpi"}},
	} {
		response := r.call(test.method, test.path, test.body, test.headers...)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)

		require.Equal(t, "application/problem+json", response.Header.Get("Content-Type"), test.name)
		require.GreaterOrEqual(t, response.StatusCode, 400, test.name)
		fmt.Fprintf(&got, "## %s: %d\n%s\n", test.name, response.StatusCode, strings.TrimSpace(string(body)))
	}

	requireGolden(t, "problems.golden", got.String())
	require.Empty(t, store.Updates)
	require.Equal(t, 1, store.Count("sweeps"))
}

// TestKinds maps every kind of error to a status, through a real route.
func TestKinds(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.SweepIs(berth.SweepRunning)

	for kind, status := range map[berth.Kind]int{
		berth.KindInvalid: 400, berth.KindConflict: 409, berth.KindFenced: 409, berth.KindCanceled: 409, berth.KindExhausted: 429,
		berth.KindUnavailable: 503, berth.KindInternal: 500, berth.KindOutOfMemory: 500,
	} {
		store.Change(func() {
			store.ControlErr = func() error { return berth.Errorf(kind, "secret detail") }
		})

		got, body := r.text(http.MethodPost, "/api/v1/sweeps/"+apitest.NewID(1)+"/pause", "")
		require.Equal(t, status, got, kind)
		require.Equal(t, status != 500, strings.Contains(body, "secret detail"), body)
	}
}
