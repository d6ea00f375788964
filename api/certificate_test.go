package api_test

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/testkit/apitest"
	"github.com/berthml/berth/internal/testkit/certtest"
)

const (
	certPatience = 30 * time.Second
	certTick     = 20 * time.Millisecond
)

// setupTLS serves with the certificate, which clients of the authority trust.
func setupTLS(t *testing.T, store *apitest.Store, authority *certtest.Authority, pair certtest.Pair, log io.Writer) *running {
	t.Helper()

	certificate, err := api.LoadCertificate(pair.Cert, pair.Key, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	api.SetLook(certificate, certTick)

	r := setupLogged(t, store, log, func(c *api.Config) { c.Certificate = certificate })
	r.url = r.server.URL()
	require.True(t, strings.HasPrefix(r.url, "https://"), r.url)

	transport, ok := r.client.Transport.(*http.Transport)
	require.True(t, ok)

	transport.TLSClientConfig = &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS12}
	transport.ForceAttemptHTTP2 = true

	return r
}

func TestCertificate_Serves(t *testing.T) {
	t.Parallel()

	authority := certtest.NewAuthority(t, t.TempDir())
	store := apitest.Sample(t)
	viewer := token(t, store, "viewer")
	r := setupTLS(t, store, authority, authority.Sign("server", 100*24*time.Hour, "127.0.0.1"), io.Discard)

	response := r.call("POST", sessionPath, login(viewer), "Content-Type: application/json", "Origin: "+r.url)
	defer response.Body.Close() //nolint:errcheck // a test's

	require.Equal(t, http.StatusCreated, response.StatusCode)
	require.Equal(t, 2, response.ProtoMajor)
	require.Contains(t, response.Header.Get("Set-Cookie"), "; Secure")
	require.Equal(t, "max-age=31536000", response.Header.Get("Strict-Transport-Security"))

	plain := setup(t, apitest.Sample(t))
	require.Empty(t, plain.call("GET", "/livez", "").Header.Get("Strict-Transport-Security"), "not over plain HTTP")
}

// HTTP/2 has its own deadlines and flushes.
func TestCertificate_StreamsByHTTP2(t *testing.T) {
	t.Parallel()

	authority := certtest.NewAuthority(t, t.TempDir())
	store := apitest.Sample(t)
	bearer := token(t, store, "viewer")
	r := setupTLS(t, store, authority, authority.Sign("server", 100*24*time.Hour, "127.0.0.1"), io.Discard)

	events := r.subscribe("/api/v1/events", bearer)
	events.block()
	store.Publish(t, "trial.state", apitest.NewID(1), "a", "succeeded")
	events.requireEvent("change", "1", `"subject":"a"`)
	store.Publish(t, "trial.state", apitest.NewID(1), "b", "succeeded")
	events.requireEvent("change", "2", `"subject":"b"`)
}

// A renewal is served without a restart; an unusable file changes nothing.
func TestCertificate_Reloads(t *testing.T) {
	t.Parallel()

	var log safeLog

	authority := certtest.NewAuthority(t, t.TempDir())
	pair := authority.Sign("server", 13*24*time.Hour, "127.0.0.1")
	r := setupTLS(t, apitest.Sample(t), authority, pair, &log)

	_, health := r.text("GET", "/healthz", "")
	require.Contains(t, health, `{"ok":true,"warn":true,"part":"certificate","what":"ends at `)
	require.Contains(t, health, "in 12 days")

	serial := func() string {
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS12}}

		conn, err := dialer.DialContext(t.Context(), "tcp", r.server.Addr())
		require.NoError(t, err)

		defer conn.Close() //nolint:errcheck // a test's

		client, ok := conn.(*tls.Conn)
		require.True(t, ok)

		return client.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := serial()

	require.NoError(t, os.WriteFile(pair.Cert, []byte("half a fi"), 0o600))
	require.Eventually(t, func() bool {
		_, health = r.text("GET", "/healthz", "")

		return strings.Contains(health, "the newest files cannot be used")
	}, certPatience, certTick)
	require.Contains(t, health, "--tls-cert")
	require.Contains(t, log.String(), "the new certificate cannot be used")
	require.Equal(t, first, serial(), "the server goes on with what it has")

	authority.Sign("server", 90*24*time.Hour, "127.0.0.1") // the same files
	require.Eventually(t, func() bool { return serial() != first }, certPatience, certTick)
	require.Eventually(t, func() bool {
		_, health = r.text("GET", "/healthz", "")

		return !strings.Contains(health, "cannot be used")
	}, certPatience, certTick)
	require.Contains(t, health, `{"ok":true,"part":"certificate","what":"ends at `)
	require.Contains(t, log.String(), "has a new certificate")

	second := serial()
	authority.Sign("server", -time.Minute, "127.0.0.1")
	require.Eventually(t, func() bool {
		require.Equal(t, second, serial(), "one that has ended replaces none that holds")

		return strings.Contains(log.String(), "the new certificate holds from")
	}, certPatience, certTick)
}

func TestCertificate_Health(t *testing.T) {
	t.Parallel()

	authority := certtest.NewAuthority(t, t.TempDir())
	pair := authority.Sign("server", 30*24*time.Hour, "127.0.0.1")
	certificate, err := api.LoadCertificate(pair.Cert, pair.Key, slog.New(slog.DiscardHandler))
	require.NoError(t, err)

	store := apitest.Sample(t)
	placerLeads(t, store)

	r := setup(t, store, func(c *api.Config) { c.Certificate = certificate })
	r.url = r.server.URL()

	transport, ok := r.client.Transport.(*http.Transport)
	require.True(t, ok)

	transport.TLSClientConfig = &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS12}

	for days, c := range map[int]struct {
		status int
		says   string
	}{
		15: {http.StatusOK, `{"ok":true,"part":"certificate"`},
		17: {http.StatusOK, `{"ok":true,"warn":true,"part":"certificate"`},
		31: {http.StatusServiceUnavailable, `{"ok":false,"part":"certificate"`},
	} {
		api.SetNow(certificate, func() time.Time { return time.Now().Add(time.Duration(days) * 24 * time.Hour) })

		status, body := r.text("GET", "/healthz", "")
		require.Equal(t, c.status, status, body)
		require.Contains(t, body, c.says, days)
	}
}

func TestLoadCertificate_Errors(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	authority := certtest.NewAuthority(t, dir)
	one, other := authority.Sign("one", time.Hour, "localhost"), authority.Sign("other", time.Hour, "localhost")
	locked := filepath.Join(dir, "locked")
	require.NoError(t, os.WriteFile(locked, []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\naaaa\n-----END ENCRYPTED PRIVATE KEY-----\n"), 0o600))

	for name, c := range map[string]struct{ cert, key, says string }{
		"no key":         {one.Cert, "", "give both"},
		"no certificate": {"", one.Key, "give both"},
		"missing":        {filepath.Join(dir, "none"), one.Key, "no such file"},
		"passphrase":     {one.Cert, locked, "the key without a passphrase"},
		"another's key":  {one.Cert, other.Key, "private key does not match public key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := api.LoadCertificate(c.cert, c.key, slog.New(slog.DiscardHandler))
			require.ErrorContains(t, err, c.says)
			require.Equal(t, berth.KindInvalid, berth.KindOf(err))
		})
	}
}

// A server with an expired certificate, or one that does not hold yet, starts, because
// it does more than answer, and reports the problem.
func TestLoadCertificate_DoesNotHold(t *testing.T) {
	t.Parallel()

	authority := certtest.NewAuthority(t, t.TempDir())

	for says, begins := range map[string]time.Duration{"ended at ": -2 * time.Hour, "holds from ": time.Hour} {
		var log safeLog

		pair := authority.SignFrom("server", time.Now().Add(begins), begins+time.Hour, "localhost")

		_, err := api.LoadCertificate(pair.Cert, pair.Key, slog.New(slog.NewTextHandler(&log, nil)))
		require.NoError(t, err)
		require.Contains(t, log.String(), "level=WARN")
		require.Contains(t, log.String(), says)
		require.Contains(t, log.String(), "clients refuse it")
	}
}
