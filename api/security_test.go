package api_test

import (
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// needs is the role that each route needs; the first four need none. A route
// missing here fails the test, so that none is forgotten.
var needs = map[string]string{
	"GET /livez":  "",
	"GET /readyz": "",

	"DELETE /api/v1/session": "",
	"POST /api/v1/session":   "", // the token is in the body

	"GET /api/docs":                                  "viewer",
	"GET /api/v1/attempts/:id":                       "viewer",
	"GET /api/v1/attempts/:id/log":                   "viewer",
	"GET /api/v1/attempts/:id/metrics":               "viewer",
	"GET /api/v1/attempts/:id/memory":                "viewer",
	"GET /api/v1/events":                             "viewer",
	"GET /healthz":                                   "viewer",
	"GET /api/v1/hosts":                              "viewer",
	"GET /api/v1/hosts/:id/usage":                    "viewer",
	"GET /api/v1/hosts/:id":                          "viewer",
	"GET /api/v1/me":                                 "viewer",
	"GET /api/v1/openapi.yaml":                       "viewer",
	"GET /api/v1/probes":                             "viewer",
	"GET /api/v1/probes/:id":                         "viewer",
	"GET /api/v1/server":                             "viewer",
	"GET /api/v1/stages":                             "viewer",
	"GET /api/v1/stages/:id":                         "viewer",
	"GET /api/v1/sweeps":                             "viewer",
	"GET /api/v1/sweeps/:id":                         "viewer",
	"GET /api/v1/sweeps/:id/attempts":                "viewer",
	"GET /api/v1/sweeps/:id/export":                  "viewer",
	"GET /api/v1/sweeps/:id/insight":                 "viewer",
	"GET /api/v1/sweeps/:id/report":                  "viewer",
	"GET /api/v1/sweeps/:id/trials":                  "viewer",
	"GET /api/v1/sweeps/:id/trials/:number":          "viewer",
	"GET /api/v1/sweep-schema.json":                  "", // editors send no token
	"GET /api/v1/leases":                             "viewer",
	"GET /api/v1/queue":                              "viewer",
	"GET /api/v1/sweeps/:id/metrics":                 "viewer",
	"GET /api/v1/sweeps/:id/metric-names":            "viewer",
	"GET /api/v1/sweeps/:id/failures":                "viewer",
	"GET /api/v1/sweeps/:id/trials/:number/attempts": "viewer",
	"GET /api/v1/trials/:id/files":                   "viewer",
	"GET /api/v1/trials/:id/files/*path":             "viewer",
	"DELETE /api/v1/hosts/:id":                       "admin", // it frees others' leases
	"DELETE /api/v1/probes/:id":                      "operator",
	"DELETE /api/v1/stages/:id":                      "operator",
	"DELETE /api/v1/sweeps/:id":                      "operator",
	"PATCH /api/v1/devices/:id":                      "operator",
	"PATCH /api/v1/hosts/:id":                        "operator",
	"PATCH /api/v1/sweeps/:id":                       "operator",
	"PATCH /api/v1/sweeps/:id/trials/:number":        "operator",
	"POST /api/v1/sweep-previews":                    "operator",
	"POST /api/v1/sweep-validations":                 "operator",
	"POST /api/v1/sweeps":                            "operator",
	"POST /api/v1/sweeps/:id/cancel":                 "operator",
	"POST /api/v1/sweeps/:id/clone":                  "operator",
	"POST /api/v1/sweeps/:id/pause":                  "operator",
	"POST /api/v1/sweeps/:id/rerun-failed":           "operator",
	"POST /api/v1/sweeps/:id/resume":                 "operator",
	"POST /api/v1/sweeps/:id/stop":                   "operator",
	"GET /api/v1/tokens":                             "admin",
	"POST /api/v1/tokens":                            "admin",
	"DELETE /api/v1/tokens/:id":                      "admin",
	"GET /api/v1/secrets":                            "viewer",
	"PUT /api/v1/secrets/:name":                      "admin",
	"DELETE /api/v1/secrets/:name":                   "admin",
}

var parameter = regexp.MustCompile(`[:*][a-z]+`)

// token makes a token of a role, changed before it is stored.
func token(t *testing.T, store *apitest.Store, role string, change ...string) string {
	t.Helper()

	text, hash, prefix := api.NewToken()

	made, err := store.CreateToken(t.Context(), berth.Token{Name: role, Prefix: prefix, Role: role}, 0, hash)
	require.NoError(t, err)

	for _, c := range change {
		store.Exec("UPDATE api_tokens SET "+c+" WHERE id = $1", made.ID)
	}

	return "Authorization: Bearer " + text
}

// Changes of a token.
const (
	revoked = "revoked_at = now()"
	expired = "expires_at = now() - interval '1 second'"
)

// tokenID is the id of the token of a role.
func tokenID(store *apitest.Store, role string) string {
	return store.Text("SELECT id::text FROM api_tokens WHERE role = $1", role)
}

// routes are all that are registered.
func (r *running) routes() map[string]gin.RouteInfo {
	r.t.Helper()

	list, err := api.Routes(r.server)
	require.NoError(r.t, err)

	routes := make(map[string]gin.RouteInfo)
	for _, route := range list {
		routes[route.Method+" "+route.Path] = route
	}

	return routes
}

// TestEveryRouteIsGuarded walks all registered routes as every kind of
// unauthorized caller: CVE-2026-0545 of MLflow was a forgotten route.
func TestEveryRouteIsGuarded(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	viewer, operator, admin := token(t, store, "viewer"), token(t, store, "operator"), token(t, store, "admin")
	wrong := map[string]string{
		"none":        "X-Nothing: here",
		"unknown":     "Authorization: Bearer berth_wrong",
		"empty":       "Authorization: Bearer ",
		"other kind":  "Authorization: Basic YTpi",
		"revoked":     token(t, store, "admin", revoked),
		"expired":     token(t, store, "admin", expired),
		"as a cookie": strings.Replace(admin, "Authorization: Bearer ", "Cookie: berth_session=", 1),
		"a session":   "Cookie: berth_session=wrong",
	}

	for name, route := range r.routes() {
		role, listed := needs[name]
		require.True(t, listed, "say in needs who may use %s", name)

		path := parameter.ReplaceAllString(route.Path, "1")
		status := func(headers ...string) int {
			got, body := r.text(route.Method, path, "{}", append(headers, asJSON)...)
			require.Contains(t, body, `"request_id"`, name)

			return got
		}

		require.Equal(t, http.StatusMisdirectedRequest, status("Host: rebound.example", admin), name)

		if route.Method != http.MethodGet {
			require.Equal(t, http.StatusForbidden, status("Origin: https://evil.example", admin), name)
			require.Equal(t, http.StatusForbidden, status("Sec-Fetch-Site: cross-site", admin), name)
			require.Equal(t, http.StatusForbidden, status("Sec-Fetch-Site: same-site", admin), name)
		}

		if role == "" {
			continue
		}

		for who, header := range wrong {
			require.Equal(t, http.StatusUnauthorized, status(header), "%s with a token that is: %s", name, who)
		}

		if role != "viewer" {
			require.Equal(t, http.StatusForbidden, status(viewer), name)
		}

		if role == "admin" {
			require.Equal(t, http.StatusForbidden, status(operator), name)
		}
	}

	for name := range needs {
		require.Contains(t, r.routes(), name)
	}

	require.Empty(t, store.Updates)
	require.Equal(t, 1, store.Count("sweeps"))
}

// TestLoopbackWithoutTokens: a local caller is the machine's owner, but a page
// in the owner's browser is not, whatever method it uses (CVE-2026-27482 of Ray
// was a forgotten DELETE).
func TestLoopbackWithoutTokens(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)

	for _, host := range []string{"rebound.example", "rebound.example:8080", "127.0.0.1.rebound.example", "localhost.example", "169.254.169.254", "[::2]:1"} {
		r.want(http.StatusMisdirectedRequest, "DELETE", "/api/v1/sweeps/1", "", "Host: "+host)
	}

	for _, header := range []string{"Origin: https://evil.example", "Origin: null", "Origin: http://localhost:1", "Sec-Fetch-Site: cross-site"} {
		r.want(http.StatusForbidden, "DELETE", "/api/v1/sweeps/1", "", header)
	}

	require.Empty(t, store.Updates)
	require.Zero(t, store.Count("api_tokens"))
	require.Equal(t, 1, store.Count("sweeps"))

	for _, host := range []string{"localhost", "LOCALHOST:1", "127.0.0.1:1", "[::1]:80", "localhost."} {
		r.want(http.StatusOK, "GET", "/api/v1/sweeps", "", "Host: "+host)
	}
}

// TestUnknownIDs: an unknown id answers not found on each resource, and a
// malformed id is no error of ours.
func TestUnknownIDs(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)

	bodies := map[string]string{
		"PATCH /api/v1/sweeps/:id":                `{"max_parallel":2}`,
		"PATCH /api/v1/sweeps/:id/trials/:number": `{"note":"x"}`,
		"PATCH /api/v1/hosts/:id":                 `{"state":"ready"}`,
		"PATCH /api/v1/devices/:id":               `{"state":"ready"}`,
	}

	queries := map[string]string{"GET /api/v1/sweeps/:id/metrics": "?name=loss"}

	for name, route := range r.routes() {
		if !strings.Contains(route.Path, ":id") {
			continue
		}

		for _, id := range []string{apitest.NewID(99), "ffffffff", "0", "..%2f..%2fetc", "%00", "'", "%25", strings.Repeat("f", 300), "-1", "NaN"} {
			path := strings.Replace(strings.Replace(route.Path, ":id", id, 1), ":number", "1", 1) + queries[name]
			status, body := r.text(route.Method, path, bodies[name], asJSON, "Idempotency-Key: 1")
			require.Contains(t, []int{http.StatusNotFound, http.StatusBadRequest}, status, "%s %s: %s", name, id, body)

			if id == apitest.NewID(99) {
				require.Equal(t, http.StatusNotFound, status, "%s: %s", name, body)
			}
		}
	}

	require.Empty(t, store.Updates)
	require.Equal(t, 1, store.Count("sweeps"))
}

func TestTokenLifeEndsLocalAccess(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)

	r.want(http.StatusConflict, "POST", "/api/v1/tokens", `{"name":"ci","role":"viewer"}`, asJSON) // an admin's token could not be made again

	body := r.want(http.StatusCreated, "POST", "/api/v1/tokens", `{"name":"me","role":"admin"}`, asJSON)

	secret := regexp.MustCompile(`berth_[A-Za-z0-9_-]{43}`).FindString(body)
	require.NotEmpty(t, secret, body)

	r.want(http.StatusUnauthorized, "GET", "/api/v1/sweeps", "")

	body = r.want(http.StatusOK, "GET", "/api/v1/tokens", "", "Authorization: Bearer "+secret)
	require.NotContains(t, body, secret)

	r.want(http.StatusNoContent, "DELETE", "/api/v1/tokens/"+tokenID(store, "admin")[:8], "", "Authorization: Bearer "+secret)

	r.want(http.StatusUnauthorized, "GET", "/api/v1/sweeps", "", "Authorization: Bearer "+secret)

	body = r.want(http.StatusUnauthorized, "GET", "/api/v1/sweeps", "") // the end of the last token makes no caller an administrator
	require.Contains(t, body, "berth token create NAME --role admin --postgres-url")
}

// TestLocalTrustEndsAtAProxy: a proxy on the machine calls from loopback for
// any client, so requests through one need a token even where none exists.
func TestLocalTrustEndsAtAProxy(t *testing.T) {
	t.Parallel()

	r := setup(t, apitest.Sample(t), func(c *api.Config) { c.AllowedHosts = []string{"berth.lan"} })

	for _, header := range []string{
		"X-Forwarded-For: 203.0.113.9", "X-Forwarded-Host: berth.lan", "X-Forwarded-Proto: https", "X-Real-Ip: 203.0.113.9",
		"Forwarded: for=203.0.113.9", "Via: 1.1 proxy", "Host: berth.lan",
	} {
		body := r.want(http.StatusUnauthorized, "GET", "/api/v1/sweeps", "", header)
		require.Contains(t, body, "berth token create", header)
	}

	r.want(http.StatusOK, "GET", "/api/v1/sweeps", "")
}

// TestRefusedCallersLeaveNothing: a caller without a token can fill neither the
// audit log nor the log.
func TestRefusedCallersLeaveNothing(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	operator := token(t, store, "operator")

	var log safeLog

	r := setupLogged(t, store, &log)
	long := "/api/v1/sweeps/" + strings.Repeat("f", 60<<10) + "/pause"

	for range 100 {
		r.want(http.StatusUnauthorized, "POST", long, "", "Authorization: Bearer berth_wrong")
	}

	require.Zero(t, store.Count("audit_log"))
	require.Equal(t, 1, strings.Count(log.String(), "refused callers without a valid token"), "one line a minute")
	require.Less(t, len(log.String()), 4<<10)

	r.text("POST", long, "", operator)
	require.Equal(t, 1, store.Count("audit_log"))
	require.LessOrEqual(t, len(audits(store)[0]), 300)
}

func TestOtherAddressNeedsToken(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	server, err := api.New(api.Deps{Store: store.Store, Temporal: store, Log: slog.New(slog.DiscardHandler)}, api.Config{Address: "0.0.0.0:0"})
	require.NoError(t, err)

	err = server.Run(t.Context())
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	require.ErrorContains(t, err, "berth token create")
	require.Empty(t, server.Addr())

	admin := token(t, store, "admin")
	r := setup(t, store, func(c *api.Config) {
		c.Address = "0.0.0.0:0"
		c.AllowedHosts = []string{" Berth.LAN.:8443"} // in any case, and with a port, as people type it
	})
	r.url = strings.Replace(r.url, "[::]", "127.0.0.1", 1)

	r.want(http.StatusOK, "GET", "/api/v1/sweeps", "", "Host: BERTH.lan:8080", admin)
	r.want(http.StatusMisdirectedRequest, "GET", "/api/v1/sweeps", "", "Host: other.lan", admin)

	require.NoError(t, store.RevokeToken(t.Context(), tokenID(store, "admin")))

	status, _ := r.text("GET", "/api/v1/sweeps", "") // not local: others can reach it
	require.Equal(t, http.StatusUnauthorized, status)
}

// The intended object may be gone already: then a short name is the beginning of another's
// id. A removal wants a whole name or id, or as much of the id as lists show.
func TestRemovals_WantMoreThanTheBeginningOfAnID(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	admin := token(t, store, "admin")

	body := r.want(http.StatusConflict, "DELETE", "/api/v1/hosts/laptop", "", admin)
	require.Contains(t, body, "its worker answers")
	store.Exec("UPDATE hosts SET last_seen_at = now() - interval '1 day'")

	host, made := apitest.HostID, tokenID(store, "admin")

	for _, path := range []string{"/api/v1/hosts/" + host[:1], "/api/v1/hosts/" + host[:7], "/api/v1/tokens/" + made[:1], "/api/v1/tokens/" + made[:7]} {
		body = r.want(http.StatusBadRequest, "DELETE", path, "", admin)
		require.Contains(t, body, "at least the 8 characters of its id", path)
	}

	r.want(http.StatusNoContent, "DELETE", "/api/v1/hosts/laptop", "", admin)

	r.want(http.StatusNoContent, "DELETE", "/api/v1/tokens/"+made[:8], "", admin)
}
