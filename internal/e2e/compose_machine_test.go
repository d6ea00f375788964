//go:build integration && compose

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// elsewhere is a further machine for Docker and the network: a network
// namespace with its own daemon, and a cable to this machine.
type elsewhere struct {
	t      *testing.T
	name   string // of the namespace
	dir    string
	here   string // this machine's address on the cable
	daemon *exec.Cmd
}

// newElsewhere makes the namespace and the cable; its daemon does not run yet.
func newElsewhere(t *testing.T) *elsewhere {
	t.Helper()

	for _, program := range []string{"dockerd", "nsenter", "ip", "containerd"} {
		if _, err := exec.LookPath(program); err != nil || os.Geteuid() != 0 {
			runtimetest.Skip(t, "a machine of the test's own needs root and %s", program)
		}
	}

	dir, err := os.MkdirTemp("", "berth-machine-") //nolint:usetesting // a socket's path must be short
	require.NoError(t, err)

	// 198.18.0.0/15 is for tests of networks (RFC 2544): no network routes it.
	n := rand.IntN(1 << 14)
	subnet := fmt.Sprintf("198.18.%d.", n>>6)
	e := &elsewhere{
		t: t, dir: dir, name: fmt.Sprintf("berth-%d", n), here: subnet + fmt.Sprint(n&63*4+1),
	}

	undo(t, e.clean)
	e.ip("netns", "add", e.name)
	e.ip("link", "add", e.name, "type", "veth", "peer", "name", "eth0", "netns", e.name)
	e.ip("addr", "add", e.here+"/30", "dev", e.name)
	e.ip("link", "set", e.name, "up")
	e.ip("-n", e.name, "addr", "add", subnet+fmt.Sprint(n&63*4+2)+"/30", "dev", "eth0")
	e.ip("-n", e.name, "link", "set", "eth0", "up")
	e.ip("-n", e.name, "link", "set", "lo", "up")
	e.ip("-n", e.name, "route", "add", "default", "via", e.here)

	return e
}

func (e *elsewhere) ip(args ...string) {
	e.t.Helper()

	out, err := exec.Command("ip", args...).CombinedOutput() //nolint:noctx // answers at once
	require.NoError(e.t, err, "ip %s: %s", strings.Join(args, " "), out)
}

func (e *elsewhere) socket() string { return filepath.Join(e.dir, "docker.sock") }

// start starts its daemon, and brings it images as production.md says.
func (e *elsewhere) start(images ...string) {
	e.t.Helper()

	// Not `ip netns exec`, which hides the cgroups.
	e.daemon = launch(e.t, exec.Command("nsenter", "--net=/run/netns/"+e.name, "dockerd", //nolint:noctx // stopped by clean
		"--data-root", filepath.Join(e.dir, "data"), "--exec-root", filepath.Join(e.dir, "exec"),
		"--host", "unix://"+e.socket(), "--pidfile", filepath.Join(e.dir, "docker.pid"),
		// Its own also where it shares the machine's containerd.
		"--containerd-namespace", filepath.Base(e.dir), "--containerd-plugins-namespace", filepath.Base(e.dir)+"-plugins",
	), filepath.Join(e.dir, "dockerd.log"), os.O_APPEND)

	dockerAnswers(e.t, "unix://"+e.socket(), e.dir)

	for _, image := range images {
		out, err := exec.Command("bash", "-euo", "pipefail", "-c", //nolint:noctx // some 300 MB at most
			"docker save "+image+" | docker --host unix://"+e.socket()+" load").CombinedOutput()
		require.NoError(e.t, err, string(out))
	}
}

// clean stops the daemon in order, which leaves nothing mounted, and takes the
// cable away.
func (e *elsewhere) clean() {
	if e.daemon != nil {
		stop(e.daemon, syscall.SIGTERM)
	}

	leaveDockerd(e.t, e.dir)

	_ = exec.Command("ip", "link", "delete", e.name).Run()                                      //nolint:noctx // ours, and its peer with it
	if out, err := exec.Command("ip", "netns", "delete", e.name).CombinedOutput(); err != nil { //nolint:noctx // ours
		e.t.Errorf("removing the network namespace: %v: %s", err, out)
	}

	if err := os.RemoveAll(e.dir); err != nil {
		e.t.Errorf("removing the machine's directory: %v", err)
	}
}
