package simgpu

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/simgpu/wire"
)

const (
	// maxSocketPath is the longest path of a Unix socket: sun_path has 108 bytes on
	// Linux; the last one is 0 (unix(7)).
	maxSocketPath = 107

	// faultSocket is the GPU's socket for testers. Containers do not see it.
	faultSocket = "faults.sock"

	// longestLine bounds one message of a program.
	longestLine = 64 << 10
)

// open makes a card's directory and listens there, until the Simulator is closed:
//
//	gpu/card.sock    for programs; gpu is mounted into containers
//	mps/control      the same by MPS; mps is mounted
//	faults.sock      for people who test: a line of JSON with a Fault
func (s *Simulator) open(c *card) error {
	for _, name := range []string{c.dir, c.mounted(), c.pipe()} {
		err := os.MkdirAll(name, 0o755) //nolint:gosec // G301: programs of any user come here
		if err == nil {
			err = os.Chmod(name, 0o755) //nolint:gosec // G302: a directory of another umask, or of another version
		}

		if err != nil {
			return berth.Errorf(berth.KindUnavailable, "making the directory of a simulated GPU: %w", err)
		}
	}

	return cmp.Or(
		s.listen(c, filepath.Join(c.mounted(), wire.Socket), 0o666, func(conn *net.UnixConn) { s.program(c, conn, false) }),
		s.listen(c, filepath.Join(c.pipe(), wire.MPSSocket), 0o666, func(conn *net.UnixConn) { s.program(c, conn, true) }),
		s.listen(c, filepath.Join(c.dir, faultSocket), 0o600, func(conn *net.UnixConn) { s.faults(c, conn) }),
	)
}

func (c *card) mounted() string { return filepath.Join(c.dir, "gpu") }
func (c *card) pipe() string    { return filepath.Join(c.dir, "mps") }

// Mount is the directory to mount into containers of a card, at wire.Dir; empty for a
// card that is not there.
func (s *Simulator) Mount(uuid string) string {
	c, err := s.card(uuid)
	if err != nil {
		return ""
	}

	return c.mounted()
}

// listen serves a socket until the Simulator is closed.
func (s *Simulator) listen(c *card, path string, mode os.FileMode, serve func(*net.UnixConn)) error {
	if len(path) > maxSocketPath {
		return berth.Errorf(berth.KindInvalid, "the simulated GPU's socket %q would have a path of %d bytes, and Linux allows %d: choose a data directory whose path is at least %d bytes shorter",
			path, len(path), maxSocketPath, len(path)-maxSocketPath)
	}

	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return berth.Errorf(berth.KindUnavailable, "removing the socket that an earlier worker left: %w", err)
	}

	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return berth.Errorf(berth.KindUnavailable, "listening for programs of a simulated GPU: %w", err)
	}

	if err := os.Chmod(path, mode); err != nil {
		return errors.Join(berth.Errorf(berth.KindUnavailable, "opening a simulated GPU to programs: %w", err), listener.Close())
	}

	s.work.Go(func() {
		defer s.closing(listener)()

		for {
			conn, err := listener.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}

			if err != nil { // such as no file left for it
				s.config.Log.Warn("accepting a program of a simulated GPU", "device", c.uuid, "error", err)

				continue
			}

			s.work.Go(func() {
				defer s.closing(conn)()
				serve(conn)
			})
		}
	})

	return nil
}

// closing closes a socket when the Simulator is closed, or by the function that it returns.
func (s *Simulator) closing(socket io.Closer) func() {
	stop := context.AfterFunc(s.life, func() { _ = socket.Close() }) // nothing is on its way

	return func() {
		stop()

		_ = socket.Close()
	}
}

// program serves one program.
func (s *Simulator) program(c *card, conn *net.UnixConn, mps bool) {
	pid, err := peer(conn)
	if err != nil {
		s.config.Log.Warn("asking who uses a simulated GPU", "device", c.uuid, "error", err)

		return
	}

	// Requests are read during the step, to notice a program that has gone.
	requests, gone := make(chan wire.Request), make(chan struct{})

	ctx, cancel := context.WithCancel(s.life)
	defer cancel()

	s.work.Go(func() {
		defer close(gone)

		lines := bufio.NewScanner(conn)
		lines.Buffer(nil, longestLine)

		for lines.Scan() {
			var r wire.Request
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				r = wire.Request{} // which no client may ask
			}

			select {
			case requests <- r:
			case <-ctx.Done():
				return
			}
		}
	})

	var cl *client

	for {
		select {
		case <-gone:
		case r := <-requests:
			var a wire.Answer
			if cl, a = c.serve(cl, r, pid, mps, gone); write(conn, a) == nil {
				continue
			}
		}

		break
	}

	if cl != nil {
		c.leave(cl)
	}
}

// serve answers one request. The first one must be a hello, and makes the client.
func (c *card) serve(cl *client, r wire.Request, pid int, mps bool, gone <-chan struct{}) (*client, wire.Answer) {
	switch {
	case cl == nil && r.Op == wire.Hello && r.Bytes >= 0 && r.LimitBytes >= 0:
		return c.join(pid, mps, r.LimitBytes, r.Bytes)
	case cl == nil:
	case r.Op == wire.Alloc && r.Bytes >= 0:
		return cl, c.take(cl, r.Bytes)
	case r.Op == wire.Free && r.Bytes >= 0:
		return cl, c.take(cl, -r.Bytes)
	case r.Op == wire.Run && r.Step != nil && valid(*r.Step):
		return cl, c.step(cl, *r.Step, gone)
	case r.Op == wire.Crash:
		return cl, c.crash(cl)
	}

	return cl, wire.Answer{Error: wire.InvalidValue, Text: texts[wire.InvalidValue]}
}

// faults lets a person who tests harm the card.
func (s *Simulator) faults(c *card, conn *net.UnixConn) {
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var f Fault

		answer := wire.Answer{}
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			answer = wire.Answer{Error: wire.InvalidValue, Text: err.Error()}
		} else {
			s.config.Log.Warn("a simulated GPU was told to fail", "device", c.uuid, "fault", fmt.Sprintf("%+v", f))
			c.inject(f)
		}

		if write(conn, answer) != nil {
			return
		}
	}
}

func write(conn net.Conn, a wire.Answer) error {
	line, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("writing an answer: %w", err)
	}

	_, err = conn.Write(append(line, '\n'))

	return err
}

// peer is the PID of a connection's program, in this process' PID namespace.
func peer(conn *net.UnixConn) (pid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("asking for the peer of a socket: %w", err)
	}

	var (
		credentials *syscall.Ucred
		failure     error
	)

	err = raw.Control(func(fd uintptr) {
		credentials, failure = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = errors.Join(err, failure); err != nil {
		return 0, fmt.Errorf("asking for the peer of a socket: %w", err)
	}

	if credentials.Pid <= 0 {
		return 0, berth.Errorf(berth.KindUnavailable, "the program is in a PID namespace that this worker does not see; run the worker in the machine's")
	}

	return int(credentials.Pid), nil
}

// Inject lets something go wrong on a card of the Simulator that serves dir, also one
// of another process. number counts the cards from 0. It is for tests.
func Inject(dir string, number int, f Fault) error {
	conn, err := wire.Dial(filepath.Join(dir, strconv.Itoa(number), faultSocket))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is on its way

	return conn.Tell(f)
}
