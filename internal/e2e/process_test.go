//go:build integration

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// starter has its own thread while the tests run: a child's Pdeathsig comes
// when the thread that started it ends.
var starter = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())

	go func() {
		runtime.LockOSThread()

		for start := range starts {
			start()
		}
	}()

	return starts
})

// launch starts a program with its output in a file, which the flag truncates
// or appends to. The kernel kills it with this process, so that an interrupted
// run leaves nothing behind.
func launch(t testing.TB, cmd *exec.Cmd, file string, flag int) *exec.Cmd {
	t.Helper()

	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|flag, 0o644) //nolint:gosec // G302: our own log
	require.NoError(t, err)

	defer out.Close() //nolint:errcheck // the child has its own descriptor

	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }

	require.NoError(t, <-started)

	c := &child{ended: make(chan struct{})}
	children.Store(cmd, c)

	go func() {
		_ = cmd.Wait()
		c.alone = !c.asked.Load()
		close(c.ended)
	}()

	return cmd
}

// child is a process that launch started, and which is waited for all along.
type child struct {
	ended chan struct{}
	asked atomic.Bool // by stop
	alone bool        // it ended before it was asked; valid once it has ended
}

var children sync.Map // of each *exec.Cmd that launch started, its *child

func childOf(cmd *exec.Cmd) *child {
	c, ok := children.Load(cmd)
	if !ok {
		return nil
	}

	return c.(*child) //nolint:forcetypeassert // launch stores nothing else
}

// stopPatience is how long an orderly end may take on a busy machine. A worker
// leaves its activities 20 s.
const stopPatience = 90 * time.Second

// stop sends a signal and waits for the end. A process that ignores it fails
// the run, and is killed.
func stop(cmd *exec.Cmd, signal syscall.Signal) {
	c := childOf(cmd)
	if c == nil {
		return
	}

	c.end(cmd, signal, stopPatience)
}

func (c *child) end(cmd *exec.Cmd, signal syscall.Signal, patience time.Duration) {
	c.asked.Store(true)
	_ = cmd.Process.Signal(signal)

	select {
	case <-c.ended:
		return
	case <-time.After(patience):
	}

	whole.Errorf("%s did not end in %s after %s", strings.Join(cmd.Args, " "), patience, signal)
	_ = cmd.Process.Kill()
	<-c.ended
}

// lives reports whether a process that launch started has not ended.
func lives(cmd *exec.Cmd) bool {
	c := childOf(cmd)
	if c == nil {
		return false
	}

	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// dockerAnswers waits until the daemon in a directory does.
func dockerAnswers(t testing.TB, host, dir string) {
	t.Helper()

	require.Eventually(t, func() bool {
		return exec.Command("docker", "--host", host, "version").Run() == nil //nolint:noctx // answers or fails at once
	}, startTimeout, 4*tick, "dockerd did not start: %s", dir)
}

// leaveDockerd prints the log of an ended daemon if the test failed, and unmounts the
// file systems in its directory.
func leaveDockerd(t testing.TB, dir string) {
	t.Helper()

	if t.Failed() {
		text, _ := os.ReadFile(filepath.Join(dir, "dockerd.log"))
		t.Logf("dockerd:\n%s", text)
	}

	mounts, _ := os.ReadFile("/proc/mounts")
	for line := range strings.Lines(string(mounts)) { // such as the namespaces' handles
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], dir+"/") {
			_ = syscall.Unmount(fields[1], syscall.MNT_DETACH)
		}
	}
}
