// Package devstack starts Berth's dependencies, PostgreSQL and a Temporal
// development server, as children of this process: for `berth dev` and for
// tests. No child outlives the process, even when that is killed.
package devstack

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/berthml/berth"
)

// process is a child that ends when we do.
type process struct {
	name    string
	cmd     *exec.Cmd
	logFile string        // its output
	done    chan struct{} // closed once it has ended
	err     error         // why, once done is closed
}

// start runs a program with its output in a file. The child gets a signal when
// this process dies, and has its own process group, so that Ctrl-C on a
// terminal reaches only this process, which stops the child in order.
func start(name string, cmd *exec.Cmd, logFile string, lastWill syscall.Signal) (*process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // G302,G304: our own log
	if err != nil {
		return nil, fmt.Errorf("opening log of %s: %w", name, err)
	}

	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}

	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = lastWill

	p := &process{name: name, cmd: cmd, logFile: logFile, done: make(chan struct{})}
	started := make(chan error)

	go func() { // ends with the child; Pdeathsig fires when the thread that started it ends, so it keeps one
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.done)
		defer log.Close() //nolint:errcheck // the child has written

		err := cmd.Start()
		started <- err

		if err == nil {
			p.err = cmd.Wait()
		}
	}()

	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}

	return p, nil
}

// stop asks the child to end, and makes it when it does not within patience.
func (p *process) stop(ask syscall.Signal, patience time.Duration) error {
	_ = p.cmd.Process.Signal(ask) // it may have ended

	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.done

		return berth.Errorf(berth.KindInternal, "%s did not stop within %s and was killed", p.name, patience)
	}
}

// await calls ready until it succeeds, the child ends, or patience is over.
func (p *process) await(patience time.Duration, ready func() error) error {
	deadline := time.Now().Add(patience)

	for {
		err := ready()
		if err == nil {
			return nil
		}

		select {
		case <-p.done:
			return berth.Errorf(berth.KindUnavailable, "%s ended at once (%w); its output is in %s", p.name, errors.Join(p.err, err), p.logFile)
		case <-time.After(50 * time.Millisecond):
		}

		if time.Now().After(deadline) {
			return berth.Errorf(berth.KindUnavailable, "%s was not ready after %s: %w; its output is in %s", p.name, patience, err, p.logFile)
		}
	}
}

// leftoverPatience is how long a server of an earlier run may take to end.
const leftoverPatience = 30 * time.Second

// endLeftover ends the process whose number the first line of a file holds, if
// it still runs: an earlier process of ours was killed and its child is not
// gone yet. The number is believed only when that process' command line has
// the marker, such as its data directory.
func endLeftover(name, pidFile, marker string, ask syscall.Signal) error {
	content, err := os.ReadFile(pidFile) //nolint:gosec // G304: our own file
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("reading %q: %w", pidFile, err)
	}

	first, _, _ := strings.Cut(string(content), "\n")

	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return nil //nolint:nilerr // an unreadable pid file is left to its owner
	}

	for deadline := time.Now().Add(leftoverPatience); isOurs(pid, marker); time.Sleep(50 * time.Millisecond) {
		_ = syscall.Kill(pid, ask) // it may end by itself

		if time.Now().After(deadline) {
			return berth.Errorf(berth.KindConflict, "another %s (process %d) uses %s and does not stop", name, pid, marker)
		}
	}

	return nil
}

func isOurs(pid int, marker string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))

	return err == nil && strings.Contains(string(line), marker)
}

// Ports that FreePort takes: below 32768, where Linux by default begins to give
// ports to outgoing connections and to listeners that name none
// (net.ipv4.ip_local_port_range; elsewhere it is 49152), and below 30000, where
// Kubernetes' node ports begin. So an ordinary process takes no such port by
// chance; when another of our own does before a server has started, it is started
// on the next one (portTries).
const (
	firstPort = 20000
	lastPort  = 29999
	// portLooks is how many of them are tried. Few are ever taken.
	portLooks = 100
)

// FreePort returns a TCP port of the loopback interface that is free now: the
// wanted one, or when that is 0 or taken, another, but none of taken. Errors:
// unavailable.
func FreePort(wanted int, taken ...int) (int, error) {
	port := wanted

	for range portLooks {
		if port != 0 && !slices.Contains(taken, port) && listenable(port) {
			return port, nil
		}

		port = firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // G404: no secret
	}

	return 0, berth.Errorf(berth.KindUnavailable, "no free TCP port on the loopback interface after %d looks from %d to %d", portLooks, firstPort, lastPort)
}

func listenable(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // closed at once

	return err == nil && listener.Close() == nil
}

// dialable reports whether something listens on a port.
func dialable(port int) error {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), time.Second) //nolint:noctx // bounded by its timeout
	if err != nil {
		return err
	}

	return conn.Close()
}
