package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/cgroup"
	"github.com/berthml/berth/internal/agent/gpushare"
	"github.com/berthml/berth/internal/agent/simulate"
	"github.com/berthml/berth/internal/control/backends"
)

// onWaiting calls once when something is logged that waits.
type onWaiting struct {
	once sync.Once
	call func()
	text string // the line that waits
}

func (o *onWaiting) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("waiting for Docker")) {
		o.once.Do(func() {
			o.text = string(p)
			o.call()
		})
	}

	return len(p), nil
}

// At boot Docker may be up later than the worker, which waits for it.
func TestWorker_WaitsForDocker(t *testing.T) {
	dir, err := os.MkdirTemp("", "berth-docker-") //nolint:usetesting // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	socket := filepath.Join(dir, "docker.sock")
	t.Setenv("DOCKER_HOST", "unix://"+socket)

	daemon := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	})}
	t.Cleanup(func() { _ = daemon.Close() })

	log := &onWaiting{call: func() {
		listener, err := net.Listen("unix", socket) //nolint:noctx // the server closes it
		if err == nil {
			go func() { _ = daemon.Serve(listener) }() // ends with the daemon
		}
	}}

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	m := machine{gpus: gpushare.Config{DataDir: dir}, instance: "main"}
	got, err := m.runtime(ctx, cgroup.FS{}, berth.Host{ID: "h", BootID: "b"}, berth.Owner{}, backends.Connections{}, nil, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	got.close()
	require.Contains(t, log.text, "sudo systemctl start docker", "a person who waits with it sees what to type")
}

// The reconciler asks a simulated machine's attempts, too: after its grace of half a minute a
// worker without any would end.
func TestSimulated_HasAttempts(t *testing.T) {
	t.Parallel()

	attempts := simulated(simulate.New(nil, 0), berth.Host{}).attempts
	require.NotNil(t, attempts)
	require.False(t, attempts.Busy("a"))
}
