//go:build integration

package runtimetest_test

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// daemonSocket is where Docker listens unless told otherwise.
const daemonSocket = "/var/run/docker.sock"

// fault is a proxy's fault on connections.
type fault int

const (
	none   fault = iota
	refuse       // closes new connections
	hang         // takes new connections and answers nothing
)

// proxy stands between a client and the daemon, which others use as well and
// must not be hurt.
type proxy struct {
	listener net.Listener
	group    sync.WaitGroup

	mu     sync.Mutex
	fault  fault
	losing string   // a part of the next request line whose answer is lost; empty = none
	loser  net.Conn // to the daemon, whose next answer is lost
	lost   int      // answers that were lost since lose was called
	open   []net.Conn
}

// openThrough returns a Docker whose daemon the test can take away, and one
// with a direct connection to it.
func openThrough(t *testing.T) (through, direct *docker.Docker, p *proxy) {
	t.Helper()

	direct = open(t)
	path := filepath.Join(t.TempDir(), "docker.sock")

	listener, err := net.Listen("unix", path) //nolint:noctx // local
	require.NoError(t, err)

	p = &proxy{listener: listener}
	p.group.Go(p.serve)

	t.Setenv("DOCKER_HOST", "unix://"+path)

	d, err := docker.New(docker.Config{Instance: "runtimetest", Owner: berth.Owner{HostID: "host-1"}, BootID: "boot-1", APITimeout: 5 * time.Second})
	require.NoError(t, err)

	t.Cleanup(func() {
		require.NoError(t, d.Close())
		require.NoError(t, p.listener.Close())
		p.cut()
		p.group.Wait()
	})

	return d, direct, p
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}

		p.group.Go(func() { p.connect(client) })
	}
}

func (p *proxy) connect(client net.Conn) {
	defer client.Close()

	p.mu.Lock()
	fault := p.fault
	p.open = append(p.open, client)
	p.mu.Unlock()

	if fault == refuse {
		return
	}

	if fault == hang {
		_, _ = io.Copy(io.Discard, client)

		return
	}

	server, err := net.Dial("unix", daemonSocket) //nolint:noctx // local
	if err != nil {
		return
	}
	defer server.Close()

	p.group.Go(func() {
		_, _ = io.Copy(watched{server, func(request []byte) { p.asked(server, request) }}, client)
		_ = server.(*net.UnixConn).CloseWrite() //nolint:forcetypeassert // it was dialed as one
	})

	buffer := make([]byte, 32<<10)

	for {
		n, err := server.Read(buffer)
		if err != nil || p.loses(server) {
			return
		}

		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// watched shows each write before it happens.
type watched struct {
	io.Writer

	see func([]byte)
}

func (w watched) Write(data []byte) (int, error) {
	w.see(data)

	return w.Writer.Write(data)
}

// lose drops the answer to the next request whose line contains a text: the
// daemon does the work, and the caller gets no answer.
func (p *proxy) lose(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.losing, p.lost = text, 0
}

// asked notes the connection whose next answer is lost. A request's line comes
// in one piece: the client writes a head at once.
func (p *proxy) asked(server net.Conn, request []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()

	line, _, _ := strings.Cut(string(request), "\r\n")
	if p.losing != "" && strings.Contains(line, p.losing) {
		p.losing, p.loser = "", server
	}
}

// answersLost returns how many answers were lost since lose was called.
func (p *proxy) answersLost() int {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.lost
}

// loses reports, once, that the connection's answer is lost.
func (p *proxy) loses(server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.loser != server {
		return false
	}

	p.loser = nil
	p.lost++

	return true
}

func (p *proxy) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.fault = f
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, conn := range p.open {
		_ = conn.Close()
	}

	p.open = nil
}

type waited struct {
	container berth.Container
	err       error
}

func wait(t *testing.T, d *docker.Docker, id string) <-chan waited {
	t.Helper()

	done := make(chan waited, 1)

	go func() {
		c, err := d.Wait(t.Context(), id)
		done <- waited{c, err}
	}()

	return done
}

func TestWaitSurvivesABrokenConnection(t *testing.T) {
	d, direct, p := openThrough(t)
	c := runtimetest.Start(t, direct, runtimetest.Launch("sleep"))
	runtimetest.AwaitReady(t, direct, c.ID)

	done := wait(t, d, c.ID)
	for range 3 {
		p.cut()
	}

	require.NoError(t, direct.Stop(t.Context(), c.ID, patience))

	got := <-done
	require.NoError(t, got.err)
	require.Equal(t, 143, got.container.ExitCode)
}

func TestWaitWithoutDaemonIsNoExit(t *testing.T) {
	d, direct, p := openThrough(t)
	c := runtimetest.Start(t, direct, runtimetest.Launch("sleep"))

	done := wait(t, d, c.ID)

	p.set(refuse)
	p.cut()

	got := <-done
	require.Equal(t, berth.KindUnavailable, berth.KindOf(got.err), "%v", got.err)

	running, err := direct.Inspect(t.Context(), c.ID)
	require.NoError(t, err)
	require.Equal(t, berth.ContainerRunning, running.State)
}

// TestExitWhileDaemonIsAway: the container ended at about the time at which the
// daemon could not be reached; the exit code may be Docker's doing.
func TestExitWhileDaemonIsAway(t *testing.T) {
	d, direct, p := openThrough(t)
	c := runtimetest.Start(t, direct, runtimetest.Launch("sleep"))
	runtimetest.AwaitReady(t, direct, c.ID)

	_, err := d.Inspect(t.Context(), c.ID) // negotiates the version
	require.NoError(t, err)
	p.lose("/wait")

	done := wait(t, d, c.ID)

	require.NoError(t, direct.Stop(t.Context(), c.ID, patience))

	got := <-done
	require.NoError(t, got.err)
	require.True(t, got.container.DaemonLost)
}

func TestHungDaemon(t *testing.T) {
	d, _, p := openThrough(t)
	p.set(hang)

	started := time.Now()

	_, err := d.List(t.Context())
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)
	require.Less(t, time.Since(started), patience)

	p.cut()
}

// TestLostAnswers is failure 7: the work was done without an answer. Whichever
// answer is lost, the caller gets an ambiguous error, and calling again ends
// with the one container.
func TestLostAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		request string
		state   berth.ContainerState // in which the daemon has left it
	}{ // the client itself repeats a question
		"create": {"/containers/create", berth.ContainerCreated},
		"start":  {"/start", berth.ContainerRunning},
	} {
		t.Run(name, func(t *testing.T) {
			d, direct, p := openThrough(t)
			l := runtimetest.Launch("sleep")

			_, err := d.Info(t.Context()) // negotiates the version
			require.NoError(t, err)
			p.lose(tt.request)

			_, err = d.Ensure(t.Context(), l)
			require.Equal(t, 1, p.answersLost(), "of %s", name)
			require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%v", err)

			left, err := direct.Inspect(t.Context(), direct.Name(l.AttemptID))
			require.NoError(t, err)
			require.Equal(t, tt.state, left.State)

			c, err := d.Ensure(t.Context(), l)
			require.NoError(t, err)
			runtimetest.Discard(t, direct, c.ID)
			require.Equal(t, berth.ContainerRunning, c.State)
			require.Equal(t, left.ID, c.ID, "it was made twice")

			list, err := d.List(t.Context())
			require.NoError(t, err)

			same := 0

			for _, listed := range list {
				if listed.AttemptID == l.AttemptID {
					same++
				}
			}

			require.Equal(t, 1, same)
		})
	}
}
