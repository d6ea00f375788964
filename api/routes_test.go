package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// undescribed are the routes that the description leaves out, each with the reason.
var undescribed = map[string]string{
	"GET /api/docs": "the description, for people",
}

// Every route is described, and every described route exists.
func TestRoutes_AreThoseOfTheDescription(t *testing.T) {
	t.Parallel()

	data, err := os.ReadFile("openapi.yaml")
	require.NoError(t, err)
	doc, err := openapi3.NewLoader().LoadFromData(data)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))

	described := make(map[string]bool)

	for path, item := range doc.Paths.Map() {
		root := doc.Servers[0].URL
		if len(item.Servers) > 0 {
			root = item.Servers[0].URL
		}

		for method := range item.Operations() {
			described[method+" "+strings.TrimSuffix(root, "/")+path] = true
		}
	}

	routes := make(map[string]bool)

	for _, route := range setup(t, apitest.Sample(t)).routes() {
		name := route.Method + " " + parameter.ReplaceAllStringFunc(route.Path, func(p string) string { return "{" + p[1:] + "}" })
		if undescribed[name] == "" {
			routes[name] = true
		}
	}

	require.Equal(t, slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(routes)))
}

// strictly reads an answer that has no field which is not described.
func strictly(t *testing.T, body string, to any) {
	t.Helper()

	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(to), body)
}

// Health and readiness match their description in any state.
func TestHealth_IsAsDescribed(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t) // no placer leads
	store.Exec("UPDATE hosts SET disk_bytes = disk_free_bytes * 7")

	r := setup(t, store)

	var (
		health openapi.Health
		ready  openapi.Readiness
	)

	status, body := r.text("GET", "/healthz", "")
	strictly(t, body, &health)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.False(t, health.Ok)
	require.Contains(t, health.Findings, openapi.Finding{Ok: true, Part: "database", What: "answers"})
	require.True(t, slices.ContainsFunc(health.Findings, func(f openapi.Finding) bool { return f.Ok && f.Warn && f.Next != "" }))
	require.True(t, slices.ContainsFunc(health.Findings, func(f openapi.Finding) bool { return !f.Ok && f.Next != "" }))

	status, body = r.text("GET", "/readyz", "")
	strictly(t, body, &ready)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, openapi.Readiness{Ready: true, Parts: map[string]string{"database": "ok", "temporal": "ok"}}, ready)
}
