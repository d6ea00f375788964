package api_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// pages is a server with a web interface and without tokens.
func pages(t *testing.T) http.Handler {
	t.Helper()

	store := apitest.Sample(t)
	server, err := api.New(api.Deps{
		Store: store.Store, Temporal: store, Log: slog.New(slog.DiscardHandler),
		Web: fstest.MapFS{"index.html": {Data: []byte("<html>page</html>")}, "assets/a.js": {Data: []byte("1")}},
	}, api.Config{Address: "127.0.0.1:0"})
	require.NoError(t, err)

	return server.Handler()
}

func ask(t *testing.T, handler http.Handler, method, path, accept string) *httptest.ResponseRecorder {
	t.Helper()

	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, nil)
	r.Header.Set("Accept", accept)

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)

	return w
}

func TestWeb_PagesHaveTheStrictPolicy(t *testing.T) {
	t.Parallel()

	handler := pages(t)

	for _, path := range []string{"/", "/sweeps/0190", "/assets/a.js"} {
		w := ask(t, handler, http.MethodGet, path, "text/html,*/*")
		require.Equal(t, http.StatusOK, w.Code, path)

		header := w.Header()
		require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"), path)
		require.Equal(t, "no-referrer", header.Get("Referrer-Policy"), path)
		require.Equal(t, "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "+
			"connect-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'",
			header.Get("Content-Security-Policy"), path)
	}
}

func TestWeb_ProblemsWhereNoPageIs(t *testing.T) {
	t.Parallel()

	handler := pages(t)

	for _, c := range []struct {
		method, path, accept string
		status               int
	}{
		{http.MethodGet, "/assets/gone.js", "*/*", http.StatusNotFound},
		{http.MethodGet, "/api/v1/gone", "text/html", http.StatusNotFound},
		{http.MethodPost, "/sweeps", "text/html", http.StatusNotFound},
		{http.MethodGet, "/sweeps", "application/json", http.StatusNotAcceptable},
	} {
		w := ask(t, handler, c.method, c.path, c.accept)
		require.Equal(t, c.status, w.Code, c.path)
		require.Contains(t, w.Header().Get("Content-Type"), "problem+json", c.path)
	}
}
