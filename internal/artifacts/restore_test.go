package artifacts_test

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// one is a checkpoint with one entry.
type one berth.CheckpointEntry

func (o one) ListCheckpoint(context.Context, string) ([]berth.CheckpointEntry, error) {
	return []berth.CheckpointEntry{berth.CheckpointEntry(o)}, nil
}

// Refused credentials do not mean that the object is damaged.
func TestRestore_TakesRefusedCredentialsForNoDamage(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`))
	}))
	t.Cleanup(server.Close)

	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })

	entry := one{Path: "state", Mode: uint32(fs.FileMode(0o600)), Bytes: 1, Digest: berth.Digest(sha256.Sum256([]byte("1")))}
	err = openS3(t, server.URL, "models", "one").Restore(t.Context(), entry, "x", root, func(int64) {})
	require.ErrorContains(t, err, "it refuses these credentials")
	require.NotErrorIs(t, err, berth.ErrDamaged)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
}

// Restore does not wait for ever for a store that sends half of an object and stops; it
// waits for one that sends it little by little.
func TestRestore_EndsWhenNothingArrives(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")

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

	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })

	entry := one{Path: "state", Mode: 0o600, Bytes: int64(len(text)), Digest: berth.Digest(sha256.Sum256([]byte(text)))}
	store := openS3(t, server.URL, "models", "one")
	store.ReadsStallAfter(3 * time.Second) // all of it takes 5 s

	stalls.Store(true)

	err = store.Restore(t.Context(), entry, "x", root, func(int64) {})
	require.ErrorContains(t, err, "it sent nothing for 3s")
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))

	stalls.Store(false)
	require.NoError(t, store.Restore(t.Context(), entry, "x", root, func(int64) {}))
	require.Equal(t, map[string]string{"state": text}, contentOf(t, dir))
}
