package artifacts_test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/artifacts"
)

// s3 is a server that speaks as S3 does, with a bucket "models".
func s3(t *testing.T) (endpoint string) {
	t.Helper()

	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("models"))

	server := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.StdLog(log.New(io.Discard, "", 0)))).Server())
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)

	return server.URL
}

func openS3(t *testing.T, endpoint, bucket, installation string) *artifacts.Store {
	t.Helper()

	// Credentials that the client needs. The server ignores them.
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")

	store, err := artifacts.Open(t.Context(), "s3://"+bucket+"?region=eu-west-1&use_path_style=true&endpoint="+endpoint, installation, marks{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })

	return store
}

func TestStore_OnS3(t *testing.T) { //nolint:paralleltest // t.Setenv
	endpoint := s3(t)
	conform(t, func(installation string) *artifacts.Store { return openS3(t, endpoint, "models", installation) })

	err := openS3(t, endpoint, "missing", "one").Ready(t.Context())
	require.Equal(t, berth.KindInvalid, berth.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "there is no such bucket")

	err = openS3(t, "http://127.0.0.1:1", "models", "one").Ready(t.Context())
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)
}

func TestUploaderAndCleaner_OnS3(t *testing.T) { //nolint:paralleltest // t.Setenv
	endpoint := s3(t)
	b := setup(t)
	b.store = openS3(t, endpoint, "models", "one")
	b.uploader = b.newUploader(b.db)

	content := map[string]string{"model/weights.h5": "weights", "empty": "", "ünï\n code": "x"}
	trial, attempt := b.ended(content)
	b.look(t.Context())
	require.Equal(t, berth.FilesStored, b.set(trial).State)
	require.Equal(t, content, b.stored(attempt))

	b.deleteSweep()

	require.Zero(t, b.clean(), "they are too young")

	cleaner := b.cleaner(b.db)
	cleaner.Grace = 1 // nanosecond
	removed, err := cleaner.Look(t.Context())
	require.NoError(t, err)
	require.Equal(t, len(content), removed)
}

// A file that never arrives does not end the others.
func TestUploader_OneStalledFileStopsNoOther(t *testing.T) { //nolint:paralleltest // t.Setenv
	inner, err := url.Parse(s3(t))
	require.NoError(t, err)

	proxy := httputil.NewSingleHostReverseProxy(inner)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || bytes.Contains(body, []byte("stuck")) {
			<-r.Context().Done()

			return
		}

		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)

	b := setup(t)
	b.store = openS3(t, server.URL, "models", "one")
	b.store.StallAfter(2 * time.Second)
	b.uploader = b.newUploader(b.db)

	trial, attempt := b.ended(map[string]string{"a": "stuck", "b": strings.Repeat("b", 512<<10), "c": "2", "d": "3"})
	require.ErrorContains(t, b.uploader.Look(t.Context()), "no part was sent for 2s")

	set := b.set(trial)
	require.Equal(t, berth.FilesPending, set.State)
	require.Contains(t, set.Problem, "no part was sent")
	require.Len(t, b.stored(attempt), 3, "they are stored, and their rows say so")
}
