//go:build integration

package e2e

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// starter has a thread of its own for as long as the tests run: a child's
// Pdeathsig comes when the thread that started it ends.
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

// launch starts a program with its output in a file, which is emptied or
// appended to as the flag says. It is killed when this process is, so that a
// run that somebody ends leaves nothing behind.
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

	return cmd
}

// stop sends a signal and waits for the end.
func stop(cmd *exec.Cmd, signal syscall.Signal) {
	if cmd == nil || cmd.ProcessState != nil {
		return
	}

	_ = cmd.Process.Signal(signal)
	_ = cmd.Wait()
}

// lives reports whether a process that launch started has not ended.
func lives(cmd *exec.Cmd) bool {
	return cmd != nil && cmd.ProcessState == nil && cmd.Process.Signal(syscall.Signal(0)) == nil
}
