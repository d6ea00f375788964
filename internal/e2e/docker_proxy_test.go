//go:build integration && nightly

package e2e

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
)

// What a dockerProxy does to requests.
const (
	dockerWell  int32 = iota
	dockerAway        // answers nothing
	dockerLossy       // obeys, and loses the answers to calls that change anything
)

// dockerProxy stands between one host's worker and Docker, which other hosts
// and tests use as well.
type dockerProxy struct {
	path   string
	mode   atomic.Int32
	server *http.Server
}

var errLost = errors.New("the answer is lost")

// proxyDocker starts a proxy for a host. The cluster's undo stops it.
func (c *cluster) proxyDocker(h *host) *dockerProxy {
	socket := strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if socket == "" {
		socket = "/var/run/docker.sock"
	}

	require.True(c.t, filepath.IsAbs(socket), "the test needs Docker on a socket of this machine, not %s", socket)

	p := &dockerProxy{path: filepath.Join(c.dir, h.name+".sock")}
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "docker"})
	pass.FlushInterval = -1 // logs and events arrive when they are written
	pass.ErrorLog = log.New(io.Discard, "", 0)
	pass.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	pass.ModifyResponse = func(r *http.Response) error {
		if p.mode.Load() == dockerLossy && r.Request.Method != http.MethodGet {
			return errLost
		}

		return nil
	}
	pass.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }

	p.server = &http.Server{
		ErrorLog: pass.ErrorLog, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(pass, w, r) }),
	}

	listener, err := net.Listen("unix", p.path) //nolint:noctx // local
	require.NoError(c.t, err)

	served := make(chan struct{})

	go func() {
		defer close(served)
		_ = p.server.Serve(listener)
	}()

	c.undo = append(c.undo, func() {
		_ = p.server.Close()
		<-served
	})

	return p
}

func (p *dockerProxy) serve(pass http.Handler, w http.ResponseWriter, r *http.Request) {
	if p.mode.Load() == dockerAway {
		panic(http.ErrAbortHandler)
	}

	pass.ServeHTTP(w, r)
}
