package api_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/openapi"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// withFiles is a sample whose third trial has stored files of its second attempt.
func withFiles(t *testing.T) (store *apitest.Store, trial, attempt string) {
	t.Helper()

	store, trial, attempt = apitest.Sample(t), apitest.TrialID(3), apitest.AttemptID(3, 2)
	store.FilesAre(attempt, berth.FilesStored, "")
	store.Exec("UPDATE attempts SET files_left_out = 1 WHERE id = $1", attempt)
	store.Exec("INSERT INTO artifacts_left_out (attempt_id, number, path, reason) VALUES ($1, 1, 'link', 'it is a symbolic link; links are not followed')", attempt)

	for _, name := range []string{"metrics.jsonl", "model/a b.h5", "model/ünï.bin", "new\nline", "%2F", "..."} {
		store.AddFile(attempt, name, "content of "+name)
	}

	store.AddFile(attempt, "empty", "")

	return store, trial, attempt
}

func files(t *testing.T, text string) (list openapi.FileList) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &list), text)

	return list
}

func TestListFiles(t *testing.T) {
	t.Parallel()

	store, trial, attempt := withFiles(t)
	r := setup(t, store)

	var (
		paths  []string
		cursor string
	)

	for page := range 4 {
		text := r.want(http.StatusOK, "GET", "/api/v1/trials/"+trial+"/files?limit=2&cursor="+cursor, "")

		list := files(t, text)
		require.Equal(t, openapi.FileStateStored, list.State)
		require.Equal(t, attempt, list.AttemptID)
		require.Equal(t, 2, list.Attempt)
		require.Equal(t, 7, list.Files)
		require.Equal(t, 1, list.LeftOut)
		require.Len(t, list.LeftOutFiles, max(1-page, 0))

		for _, f := range list.Data {
			paths = append(paths, f.Path)
			require.Len(t, f.Sha256, 64)
		}

		if cursor = list.NextCursor; cursor == "" {
			break
		}
	}

	require.Equal(t, []string{"%2F", "...", "empty", "metrics.jsonl", "model/a b.h5", "model/ünï.bin", "new\nline"}, paths)

	list := func(query string) openapi.FileList {
		text := r.want(http.StatusOK, "GET", "/api/v1/trials/"+trial+"/files"+query, "")

		return files(t, text)
	}
	require.Equal(t, openapi.FileStatePending, list("?attempt=1").State)

	store.FilesAre(attempt, berth.FilesRemoved, "files are kept for 2 days")

	removed := list("")
	require.Empty(t, removed.Data, "rows go in steps")
	require.Zero(t, removed.Files)
	require.Equal(t, "files are kept for 2 days", removed.Problem)

	for path, want := range map[string]int{
		"/api/v1/trials/7/files":                        http.StatusNotFound,
		"/api/v1/trials/" + attempt + "/files":          http.StatusNotFound,
		"/api/v1/trials/" + trial + "/files?attempt=9":  http.StatusNotFound,
		"/api/v1/trials/" + trial + "/files?attempt=0":  http.StatusBadRequest,
		"/api/v1/trials/" + trial + "/files?attempts=1": http.StatusBadRequest,
	} {
		status, text := r.text("GET", path, "")
		require.Equal(t, want, status, path+text)
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()

	store, trial, attempt := withFiles(t)
	r := setup(t, store)
	at := "/api/v1/trials/" + trial + "/files/"

	stored, err := store.ListFiles(t.Context(), attempt, "", 10)
	require.NoError(t, err)
	require.Len(t, stored, 7)

	for _, f := range stored {
		for _, path := range []string{url.PathEscape(f.Path), (&url.URL{Path: "/" + f.Path}).EscapedPath()[1:]} {
			response := r.call("GET", at+path, "")
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, response.StatusCode, string(body))
			require.Equal(t, store.Objects[f.Digest], string(body))
			require.Equal(t, `"`+f.Digest.String()+`"`, response.Header.Get("ETag"))
			require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
			require.Equal(t, "application/octet-stream", response.Header.Get("Content-Type"))
			require.Equal(t, f.Bytes, response.ContentLength)
			require.True(t, strings.HasPrefix(response.Header.Get("Content-Disposition"), "attachment"), response.Header)
		}
	}

	response := r.call("GET", at+"metrics.jsonl", "", "Range: bytes=11-17")
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusPartialContent, response.StatusCode)
	require.Equal(t, "metrics", string(body))
	require.Equal(t, "bytes 11-17/24", response.Header.Get("Content-Range"))

	response = r.call("GET", at+"metrics.jsonl", "", "If-None-Match: "+response.Header.Get("ETag"))
	require.Equal(t, http.StatusNotModified, response.StatusCode)

	for _, path := range []string{"", "model", "model/", "nothing", "../metrics.jsonl", "model/../metrics.jsonl", "..%2f..%2fetc/passwd", "%00", "%ff", "/metrics.jsonl"} {
		status, text := r.text("GET", at+path, "")
		require.Contains(t, []int{http.StatusNotFound, http.StatusBadRequest}, status, path+text)
	}

	text := r.want(http.StatusNotFound, "GET", at+"metrics.jsonl?attempt=1", "")
	require.Contains(t, text, "its files are pending")
}

func TestReadFile_SaysWhatTheStoreSays(t *testing.T) {
	t.Parallel()

	store, trial, _ := withFiles(t)
	r := setup(t, store)

	store.Change(func() {
		clear(store.Objects)
		store.ObjectErr = berth.Errorf(berth.KindUnavailable, "the store does not answer")
	})

	text := r.want(http.StatusServiceUnavailable, "GET", "/api/v1/trials/"+trial+"/files/metrics.jsonl", "")
	require.Contains(t, text, "the store does not answer")

	r.want(http.StatusOK, "GET", "/api/v1/trials/"+trial+"/files/empty", "") // there is nothing to read of it

	// An object that is shorter than its row says is no whole answer.
	store.Change(func() {
		store.Objects[berth.Digest(sha256.Sum256([]byte("content of metrics.jsonl")))] = "short"
	})

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/api/v1/trials/"+trial+"/files/metrics.jsonl", nil)
	require.NoError(t, err)

	response, err := r.client.Do(request)
	if err == nil {
		_, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
	}

	require.Error(t, err)
}

func TestFiles_WithoutAStore(t *testing.T) {
	t.Parallel()

	_, r := sampled(t)
	at := fmt.Sprintf("/api/v1/trials/%s/files", apitest.TrialID(1))

	text := r.want(http.StatusOK, "GET", at, "")

	list := files(t, text)
	require.Equal(t, openapi.FileStateOff, list.State)
	require.Equal(t, berth.NoArtifacts, list.Problem)

	text = r.want(http.StatusConflict, "GET", at+"/metrics.jsonl", "")
	require.Contains(t, text, "--artifacts")
}
