package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/testkit/apitest"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

var update = flag.Bool("update", false, "rewrite testdata")

func TestMain(m *testing.M) { pgtest.Main(m) }

// running is a server on its own port.
type running struct {
	t      *testing.T
	server *api.Server
	url    string
	client *http.Client
	stop   func() error // ends it and returns Run's error
}

func setup(t *testing.T, store *apitest.Store, change ...func(*api.Config)) *running {
	t.Helper()

	return setupLogged(t, store, io.Discard, change...)
}

// placerLeads has a placer lead, without which health is bad.
func placerLeads(t *testing.T, store *apitest.Store) {
	t.Helper()

	leads := make(chan struct{})

	go func() {
		_ = store.Lead(t.Context(), "placer", func(ctx context.Context) error {
			close(leads)
			<-ctx.Done()

			return nil
		})
	}()

	<-leads
}

// safeLog records a server's log.
type safeLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *safeLog) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.b.Write(p)
}

func (s *safeLog) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.b.String()
}

func setupLogged(t *testing.T, store *apitest.Store, log io.Writer, change ...func(*api.Config)) *running {
	t.Helper()

	deps := api.Deps{Store: store.Store, Temporal: store, Log: slog.New(slog.NewTextHandler(log, nil))}
	if store.Objects != nil {
		deps.Objects = store
	}

	return setupDeps(t, deps, change...)
}

func setupDeps(t *testing.T, deps api.Deps, change ...func(*api.Config)) *running {
	t.Helper()

	config := api.Config{Address: "127.0.0.1:0"}
	for _, c := range change {
		c(&config)
	}

	server, err := api.New(deps, config)
	require.NoError(t, err)
	require.NoError(t, server.Listen(t.Context()))

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)

	go func() { done <- server.Run(ctx) }()

	transport := &http.Transport{}
	r := &running{
		t: t, server: server, url: "http://" + server.Addr(), client: &http.Client{Transport: transport, Timeout: 20 * time.Second},
	}

	var result error

	stopped := false
	r.stop = func() error {
		if !stopped {
			stopped = true

			cancel()

			result = <-done

			transport.CloseIdleConnections()
		}

		return result
	}

	t.Cleanup(func() { require.NoError(t, r.stop()) })

	return r
}

// call makes a request; headers are "Name: value".
func (r *running) call(method, path, body string, headers ...string) *http.Response {
	r.t.Helper()

	request, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	require.NoError(r.t, err)

	request.Header.Set("X-Request-ID", "test")

	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			request.Host = value
		} else {
			request.Header.Set(name, value)
		}
	}

	response, err := r.client.Do(request)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = response.Body.Close() })

	return response
}

// text makes a request and returns its status and body.
func (r *running) text(method, path, body string, headers ...string) (int, string) {
	r.t.Helper()

	response := r.call(method, path, body, headers...)
	data, err := io.ReadAll(response.Body)
	require.NoError(r.t, err)

	return response.StatusCode, string(data)
}

// want is text of a request that has this status.
func (r *running) want(status int, method, path, body string, headers ...string) string {
	r.t.Helper()

	got, text := r.text(method, path, body, headers...)
	require.Equal(r.t, status, got, "%s %s: %s", method, path, text)

	return text
}

// get reads an answer, with status 200.
func get[T any](r *running, path string, headers ...string) (out T) {
	r.t.Helper()

	text := r.want(http.StatusOK, "GET", path, "", headers...)
	require.NoError(r.t, json.Unmarshal([]byte(text), &out), text)

	return out
}

// sampled serves the sample.
func sampled(t *testing.T) (*apitest.Store, *running) {
	t.Helper()

	store := apitest.Sample(t)

	return store, setup(t, store)
}

// requireGolden compares with a file, or writes it with -update.
func requireGolden(t *testing.T, name, got string) {
	t.Helper()

	path := "testdata/" + name
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}

	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// audits are the entries of the audit log, a line each: actor, action, object, address and result.
func audits(store *apitest.Store) []string {
	return strings.Split(store.Text("SELECT coalesce(string_agg(concat_ws(' ', actor, action, nullif(object, ''), ip, result), E'\n' ORDER BY id), '') FROM audit_log"), "\n")
}

const (
	asYAML = "Content-Type: application/yaml"
	asJSON = "Content-Type: application/json"
)

func lines(parts ...string) string {
	var b bytes.Buffer
	for _, part := range parts {
		b.WriteString(strings.TrimRight(part, "\n") + "\n")
	}

	return b.String()
}
