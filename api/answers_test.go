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

	response := r.call("GET", trials, "", "Accept-Encoding: br, gzip;q=0.5")
	require.Equal(t, "gzip", response.Header.Get("Content-Encoding"))

	zipped, err := gzip.NewReader(response.Body)
	require.NoError(t, err)
	got, err := io.ReadAll(zipped)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))

	require.Empty(t, r.call("GET", trials, "", "Accept-Encoding: gzip;q=0").Header.Get("Content-Encoding"))
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

// Streams pass through at once, for clients that take gzip, too.
func TestAnswers_StreamsAreNotHeldBack(t *testing.T) {
	t.Parallel()

	store, r := sampled(t)
	store.AttemptRuns(apitest.AttemptID(1, 1))
	store.Write(apitest.AttemptID(1, 1), "epoch 1\n")

	events := r.subscribe("/api/v1/events", "Accept-Encoding: gzip")
	events.block()
	store.Publish(t, "trial.state", apitest.NewID(1), "a", "running")
	events.requireEvent("change", "1", `"subject":"a"`)

	log := r.subscribe("/api/v1/attempts/"+apitest.AttemptID(1, 1)+"/log?follow=true", "Accept-Encoding: gzip")
	log.block()
	log.requireEvent("piece", "8", "epoch 1")
}
