package cli

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/apitest"
)

// troubled passes calls on to a server, but lets trouble answer some instead:
// trouble gets how many calls of this method and path there were before.
func troubled(t *testing.T, server string, trouble func(w http.ResponseWriter, r *http.Request, before int) (answered bool)) string {
	t.Helper()

	target, err := url.Parse(server)
	require.NoError(t, err)

	// It stands for the network, not for a proxy: it adds no header.
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}

	var (
		mu    sync.Mutex
		calls = map[string]int{}
	)

	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Method + " " + r.URL.Path

		mu.Lock()
		before := calls[key]
		calls[key]++
		mu.Unlock()

		if !trouble(w, r, before) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		between.CloseClientConnections()
		between.Close()
	})

	return between.URL
}

// fail answers with one kind of trouble after the other.
func fail(w http.ResponseWriter, nth int64) (answered bool) {
	switch nth % 4 {
	case 0:
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"status":429,"code":"E_RATE","detail":"too often"}`)
	case 1:
		w.WriteHeader(http.StatusInternalServerError)
	case 2:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		panic(http.ErrAbortHandler) // the connection is reset
	}

	return true
}

// Watching outlasts any trouble of the server, because the sweep does.
func TestWatchOutlastsTrouble(t *testing.T) {
	t.Parallel()

	var kinds atomic.Int64

	server := troubled(t, serve(t, apitest.Sample(t)), func(w http.ResponseWriter, _ *http.Request, before int) bool {
		return before == 0 && fail(w, kinds.Add(1)-1) // the first call of everything
	})

	result := succeed(t, server, "sweep", "watch", apitest.NewID(1))
	require.Contains(t, result.stdout, "best: trial 2")
	require.Contains(t, result.stderr, "lost the server")

	succeed(t, server, "sweep", "submit", "-f", "-")
}

// A permanent refusal by the server ends the watch, with its exit code.
func TestWatchEndsWhenItIsRefused(t *testing.T) {
	t.Parallel()

	for status, want := range map[int]int{
		http.StatusUnauthorized: ExitAuth, http.StatusForbidden: ExitAuth, http.StatusNotFound: ExitNotFound, http.StatusBadRequest: ExitValidation,
	} {
		store := apitest.Sample(t)
		store.SweepIs(berth.SweepRunning)
		server := troubled(t, serve(t, store), func(w http.ResponseWriter, _ *http.Request, before int) bool {
			if before > 0 {
				w.WriteHeader(status)
			}

			return before > 0
		})

		result := execute(t.Context(), server, "sweep", "watch", apitest.NewID(1), "--timeout", "30s")
		require.Equal(t, want, result.code, "%d: %s", status, result.stderr)
	}
}

func TestTroubleHasOneExitCode(t *testing.T) {
	t.Parallel()

	for _, status := range []int{429, 500, 502, 503, 504} {
		server := troubled(t, "http://127.0.0.1:1", func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			w.WriteHeader(status)

			return true
		})
		require.Equal(t, ExitUnreachable, execute(t.Context(), server, "sweep", "list").code, status)
	}
}

func TestPatience(t *testing.T) {
	t.Parallel()

	for header, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "-1": 0, "soon": 0} {
		require.Equal(t, want, retryAfter(header), header)
	}

	var p patience

	require.Equal(t, reconnectFirst, p.pause(nil))
	require.Equal(t, 2*reconnectFirst, p.pause(nil))
	require.Equal(t, 40*time.Second, p.pause(&problemError{retryAfter: 40 * time.Second}))
	require.Equal(t, reconnectPatience, p.pause(&problemError{retryAfter: time.Hour}), "no server makes us wait for ever")

	for range 10 {
		require.LessOrEqual(t, p.pause(nil), reconnectMost)
	}

	require.Equal(t, reconnectMost, p.pause(nil))
	p.reset()
	require.Equal(t, reconnectFirst, p.pause(nil))
}

// A server that restarts between two files of a download is asked again.
func TestPatiently_AsksAgainAfterARefusedConnection(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		tries := 0

		got, err := patiently(t.Context(), fetchTries, func(error) {}, func() (string, error) {
			if tries++; tries < 3 {
				return "", unreachable(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
			}

			return "file", nil
		})
		require.NoError(t, err)
		require.Equal(t, "file", got)
	})
}
