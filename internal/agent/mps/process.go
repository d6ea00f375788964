package mps

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	pipeVariable = "CUDA_MPS_PIPE_DIRECTORY"
	logVariable  = "CUDA_MPS_LOG_DIRECTORY"
	gpuVariable  = "CUDA_VISIBLE_DEVICES"

	controlLog = "control.log" // the daemon writes it
	startLog   = "start.log"   // the program that starts the daemon writes it; ours
	pidFile    = "nvidia-cuda-mps-control.pid"

	// waitDelay is how long we wait for the output of a program that has ended, or
	// that was killed, when a child of it still holds the output open.
	waitDelay = time.Second
)

// run puts one question to the GPU's daemon. said is its answer, or with an error
// everything that the program printed. When ctx ends, the program is killed: it
// talks over sockets alone, so that it dies at once.
func (m *MPS) run(ctx context.Context, g *gpu, command string) (said string, err error) {
	var out, complaint bytes.Buffer

	cmd := exec.CommandContext(ctx, m.binary) //nolint:gosec // G204: the program that Open found
	cmd.Dir = "/"
	cmd.Env = environment(pipeVariable + "=" + g.pipe)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(command+"\n"), &out, &complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // its children, too: the program may be a script
	cmd.WaitDelay = waitDelay

	if err := cmd.Run(); err != nil {
		return strings.TrimSpace(complaint.String() + out.String()), err
	}

	return strings.TrimSpace(out.String()), nil
}

// launch runs the program that puts a daemon into the background. Their output
// goes to a file: a pipe would block us for as long as the daemon lives. A
// separate session keeps signals of the worker's terminal away from the daemon.
func (m *MPS) launch(ctx context.Context, g *gpu, options ...string) error {
	log, err := os.OpenFile(filepath.Join(g.log, startLog), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW, 0o644) //nolint:gosec // G302,G304: our own log
	if err != nil {
		return g.failed(err)
	}
	defer log.Close() //nolint:errcheck // the program has written

	ctx, cancel := context.WithTimeout(ctx, m.startTimeout())
	defer cancel()

	cmd := exec.CommandContext(ctx, m.binary, append([]string{"-d"}, options...)...) //nolint:gosec // G204: the program that Open found
	cmd.Dir = "/"
	cmd.Env = environment(pipeVariable+"="+g.pipe, logVariable+"="+g.log, gpuVariable+"="+g.uuid)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = waitDelay

	return cmd.Run()
}

// environment is the worker's own without CUDA's variables, and with add.
func environment(add ...string) []string {
	var kept []string

	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "CUDA_") {
			kept = append(kept, variable)
		}
	}

	return append(kept, add...)
}

// process returns the PID of the GPU's daemon, 0 = none runs. A PID counts only
// when that process was started for this directory: the file outlives a reboot, and
// then the number may be another program's, or another GPU's daemon.
func (g *gpu) process() int {
	root, err := os.OpenRoot(g.pipe)
	if err != nil {
		return 0
	}
	defer root.Close() //nolint:errcheck // nothing was written through it

	// Containers may write there: the file may be a pipe, which must not block.
	file, err := root.OpenFile(pidFile, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0
	}
	defer file.Close() //nolint:errcheck // nothing was written through it

	content, _ := io.ReadAll(io.LimitReader(file, 32)) // half a number is no PID of a daemon

	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || pid <= 0 || !g.owns(pid) {
		return 0
	}

	return pid
}

// owns reports whether a process was started for this directory. One that we may
// not look at counts as such: then nothing is removed under it.
func (g *gpu) owns(pid int) bool {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return errors.Is(err, fs.ErrPermission)
	}

	for variable := range strings.SplitSeq(string(content), "\x00") {
		if variable == pipeVariable+"="+g.pipe {
			return true
		}
	}

	return false
}
