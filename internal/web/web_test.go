package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/web"
)

const index = `<link href="./assets/a.css"><script id="berth-config" type="application/json">{ "base": "/" }</script>` +
	`<script type="module" src="./assets/a.js"></script>`

func tree() fstest.MapFS {
	return fstest.MapFS{
		"index.html":   {Data: []byte(index)},
		".gitkeep":     {},
		"assets/a.js":  {Data: []byte("plain")},
		"assets/b.svg": {Data: []byte("<svg/>")},
	}
}

func get(t *testing.T, base, path string, headers ...string) (*httptest.ResponseRecorder, web.Answer) {
	t.Helper()

	site, err := web.New(tree(), base)
	require.NoError(t, err)

	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}

	w := httptest.NewRecorder()
	answer := site.Serve(w, r)

	return w, answer
}

func TestServe_PageForEveryPath(t *testing.T) {
	t.Parallel()

	for _, path := range []string{"/", "/sweeps", "/sweeps/0190/trials/3", "/index.html", "/.gitkeep", "/../etc/passwd"} {
		w, answer := get(t, "", path, "Accept: text/html")
		require.Equal(t, web.Served, answer, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Contains(t, w.Body.String(), `src="/assets/a.js"`, path)
		require.Contains(t, w.Body.String(), `>{"base":"/"}<`, path)
		require.Equal(t, "no-cache", w.Header().Get("Cache-Control"), path)
	}
}

func TestServe_BasePath(t *testing.T) {
	t.Parallel()

	for _, base := range []string{"berth", "/berth", "/berth/"} {
		w, _ := get(t, base, "/sweeps")
		require.Contains(t, w.Body.String(), `href="/berth/assets/a.css"`)
		require.Contains(t, w.Body.String(), `>{"base":"/berth/"}<`)
	}
}

func TestServe_EndsNoScriptByItsBase(t *testing.T) {
	t.Parallel()

	w, _ := get(t, "/a</script>$1", "/")
	require.NotContains(t, w.Body.String(), `{"base":"/a</script>`)
}

func TestServe_MissingAssetIsNoPage(t *testing.T) {
	t.Parallel()

	_, answer := get(t, "", "/assets/gone.js", "Accept: */*")
	require.Equal(t, web.Missing, answer)

	_, answer = get(t, "", "/sweeps", "Accept: application/json")
	require.Equal(t, web.NotAcceptable, answer)
}

func TestServe_Assets(t *testing.T) {
	t.Parallel()

	w, answer := get(t, "", "/assets/a.js")
	require.Equal(t, web.Served, answer)
	require.Equal(t, "plain", w.Body.String())
	require.Contains(t, w.Header().Get("Content-Type"), "javascript")
	require.Contains(t, w.Header().Get("Cache-Control"), "immutable")
}

func TestServe_ETag(t *testing.T) {
	t.Parallel()

	first, _ := get(t, "", "/sweeps")
	etag := first.Header().Get("ETag")
	require.Len(t, etag, 68, "SHA-256 in quotes, weak")

	again, _ := get(t, "", "/machines", "If-None-Match: "+etag)
	require.Equal(t, http.StatusNotModified, again.Code)
	require.Empty(t, again.Body.String())

	other, _ := get(t, "/berth", "/sweeps", "If-None-Match: "+etag)
	require.Equal(t, http.StatusOK, other.Code)
}

func TestNew_NeedsAPage(t *testing.T) {
	t.Parallel()

	_, err := web.New(fstest.MapFS{"assets/a.js": {}}, "")
	require.ErrorContains(t, err, "index.html")
}
