//go:build integration && nightly

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// daemon is a test's own Docker daemon, which it may kill. It lives in its own
// network namespace: a daemon without a bridge would take away the bridge of
// the machine's daemon.
type daemon struct {
	t    *testing.T
	dir  string
	live bool // live-restore: containers outlive it
	cmd  *exec.Cmd
}

// startDaemon starts a daemon with the tests' image.
func startDaemon(t *testing.T, live bool) *daemon {
	t.Helper()

	for _, program := range []string{"dockerd", "unshare", "containerd"} {
		if _, err := exec.LookPath(program); err != nil || os.Geteuid() != 0 {
			runtimetest.Skip(t, "a Docker daemon of the test's own needs root and %s", program)
		}
	}

	dir, err := os.MkdirTemp("", "berth-dockerd-") //nolint:usetesting // a socket's path must be short
	require.NoError(t, err)

	d := &daemon{t: t, dir: dir, live: live}

	t.Cleanup(d.clean)
	d.start()

	save := exec.Command("docker", "save", "berth-test/busy:1") //nolint:noctx // a small image
	load := exec.Command("docker", "--host", d.host(), "load")  //nolint:noctx // the same
	load.Stdin, err = save.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, save.Start())

	out, err := load.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, save.Wait())

	return d
}

func (d *daemon) host() string { return "unix://" + filepath.Join(d.dir, "docker.sock") }

// start starts it, and again after it has ended, and waits until it answers.
func (d *daemon) start() {
	d.t.Helper()

	// Files of a killed daemon.
	_ = os.Remove(filepath.Join(d.dir, "docker.pid"))
	_ = os.Remove(filepath.Join(d.dir, "exec", "containerd", "containerd.pid"))

	args := []string{
		"--net", "dockerd", "--data-root", filepath.Join(d.dir, "data"), "--exec-root", filepath.Join(d.dir, "exec"),
		"--host", d.host(), "--pidfile", filepath.Join(d.dir, "docker.pid"), "--bridge", "none", "--iptables=false",
		// Its own also where it shares the machine's containerd.
		"--containerd-namespace", filepath.Base(d.dir), "--containerd-plugins-namespace", filepath.Base(d.dir) + "-plugins",
	}
	if d.live {
		args = append(args, "--live-restore")
	}

	cmd := exec.Command("unshare", args...) //nolint:noctx // stopped by clean
	d.cmd = launch(d.t, cmd, filepath.Join(d.dir, "dockerd.log"), os.O_APPEND)

	dockerAnswers(d.t, d.host(), d.dir)
}

// stop ends it by a signal.
func (d *daemon) stop(signal syscall.Signal) { stop(d.cmd, signal) }

// clean stops it in an orderly way, which leaves nothing mounted.
func (d *daemon) clean() {
	if lives(d.cmd) {
		_ = d.cmd.Process.Signal(syscall.SIGCONT)
	}

	d.stop(syscall.SIGTERM)

	leaveDockerd(d.t, d.dir)

	if err := os.RemoveAll(d.dir); err != nil {
		d.t.Errorf("removing the daemon's directory: %v", err)
	}
}

// stack is a Berth whose worker uses the daemon.
func (d *daemon) stack() *stack {
	d.t.Helper()

	return startOn(d.t, []string{"DOCKER_HOST=" + d.host()}, "--cpus", "2", "--waits", "reconcile="+fastReconcile.String()+",grace="+fastGrace.String())
}

// away keeps the daemon down for this long.
func (d *daemon) away(lasts time.Duration) {
	over := time.Now().Add(lasts)
	require.Eventually(d.t, func() bool { return time.Now().After(over) }, patience, tick)
}

// Failure 5 with live-restore: the daemon is killed, stopped or replaced, and
// no trial notices. Failure 6: nor when it is frozen beyond the timeout of a
// call (10 s).
func TestDaemon_WithLiveRestoreNoTrialNotices(t *testing.T) {
	t.Parallel()

	d := startDaemon(t, true)
	s := d.stack()

	for _, tt := range []struct {
		name string
		do   func()
	}{
		{"SIGKILL", func() { d.stop(syscall.SIGKILL); d.start() }},
		{"SIGTERM", func() { d.stop(syscall.SIGTERM); d.start() }},
		{"SIGSTOP", func() {
			require.NoError(t, d.cmd.Process.Signal(syscall.SIGSTOP))
			d.away(11 * time.Second)
			require.NoError(t, d.cmd.Process.Signal(syscall.SIGCONT))
		}},
	} {
		id := s.submit(busy(2, 10_000, small))
		s.until(id, patience, running(2))
		before := s.twoRunning(id)

		tt.do()
		s.requireOnce(id, 2)

		ran := map[string]bool{}
		for _, a := range s.attempts(id) {
			ran[a.ContainerID] = true
		}

		for _, c := range before {
			require.True(t, ran[c.id], "%s: container %s was replaced", tt.name, c.name)
		}
	}

	// A container that ends while the daemon is away keeps its exit code and
	// may lose its last lines, which may contain the result: then it runs
	// again.
	id := s.submit(busy(2, 10_000, small, "retry: {max_attempts: 1}"))
	s.until(id, patience, running(2))
	s.twoRunning(id)
	d.stop(syscall.SIGKILL)
	d.away(12 * time.Second)
	d.start()
	s.requireAgain(id, 2)

	s.requireQuiet(id)
}

// requireAgain checks that all trials succeeded, and that repeated ones ran
// again through no fault of theirs.
func (s *stack) requireAgain(id string, trials int) (attempts []client.Attempt) {
	s.t.Helper()

	sweep := s.until(id, patience, ended)
	attempts = s.attempts(id)
	require.Equal(s.t, client.SweepStateSucceeded, sweep.State, "%+v", attempts)
	require.Equal(s.t, trials, sweep.Counts.Succeeded, "%+v", attempts)

	succeeded := 0

	for _, a := range attempts {
		if a.FailureKind == "ok" {
			succeeded++
		} else {
			require.Equal(s.t, "infra", a.FailureKind, a.Message)
		}
	}

	require.Equal(s.t, trials, succeeded)

	return attempts
}

// Failure 5 without live-restore: the daemon takes its containers with it.
// Their exits look like errors of the program (code 2, 137 or 143), and are the
// machine's fault: the trial runs again and is not charged, also after an
// outage of the daemon beyond all timeouts.
func TestDaemon_WithoutLiveRestoreTrialsRunAgain(t *testing.T) {
	t.Parallel()

	d := startDaemon(t, false)
	s := d.stack()

	for _, tt := range []struct {
		name   string
		signal syscall.Signal
		away   time.Duration
		lasts  int // of a trial, ms: longer, for a killed daemon ends its containers when it is back
	}{
		{"SIGTERM", syscall.SIGTERM, 0, 15_000},
		{"SIGKILL, away for longer than a question may take", syscall.SIGKILL, 11 * time.Second, 30_000},
	} {
		id := s.submit(busy(2, tt.lasts, small, "retry: {max_attempts: 1}"))
		s.until(id, patience, running(2))
		require.Eventually(t, func() bool { return len(s.running()) == 2 }, patience, tick)

		d.stop(tt.signal)
		d.away(tt.away)
		d.start()

		attempts := s.requireAgain(id, 2)
		require.GreaterOrEqual(t, len(attempts), 4, "%s killed nobody", tt.name) // more when one was started at the wrong moment

		for _, a := range attempts {
			if a.Number == 1 {
				require.Contains(t, a.Message, "Docker went away", tt.name)
			}
		}
	}

	// Docker itself may be left with a container that it started while it was
	// being stopped, and whose file system it cannot unmount.
	require.Eventually(t, func() bool {
		hosts, err := s.api.ListHostsWithResponse(t.Context())

		return err == nil && hosts.JSON200 != nil && hosts.JSON200.Data[0].MemoryReservedBytes == 0 && len(s.running()) == 0
	}, patience, tick)
}
