//go:build integration

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
	dockerSick        // fails every start, as a broken runc or AppArmor profile does
	dockerFull        // creates nothing, as with a disk that has no inode left
	dockerAway        // answers nothing
	dockerLossy       // obeys, and loses the answers to calls that change anything
)

// sickAnswer is dockerd's answer where the machine's AppArmor refuses runc: it
// is about the machine, not the command.
const sickAnswer = `{"message":"failed to create task for container: failed to create shim task: OCI runtime create failed: ` +
	`runc create failed: unable to start container process: error during container init: unable to apply apparmor profile: ` +
	`apparmor failed to apply profile: write /proc/self/attr/apparmor/exec: permission denied: unknown"}`

// fullAnswer is dockerd's where it cannot make a container's layer.
const fullAnswer = `{"message":"mkdir /var/lib/docker/overlay2/6b1f-init: no space left on device"}`

// dockerProxy stands between one host's worker and Docker, which other hosts
// and tests use as well.
type dockerProxy struct {
	path   string
	mode   atomic.Int32
	starts atomic.Int32 // refused while sick or full
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
	refuse := func(answer string) {
		p.starts.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, answer)
	}

	switch mode := p.mode.Load(); {
	case mode == dockerAway:
		panic(http.ErrAbortHandler)
	case mode == dockerSick && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/start"):
		refuse(sickAnswer)
	case mode == dockerFull && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/containers/create"):
		refuse(fullAnswer)
	default:
		pass.ServeHTTP(w, r)
	}
}
