package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/testkit/apitest"
)

const sessionPath = "/api/v1/session"

// secret is the text of a token in a header.
func secret(header string) string { return strings.TrimPrefix(header, "Authorization: Bearer ") }

// login is the body that logs in with the token in a header.
func login(header string) string { return `{"token":"` + secret(header) + `"}` }

// logIn logs in with the token in a header and returns the cookie as a header.
func (r *running) logIn(header string, headers ...string) string {
	r.t.Helper()

	response := r.call("POST", sessionPath, login(header), append(headers, asJSON)...)
	require.Equal(r.t, http.StatusCreated, response.StatusCode)
	require.Len(r.t, response.Cookies(), 1)

	return "Cookie: berth_session=" + response.Cookies()[0].Value
}

// requireUnknown checks that a cookie is not valid. The answer does not drop
// it: by then the browser may have a newer one.
func (r *running) requireUnknown(cookie string) {
	r.t.Helper()

	response := r.call("GET", "/api/v1/sweeps", "", cookie)
	require.Equal(r.t, http.StatusUnauthorized, response.StatusCode)
	require.Empty(r.t, response.Header.Values("Set-Cookie"))
}

func TestSession_StandsForItsToken(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.SweepIs(berth.SweepRunning)
	operator := token(t, store, "operator")
	pause := "/api/v1/sweeps/" + apitest.NewID(1) + "/pause"

	response := r.call("POST", sessionPath, login(operator), asJSON)
	require.Equal(t, http.StatusCreated, response.StatusCode)
	require.Regexp(t, `^berth_session=[A-Za-z0-9_-]{43}; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax$`, response.Header.Get("Set-Cookie"))

	cookie := "Cookie: berth_session=" + response.Cookies()[0].Value

	r.want(http.StatusOK, "POST", pause, "", cookie)

	r.want(http.StatusForbidden, "GET", "/api/v1/tokens", "", cookie) // an operator's session is no administrator's
	r.want(http.StatusForbidden, "DELETE", "/api/v1/hosts/laptop", "", cookie)

	response = r.call("DELETE", sessionPath, "", cookie)
	require.Equal(t, http.StatusNoContent, response.StatusCode)
	require.Equal(t, []string{"berth_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"}, response.Header.Values("Set-Cookie"))
	require.Zero(t, store.Count("sessions"))
	r.requireUnknown(cookie)

	for _, header := range []string{cookie, "X-Nothing: here"} {
		r.want(http.StatusNoContent, "DELETE", sessionPath, "", header) // it is logged out already
	}

	require.Equal(t, []string{
		"operator POST /api/v1/session 127.0.0.1 201",
		"operator POST /api/v1/sweeps/:id/pause " + apitest.SweepID + " 127.0.0.1 200",
		"operator DELETE /api/v1/hosts/:id laptop 127.0.0.1 403",
		"operator DELETE /api/v1/session 127.0.0.1 204",
	}, audits(store), "as of calls with the token; a logout of nobody leaves nothing")
}

// A browser that logs in again has one session, and sessions share their
// token's limits.
func TestSession_TakesNoMoreThanItsToken(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	viewer := token(t, store, "viewer")
	r := limited(t, store, api.Limits{Rate: 0.01, Burst: 3})

	first := r.logIn(viewer)
	second := r.logIn(viewer, first)
	require.Equal(t, 1, store.Count("sessions"))
	r.requireUnknown(first)

	r.want(http.StatusOK, "GET", "/api/v1/sweeps", "", second)

	r.requireProblem(429, "E_RATE", "3 at once", "GET", "/api/v1/sweeps", "", second)
	r.requireProblem(429, "E_RATE", "3 at once", "GET", "/api/v1/sweeps", "", viewer)
	r.requireProblem(429, "E_RATE", "3 at once", "POST", sessionPath, login(viewer), asJSON)
	require.Len(t, audits(store), 2, "a flood does not fill the audit log")
}

func TestSession_EndsWithItsTokenAndItsTime(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	viewer, operator := token(t, store, "viewer"), token(t, store, "operator")

	cookie := r.logIn(viewer)

	require.NoError(t, store.RevokeToken(t.Context(), tokenID(store, "viewer")))
	r.requireUnknown(cookie)
	r.requireProblem(401, "unauthorized", "log in again with a valid token", "GET", "/api/v1/me", "", cookie)

	cookie = r.logIn(operator, cookie) // an old session's cookie does not prevent a login

	store.Exec("UPDATE sessions SET created_at = created_at - interval '1 day', expires_at = now() - interval '1 second'")
	r.requireUnknown(cookie)
	r.requireUnknown("Cookie: berth_session=")
	r.logIn(operator, cookie)

	soon := token(t, store, "admin", "expires_at = now() + interval '1 hour'")
	_, body := r.text("POST", sessionPath, login(soon), asJSON)
	require.WithinDuration(t, time.Now().Add(time.Hour), *read[openapi.Me](t, body).ExpiresAt, time.Minute, "no longer than its token")
}

func TestSession_AuthorizationWins(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	viewer, admin := token(t, store, "viewer"), token(t, store, "admin")
	cookie := r.logIn(admin)

	r.want(http.StatusOK, "GET", "/api/v1/tokens", "", cookie)

	r.want(http.StatusForbidden, "GET", "/api/v1/tokens", "", cookie, viewer)

	response := r.call("GET", "/api/v1/tokens", "", cookie, "Authorization: Bearer berth_wrong")
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
	require.Empty(t, response.Header.Values("Set-Cookie"), "the session is as good as before")

	r.want(http.StatusOK, "GET", "/api/v1/sweeps", "", "Cookie: berth_session=wrong", viewer)
}

func TestSession_WrongTokens(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	ended := token(t, store, "admin", revoked)
	valid := token(t, store, "viewer")

	for _, wrong := range []string{"berth_wrong", "nonsense", ended} {
		status, body := r.text("POST", sessionPath, login(wrong), asJSON, valid) // the header is not asked
		require.Equal(t, http.StatusUnauthorized, status, body)
		require.Contains(t, body, "The token is not valid")
		require.NotContains(t, body, secret(wrong))
	}

	require.Zero(t, store.Count("audit_log"))
	r.requireProblem(401, "unauthorized", "berth token create", "GET", "/api/v1/me", "")
	r.requireProblem(401, "unauthorized", "log in again", "GET", "/api/v1/me", "", "Cookie: berth_session=wrong")
	r.logIn("Authorization: Bearer " + secret(valid) + `\n`)
}

func TestSession_BodiesThatAreNone(t *testing.T) {
	t.Parallel()

	r := setup(t, apitest.Sample(t))

	r.requireProblem(400, "invalid_request", "openapi.yaml", "POST", sessionPath, "", asJSON)
	r.requireProblem(400, "invalid_request", "openapi.yaml", "POST", sessionPath, `{"token":""}`, asJSON)
	r.requireProblem(400, "invalid_request", "openapi.yaml", "POST", sessionPath, `{"token":"a","more":1}`, asJSON)
	r.requireProblem(413, "E_BODY_TOO_LARGE", "4 KiB", "POST", sessionPath, `{"token":"`+strings.Repeat("x", 5000)+`"}`, asJSON)
	r.requireProblem(415, "E_CONTENT_TYPE", "application/json", "POST", sessionPath, "token=a", "Content-Type: application/x-www-form-urlencoded")
}

// A proxy that speaks TLS for the server passes the page's origin on.
func TestSession_SecureOverTLS(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	viewer := token(t, store, "viewer")

	for origin, secure := range map[string]bool{"https://localhost": true, "http://localhost": false} {
		response := r.call("POST", sessionPath, login(viewer), asJSON, "Host: localhost", "Origin: "+origin, "Sec-Fetch-Site: same-origin")
		require.Equal(t, http.StatusCreated, response.StatusCode)
		require.Equal(t, secure, strings.Contains(response.Header.Get("Set-Cookie"), "; Secure"), origin)
	}
}

// What nginx asks for by auth_basic a browser sends with every call.
func TestSession_BesideAProxysPassword(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	viewer := token(t, store, "viewer")
	basic := "Authorization: Basic dTpw"
	cookie := r.logIn(viewer, basic)

	body := r.want(http.StatusOK, "GET", "/api/v1/me", "", cookie, basic)
	require.Equal(t, "viewer", read[openapi.Me](t, body).Name)

	r.requireProblem(401, "unauthorized", "Bearer", "GET", "/api/v1/me", "", basic)
}

// Cookies know no ports: two servers on one host see each other's.
func TestSession_TwoServersOnOneHost(t *testing.T) {
	t.Parallel()

	named := func(id string) func(*api.Config) {
		return func(c *api.Config) { c.Installation = id }
	}
	storeA, storeB := apitest.Sample(t), apitest.Sample(t)
	a, b := setup(t, storeA, named("0a0a0a0a-1111")), setup(t, storeB, named("0b0b0b0b-2222"))

	response := a.call("POST", sessionPath, login(token(t, storeA, "admin")), asJSON)
	require.Equal(t, http.StatusCreated, response.StatusCode)
	require.Equal(t, "berth_session_0a0a0a0a", response.Cookies()[0].Name)

	cookies := "Cookie: berth_session_0a0a0a0a=" + response.Cookies()[0].Value

	status, body := b.text("GET", "/api/v1/me", "", cookies)
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, "local", read[openapi.Me](t, body).Name, "a server without tokens asks for none")

	response = b.call("POST", sessionPath, login(token(t, storeB, "viewer")), asJSON, cookies)
	cookies += "; " + response.Cookies()[0].Name + "=" + response.Cookies()[0].Value

	for r, name := range map[*running]string{a: "admin", b: "viewer"} {
		require.Equal(t, name, get[openapi.Me](r, "/api/v1/me", cookies).Name)
	}
}

// Another program on the host can set a cookie of the same name.
func TestSession_TwoCookies(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	cookie := r.logIn(token(t, store, "viewer"))
	both := "Cookie: berth_session=x; " + strings.TrimPrefix(cookie, "Cookie: ")

	r.want(http.StatusOK, "GET", "/api/v1/me", "", both)

	r.want(http.StatusNoContent, "DELETE", sessionPath, "", both)
	require.Zero(t, store.Count("sessions"))
}

// During an outage of the database a failed login does not end the session, and
// a logout does not keep it.
func TestSession_WithoutTheDatabase(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	viewer := token(t, store, "viewer")
	cookie := r.logIn(viewer)

	store.Exec("ALTER TABLE sessions RENAME TO away")

	r.want(http.StatusInternalServerError, "POST", sessionPath, login(viewer), asJSON, cookie)

	store.Exec("ALTER TABLE away RENAME TO sessions")
	r.want(http.StatusOK, "GET", "/api/v1/me", "", cookie) // a login that failed ends nothing
	store.Exec("ALTER TABLE sessions RENAME TO away")

	response := r.call("DELETE", sessionPath, "", cookie)
	require.Equal(t, http.StatusInternalServerError, response.StatusCode)
	require.Equal(t, []string{"berth_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"}, response.Header.Values("Set-Cookie"))
}

func TestMe(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)

	body := r.want(http.StatusOK, "GET", "/api/v1/me", "")
	require.JSONEq(t, `{"name":"local","role":"admin","known_by":"local"}`, body)
	require.Equal(t, "private, no-cache", r.call("GET", "/api/v1/me", "").Header.Get("Cache-Control"), "for any setting of a proxy's cache")

	viewer, operator := token(t, store, "viewer"), token(t, store, "operator")

	_, body = r.text("GET", "/api/v1/me", "", viewer)
	require.JSONEq(t, `{"name":"viewer","role":"viewer","known_by":"token"}`, body)

	me := get[openapi.Me](r, "/api/v1/me", r.logIn(operator))
	require.NotNil(t, me.ExpiresAt)
	require.WithinDuration(t, time.Now().Add(30*24*time.Hour), *me.ExpiresAt, time.Minute)

	me.ExpiresAt = nil
	require.Equal(t, openapi.Me{Name: "operator", Role: openapi.Operator, KnownBy: openapi.KnownBySession}, me)

	_, body = r.text("POST", sessionPath, login(viewer), asJSON)
	require.Equal(t, openapi.KnownBySession, read[openapi.Me](t, body).KnownBy, "a login says the same")
}

func TestServerInfo(t *testing.T) {
	t.Parallel()

	_, body := setup(t, apitest.Sample(t)).text("GET", "/api/v1/server", "")
	require.JSONEq(t, `{
		"version": "(devel)", "token_needed": false, "temporal": {"namespace": "default"},
		"limits": {"sweep_file_bytes": 1048576, "page_rows": 500, "requests_per_second": 200, "requests_at_once": 400, "streams": 50},
		"retention": {}
	}`, body)

	store := apitest.Sample(t)
	viewer := token(t, store, "viewer")
	r := setup(t, store, func(c *api.Config) {
		c.Version, c.TemporalUI, c.TemporalNamespace = "v1.2.3", "http://localhost:8233", "lab"
		c.Limits = api.Limits{SpecBytes: 1000, PageRows: 50, Rate: 2.5, Burst: 10, Streams: 4}
		c.Retention = berth.Retention{Sweeps: 72 * time.Hour, Outputs: time.Hour}
	})

	_, body = r.text("GET", "/api/v1/server", "", viewer)
	require.JSONEq(t, `{
		"version": "v1.2.3", "token_needed": true, "temporal": {"namespace": "lab", "url": "http://localhost:8233"},
		"limits": {"sweep_file_bytes": 1000, "page_rows": 50, "requests_per_second": 2.5, "requests_at_once": 10, "streams": 4},
		"retention": {"sweeps_seconds": 259200, "outputs_seconds": 3600}
	}`, body)
}
