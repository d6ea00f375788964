package artifacts_test

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// Refused credentials do not mean that the object is damaged.
func TestRestore_TakesRefusedCredentialsForNoDamage(t *testing.T) { //nolint:paralleltest // t.Setenv
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`))
	}))
	t.Cleanup(server.Close)

	err := restore(t, openS3(t, server.URL, "models", "one"), berth.StoredCheckpoint{Bytes: 1}, t.TempDir())
	require.ErrorContains(t, err, "it refuses these credentials")
	require.NotErrorIs(t, err, berth.ErrDamaged)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
}

// Restore does not wait for ever for a store that sends half of an object and stops; it
// waits for one that sends it little by little.
func TestRestore_EndsWhenNothingArrives(t *testing.T) { //nolint:paralleltest // t.Setenv
	const text = "0123456789"

	var stalls atomic.Bool

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))

		for n := range len(text) {
			if stalls.Load() && n == len(text)/2 {
				<-r.Context().Done()

				return
			}

			_, _ = w.Write([]byte{text[n]})
			w.(http.Flusher).Flush() //nolint:forcetypeassert // net/http's is one

			select {
			case <-time.After(500 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)

	of := berth.StoredCheckpoint{Bytes: int64(len(text)), Digest: berth.Digest(sha256.Sum256([]byte(text)))}
	store := openS3(t, server.URL, "models", "one")
	store.ReadsStallAfter(3 * time.Second) // all of it takes 5 s

	stalls.Store(true)

	err := restore(t, store, of, t.TempDir())
	require.ErrorContains(t, err, "it sent nothing for 3s")
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))

	stalls.Store(false)
	require.ErrorContains(t, restore(t, store, of, t.TempDir()), "it is no tar", "all of it has come")
}
