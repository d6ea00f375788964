package api_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/sweepfile/spec"
	"github.com/berthml/berth/internal/testkit/apitest"
)

func TestAnswers_Gzip(t *testing.T) {
	t.Parallel()

	r := setup(t, apitest.Sample(t))
	trials := "/api/v1/sweeps/" + apitest.NewID(1) + "/trials"

	plain := r.call("GET", trials, "", "Accept-Encoding: identity")
	require.Empty(t, plain.Header.Get("Content-Encoding"))
	require.Contains(t, plain.Header.Values("Vary"), "Accept-Encoding")

	want, err := io.ReadAll(plain.Body)
	require.NoError(t, err)
	require.Equal(t, int64(len(want)), plain.ContentLength)

	for _, accepts := range []string{"gzip", "br, GZIP;q=0.5", "*"} {
		response := r.call("GET", trials, "", "Accept-Encoding: "+accepts)
		require.Equal(t, "gzip", response.Header.Get("Content-Encoding"), accepts)
		require.Less(t, response.ContentLength, int64(len(want)))
		require.NotEqual(t, plain.Header.Get("ETag"), response.Header.Get("ETag"), "a strong tag is of the bytes")

		zipped, err := gzip.NewReader(response.Body)
		require.NoError(t, err)
		got, err := io.ReadAll(zipped)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}

	for _, accepts := range []string{"br", "gzip;q=0", "gzip;q=x", "*, gzip;q=0"} {
		require.Empty(t, r.call("GET", trials, "", "Accept-Encoding: "+accepts).Header.Get("Content-Encoding"), accepts)
	}

	require.Empty(t, r.call("GET", "/api/v1/me", "", "Accept-Encoding: gzip").Header.Get("Content-Encoding"), "short ones are not compressed")
	require.Empty(t, r.call("GET", "/api/v1/openapi.yaml", "", "Accept-Encoding: gzip").Header.Get("Content-Encoding"))
}

func TestSweepSchema(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	token(t, store, "admin") // and editors send none

	response := setup(t, store).call("GET", "/api/v1/sweep-schema.json", "")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "application/schema+json", response.Header.Get("Content-Type"))

	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.JSONEq(t, string(spec.Schema), string(body))
}

// What did not change is not sent again.
func TestAnswers_NotModified(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	sweep := "/api/v1/sweeps/" + apitest.NewID(1)

	for _, path := range []string{"/api/v1/sweeps", sweep, sweep + "/trials", "/api/v1/hosts", "/api/v1/probes"} {
		for _, accepts := range []string{"gzip", "identity"} {
			tag := r.call("GET", path, "", "Accept-Encoding: "+accepts).Header.Get("ETag")
			require.Regexp(t, `^"[A-Za-z0-9_-]{22}(-gzip)?"$`, tag, path)

			for _, named := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
				response := r.call("GET", path, "", "Accept-Encoding: "+accepts, "If-None-Match: "+named)
				require.Equal(t, http.StatusNotModified, response.StatusCode, "%s %s", path, named)
				require.NotEmpty(t, response.Header.Get("ETag"))
				require.Empty(t, response.Header.Get("Content-Encoding"))

				body, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.Empty(t, body)
			}
		}
	}

	tag := r.call("GET", sweep, "").Header.Get("ETag")

	store.Exec("UPDATE sweeps SET reason = 'another'")

	response := r.call("GET", sweep, "", "If-None-Match: "+tag)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NotEqual(t, tag, response.Header.Get("ETag"))

	require.Empty(t, r.call("GET", "/api/v1/sweeps/"+apitest.NewID(77), "").Header.Get("ETag"), "a problem has none")
	require.Empty(t, r.call("POST", "/api/v1/sweep-validations", apitest.SweepFile, asYAML).Header.Get("ETag"))
}

// Streams pass through at once, for clients that take gzip, too.
func TestAnswers_StreamsAreNotHeldBack(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	store.AttemptRuns(apitest.AttemptID(1, 1))
	store.Write(apitest.AttemptID(1, 1), "epoch 1\n")
	r := setup(t, store)

	events := r.subscribe("/api/v1/events", "Accept-Encoding: gzip")
	events.block()
	store.Publish(t, "trial.state", apitest.NewID(1), "a", "running")
	events.requireEvent("change", "1", `"subject":"a"`)

	log := r.subscribe("/api/v1/attempts/"+apitest.AttemptID(1, 1)+"/log?follow=true", "Accept-Encoding: gzip")
	log.block()
	log.requireEvent("piece", "8", "epoch 1")
}
