package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// behindTLS puts a real proxy that speaks TLS before the server, at a path which
// it strips, and sends calls through it. It calls the server by its address, or by
// the name that browsers use.
func behindTLS(t *testing.T, r *running, path string, keepsHost bool) *running {
	t.Helper()

	target, err := url.Parse(r.url)
	require.NoError(t, err)

	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(target)
		p.SetXForwarded()

		if keepsHost {
			p.Out.Host = p.In.Host
		}
	}}
	server := httptest.NewTLSServer(http.StripPrefix(strings.TrimSuffix(path, "/"), proxy))
	t.Cleanup(server.Close)

	client := server.Client() // follows no name but example.com, to its own address
	t.Cleanup(client.CloseIdleConnections)

	return &running{t: t, server: r.server, url: "https://example.com" + strings.TrimSuffix(path, "/"), client: client}
}

func TestPublicURL_BehindAProxyThatSpeaksTLS(t *testing.T) {
	t.Parallel()

	for name, keepsHost := range map[string]bool{"its own name": false, "the browser's name": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			store := apitest.Sample(t)
			viewer := token(t, store, "viewer")
			inside := setupDeps(t, api.Deps{
				Store: store.Store, Temporal: store,
				Web: fstest.MapFS{"index.html": {Data: []byte(`<script id="berth-config" type="application/json">{ "base": "/" }</script>`)}},
			}, func(c *api.Config) { c.PublicURL = "https://example.com/berth/" })
			r := behindTLS(t, inside, "/berth/", keepsHost)

			// Without Sec-Fetch-Site, as older browsers send it, only the origin tells.
			response := r.call("POST", sessionPath, login(viewer), asJSON, "Origin: https://example.com")
			require.Equal(t, http.StatusCreated, response.StatusCode)
			require.Contains(t, response.Header.Get("Set-Cookie"), "; Secure")
			require.NotEmpty(t, response.Header.Get("Strict-Transport-Security"))

			cookie := "Cookie: berth_session=" + response.Cookies()[0].Value
			r.want(http.StatusOK, "GET", "/api/v1/me", "", cookie)

			_, page := r.text("GET", "/sweeps", "", "Accept: text/html")
			require.Contains(t, page, `{"base":"/berth/"}`)

			r.requireProblem(403, "cross_origin", "another origin", "POST", sessionPath, login(viewer), asJSON, "Origin: https://evil.example")

			events := r.subscribe("/api/v1/events", cookie)
			events.block()
			store.Publish(t, "trial.state", apitest.NewID(1), "a", "succeeded")
			events.requireEvent("change", "1", `"subject":"a"`) // it comes while the stream is open: nothing collects it
		})
	}
}

// Browsers write an origin in lower case and without the scheme's own port; another port is a part of it.
func TestPublicURL_Origin(t *testing.T) {
	t.Parallel()

	for written, origin := range map[string]string{
		"https://Example.com:8443/": "https://example.com:8443", "https://example.com:80/": "https://example.com:80",
		"http://example.com:443/": "http://example.com:443", "http://example.com:80/": "http://example.com", "https://[2001:DB8::443]:443/": "https://[2001:db8::443]",
		"https://[2001:db8::443]/": "https://[2001:db8::443]", "https://Example.com/": "https://example.com",
		"https://example.com:443/": "https://example.com", "HTTPS://EXAMPLE.COM:/": "https://example.com",
	} {
		got, err := api.Origin(api.Config{PublicURL: written})
		require.NoError(t, err)
		require.Equal(t, origin, got, written)
	}
}

// What a call says of itself makes no cookie Secure, and no origin trusted.
func TestPublicURL_NotSaid(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	viewer := token(t, store, "viewer")
	r := setupLogged(t, store, io.Discard)

	response := r.call("POST", sessionPath, login(viewer), asJSON, "X-Forwarded-Proto: https")
	require.Equal(t, http.StatusCreated, response.StatusCode)
	require.NotContains(t, response.Header.Get("Set-Cookie"), "Secure")
	require.Empty(t, response.Header.Get("Strict-Transport-Security"))

	r.requireProblem(421, "host_not_allowed", "--allowed-hosts", "GET", "/livez", "", "Host: example.com")
}

func TestPublicURL_Errors(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ url, says string }{
		{"berth.example", "must be such as https://berth.example/"},
		{"ftp://berth.example", "must be such as"},
		{"https://me@berth.example", "must be such as"},
		{"https://berth.example/?a=b", "must be such as"},
		{"https://berth.example/#a", "must be such as"},
	} {
		_, err := api.New(api.Deps{Store: &postgres.Store{}}, api.Config{PublicURL: c.url})
		require.ErrorContains(t, err, c.says)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	}

	_, err := api.New(api.Deps{Store: &postgres.Store{}}, api.Config{PublicURL: "https://berth.example/berth"})
	require.NoError(t, err)
}
