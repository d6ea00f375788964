package api_test

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/api/apitest"
)

// public are the routes that ask nobody who they are.
var public = map[string]bool{"/livez": true, "/readyz": true}

var parameter = regexp.MustCompile(`:[a-z]+`)

// token makes a token of a role, valid or not.
func token(t *testing.T, store *apitest.Store, role string, valid bool) string {
	t.Helper()

	text, hash, prefix := api.NewToken()
	made, err := store.CreateToken(t.Context(), berth.Token{Name: role, Prefix: prefix, Role: role}, hash)
	require.NoError(t, err)

	if !valid {
		require.NoError(t, store.RevokeToken(t.Context(), made.ID))
	}

	return "Authorization: Bearer " + text
}

// TestEveryRouteIsGuarded walks all registered routes with every way to be
// somebody who may not: CVE-2026-0545 of MLflow was a route that was forgotten.
func TestEveryRouteIsGuarded(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	viewer, operator := token(t, store, "viewer", true), token(t, store, "operator", true)
	revoked := token(t, store, "admin", false)
	r := setup(t, store)

	routes, err := api.Routes(r.server)
	require.NoError(t, err)
	require.Greater(t, len(routes), 25)

	for _, route := range routes {
		path := parameter.ReplaceAllString(route.Path, "1")
		name := route.Method + " " + route.Path
		status := func(headers ...string) int {
			got, body := r.text(route.Method, path, "{}", append(headers, asJSON)...)
			require.Contains(t, body, `"request_id"`, name)

			return got
		}

		require.Equal(t, http.StatusMisdirectedRequest, status("Host: rebound.example", operator), name)

		if route.Method != http.MethodGet {
			require.Equal(t, http.StatusForbidden, status("Origin: https://evil.example", operator), name)
			require.Equal(t, http.StatusForbidden, status("Sec-Fetch-Site: cross-site", operator), name)
			require.Equal(t, http.StatusForbidden, status(viewer), name)
		}

		if public[route.Path] {
			continue
		}

		require.Equal(t, http.StatusUnauthorized, status(), name)
		require.Equal(t, http.StatusUnauthorized, status(revoked), name)
		require.Equal(t, http.StatusUnauthorized, status("Authorization: Bearer berth_wrong"), name)

		if strings.Contains(route.Path, "/tokens") {
			require.Equal(t, http.StatusForbidden, status(operator), name)
		}
	}

	require.Empty(t, store.Updates)
	require.Len(t, store.Sweeps, 1)
}

func TestRoles(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	store.Sweeps[0].State = berth.SweepRunning
	viewer, operator, admin := token(t, store, "viewer", true), token(t, store, "operator", true), token(t, store, "admin", true)
	r := setup(t, store)
	pause := "/api/v1/sweeps/" + apitest.NewID(1) + "/pause"

	for _, test := range []struct {
		token, method, path string
		want                int
	}{
		{viewer, "GET", "/api/v1/sweeps", 200},
		{viewer, "GET", "/api/docs", 200},
		{viewer, "GET", "/api/v1/openapi.yaml", 200},
		{viewer, "POST", pause, 403},
		{operator, "POST", pause, 200},
		{operator, "GET", "/api/v1/tokens", 403},
		{admin, "GET", "/api/v1/tokens", 200},
		{admin, "POST", pause, 200},
	} {
		got, body := r.text(test.method, test.path, "", test.token)
		require.Equal(t, test.want, got, "%s %s: %s", test.method, test.path, body)
	}

	require.Equal(t, []berth.AuditEntry{
		{Actor: "viewer", Action: "POST /api/v1/sweeps/:id/pause", Object: apitest.NewID(1), IP: "127.0.0.1", Result: "403"},
		{Actor: "operator", Action: "POST /api/v1/sweeps/:id/pause", Object: apitest.NewID(1), IP: "127.0.0.1", Result: "200"},
		{Actor: "admin", Action: "POST /api/v1/sweeps/:id/pause", Object: apitest.NewID(1), IP: "127.0.0.1", Result: "200"},
	}, store.Audits)
}

func TestTokenLifeEndsLocalAccess(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	r := setup(t, store)

	status, body := r.text("POST", "/api/v1/tokens", `{"name":"ci","role":"viewer"}`, asJSON)
	require.Equal(t, http.StatusConflict, status, body) // nobody could make an admin's any more

	status, body = r.text("POST", "/api/v1/tokens", `{"name":"me","role":"admin"}`, asJSON)
	require.Equal(t, http.StatusCreated, status, body)

	secret := regexp.MustCompile(`berth_[A-Za-z0-9_-]{43}`).FindString(body)
	require.NotEmpty(t, secret, body)

	status, _ = r.text("GET", "/api/v1/sweeps", "")
	require.Equal(t, http.StatusUnauthorized, status)

	status, body = r.text("GET", "/api/v1/tokens", "", "Authorization: Bearer "+secret)
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, body, secret)

	status, _ = r.text("DELETE", "/api/v1/tokens/"+store.Tokens[0].ID[:8], "", "Authorization: Bearer "+secret)
	require.Equal(t, http.StatusNoContent, status)

	status, _ = r.text("GET", "/api/v1/sweeps", "", "Authorization: Bearer "+secret)
	require.Equal(t, http.StatusUnauthorized, status)

	status, _ = r.text("GET", "/api/v1/sweeps", "")
	require.Equal(t, http.StatusOK, status)
}

func TestOtherAddressNeedsToken(t *testing.T) {
	t.Parallel()

	store := apitest.Sample()
	server, err := api.New(api.Deps{Store: store, Control: store, Images: store, Log: slog.New(slog.DiscardHandler)}, api.Config{Address: "0.0.0.0:0"})
	require.NoError(t, err)

	err = server.Run(t.Context())
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	require.ErrorContains(t, err, "berth token create")
	require.Empty(t, server.Addr())

	admin := token(t, store, "admin", true)
	r := setup(t, store, func(c *api.Config) {
		c.Address = "0.0.0.0:0"
		c.AllowedHosts = []string{"berth.lan"}
	})
	r.url = strings.Replace(r.url, "[::]", "127.0.0.1", 1)

	status, _ := r.text("GET", "/api/v1/sweeps", "", "Host: berth.lan:8080", admin)
	require.Equal(t, http.StatusOK, status)

	require.NoError(t, store.RevokeToken(context.Background(), store.Tokens[0].ID))

	status, _ = r.text("GET", "/api/v1/sweeps", "") // not local: others can reach it
	require.Equal(t, http.StatusUnauthorized, status)
}
