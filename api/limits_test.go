package api_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// limited is a server with limits.
func limited(t *testing.T, store *apitest.Store, limits api.Limits) *running {
	t.Helper()

	return setup(t, store, func(c *api.Config) { c.Limits = limits })
}

// requireProblem makes a request and checks how it is refused.
func (r *running) requireProblem(status int, code, says, method, path, body string, headers ...string) http.Header {
	r.t.Helper()

	response := r.call(method, path, body, headers...)
	require.Equal(r.t, "application/problem+json", response.Header.Get("Content-Type"))

	var problem openapi.Problem

	require.NoError(r.t, json.NewDecoder(response.Body).Decode(&problem))
	require.Equal(r.t, status, response.StatusCode, problem.Detail)
	require.Equal(r.t, code, problem.Code)
	require.Contains(r.t, problem.Detail, says)

	return response.Header
}

func TestLimit_Body(t *testing.T) {
	t.Parallel()

	r := limited(t, apitest.Sample(t), api.Limits{BodyBytes: 2000, SpecBytes: 1000})

	// A sweep file, which has its own limit, and any other body.
	file := apitest.SweepFile + strings.Repeat("#\n", 400)
	r.requireProblem(413, "E_BODY_TOO_LARGE", "larger than 1000 bytes", "POST", "/api/v1/sweeps", file, asYAML, "Idempotency-Key: 1")
	r.requireProblem(413, "E_BODY_TOO_LARGE", "larger than 1000 bytes", "POST", "/api/v1/sweep-previews", file, asYAML)
	r.requireProblem(413, "E_BODY_TOO_LARGE", "larger than 1000 bytes", "POST", "/api/v1/sweep-validations", file, asYAML)

	body := `{"name":"` + strings.Repeat("x", 3000) + `","role":"admin"}`
	r.requireProblem(413, "E_BODY_TOO_LARGE", "larger than 2 KiB", "POST", "/api/v1/tokens", body, asJSON)

	r.want(http.StatusCreated, "POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, "Idempotency-Key: 1")
}

func TestLimit_Streams(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	one, other := token(t, store, "viewer"), token(t, store, "operator")
	r := limited(t, store, api.Limits{Streams: 2})
	log := "/api/v1/attempts/" + apitest.AttemptID(1, 1) + "/log?follow=true"

	store.AttemptRuns(apitest.AttemptID(1, 1))

	first := r.subscribe("/api/v1/events", one)
	second := r.subscribe(log, one)

	for _, path := range []string{"/api/v1/events", log} {
		header := r.requireProblem(429, "E_STREAMS", "2 streams open", "GET", path, "", one)
		require.Equal(t, "10", header.Get("Retry-After"))
	}

	r.subscribe("/api/v1/events", other) // another person's are another's

	r.want(http.StatusOK, "GET", "/api/v1/sweeps", "", one) // other requests go on

	require.NoError(t, first.close())
	require.NoError(t, second.close())
	require.Eventually(t, func() bool {
		response := r.call("GET", "/api/v1/events", "", one)

		return response.StatusCode == http.StatusOK
	}, 10*time.Second, 10*time.Millisecond, "a stream that ended gives its place back")
}

func TestLimit_OpenSweeps(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	one, other := token(t, store, "operator"), token(t, store, "admin")
	r := limited(t, store, api.Limits{OpenSweeps: 2})

	submit := func(who, key string) int {
		status, _ := r.text("POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, who, "Idempotency-Key: "+key)

		return status
	}

	require.Equal(t, http.StatusCreated, submit(one, "1"))
	require.Equal(t, http.StatusCreated, submit(one, "2"))
	r.requireProblem(409, "E_QUOTA", "2 sweeps that have not ended", "POST", "/api/v1/sweeps", apitest.SweepFile, asYAML, one, "Idempotency-Key: 3")
	r.requireProblem(409, "E_QUOTA", "2 sweeps", "POST", "/api/v1/sweeps/"+apitest.NewID(1)+"/clone", "", one, "Idempotency-Key: 3")

	require.Equal(t, http.StatusOK, submit(one, "2"), "the same call again is no new sweep")
	require.Equal(t, http.StatusCreated, submit(other, "1"), "another person's are another's")

	store.Exec("UPDATE sweeps SET state = 'succeeded', finished_at = now() WHERE created_by = 'operator'")
	require.Equal(t, http.StatusCreated, submit(one, "3"))
}

func TestLimit_Rate(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	one, other := token(t, store, "operator"), token(t, store, "viewer")
	r := limited(t, store, api.Limits{Rate: 0.01, Burst: 3})

	for range 3 {
		r.want(http.StatusOK, "GET", "/api/v1/sweeps", "", one)
	}

	header := r.requireProblem(429, "E_RATE", "0.01 requests a second, or 3 at once", "GET", "/api/v1/sweeps", "", one)
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, 100, seconds, 5)

	r.requireProblem(429, "E_RATE", "at once", "POST", "/api/v1/sweeps/"+apitest.NewID(1)+"/pause", "", one)
	r.requireProblem(429, "E_RATE", "at once", "GET", "/api/docs", "", one)
	require.Zero(t, store.Count("audit_log"), "a flood does not fill the audit log")

	r.want(http.StatusOK, "GET", "/api/v1/sweeps", "", other) // another token's are another's

	r.want(http.StatusOK, "GET", "/livez", "") // whether it lives may be asked at any time

	r.want(http.StatusUnauthorized, "GET", "/api/v1/sweeps", "", "Authorization: Bearer berth_wrong")
}

func TestLimit_Page(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	r := limited(t, store, api.Limits{PageRows: 2})
	sweep := "/api/v1/sweeps/" + apitest.NewID(1)

	for _, limit := range []string{"", "?limit=2", "?limit=3", "?limit=500"} {
		_, body := r.text("GET", sweep+"/trials"+limit, "")
		require.Len(t, read[openapi.TrialList](t, body).Data, 2, limit)
		require.NotEmpty(t, read[openapi.TrialList](t, body).NextCursor, limit)
	}

	for _, path := range []string{"/api/v1/sweeps", "/api/v1/probes", sweep + "/attempts", sweep + "/report"} {
		r.want(http.StatusOK, "GET", path+"?limit=500", "")
	}

	r.requireProblem(400, "invalid_request", "", "GET", sweep+"/trials?limit=501", "")
}

func TestLimits_ThatCannotBe(t *testing.T) {
	t.Parallel()

	_, err := api.New(api.Deps{Store: &postgres.Store{}}, api.Config{Limits: api.Limits{Rate: -1}})
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
}
