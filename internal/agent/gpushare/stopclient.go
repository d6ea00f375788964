package gpushare

import (
	"context"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/docker"
)

const (
	// drainClient is how long a frozen client's kernels may go on. CUDA queues about 1,000
	// launches of a stream. The driver counts the activity of all clients as the server's,
	// so one client's end is not visible. Measured with six clients that queue 20 products
	// of 22 ms and six neighbours: after 1 s all neighbours died, after 5 s none of 18
	// (one H200, driver 580, 2026-11-27).
	drainClient = 20 * time.Second

	// drainSimulated is the same for simulated GPUs, on which the steps of tests are
	// shorter.
	drainSimulated = time.Second

	// pollEnd is how often a container is polled after SIGTERM.
	pollEnd = 100 * time.Millisecond
)

// Docker is a Docker that ends no MPS client while its kernels run: they would
// lose their memory, and all clients of the server die of that (rule R10).
type Docker struct {
	*docker.Docker

	sharer *sharer // nil = no GPU is shared by MPS
}

// Docker stops containers of this worker in order.
func (g *GPUs) Docker(d *docker.Docker) Docker { return Docker{d, g.sharer} }

// Stop stops a container.
func (d Docker) Stop(ctx context.Context, id string, grace time.Duration) error {
	if d.sharer == nil {
		return d.Docker.Stop(ctx, id, grace)
	}

	return d.sharer.stopContainer(ctx, d.Docker, id, grace)
}

// stopper stops containers. docker.Docker is one.
type stopper interface {
	Inspect(ctx context.Context, id string) (berth.Container, error)
	Signal(ctx context.Context, id string, kill bool) error
	Pause(ctx context.Context, id string) error
	Stop(ctx context.Context, id string, grace time.Duration) error
}

// stopContainer stops a container of any kind. A container with MPS clients beside others'
// gets SIGTERM when its program and its clients have a handler, and grace to end. If it has
// none, or does not end, it is frozen: a frozen client submits no kernels, and once its
// submitted kernels have ended it may be killed.
func (s *sharer) stopContainer(ctx context.Context, docker stopper, id string, grace time.Duration) error {
	c, err := docker.Inspect(ctx, id)
	if err != nil || c.State != berth.ContainerRunning || !s.hasDaemon(c.DeviceID) {
		return docker.Stop(ctx, id, grace)
	}

	own, _, err := s.clientsOf(ctx, c)
	if len(own) == 0 && err == nil {
		return docker.Stop(ctx, id, grace)
	}

	if s.handleTerm(c.PID, own) {
		if err := docker.Signal(ctx, id, false); err != nil {
			return err
		}

		if waitForEnd(ctx, docker, id, grace) {
			return nil
		}
	}

	if own, others, _ := s.clientsOf(ctx, c); others {
		if err := s.freeze(ctx, docker, id); err != nil {
			return err
		}

		s.killFrozen(own)
	}

	return docker.Signal(ctx, id, true)
}

// killFrozen sends SIGKILL to the clients of a frozen container. Docker kills its first
// process and thaws it; on cgroup version 1 the others run until the first has ended, and
// submit kernels (Docker 20.10). A signal that waits for them ends them before they do.
func (s *sharer) killFrozen(clients []int) {
	for _, pid := range clients {
		if err := s.kill(pid); err != nil {
			s.log.Warn("killing a frozen client of MPS", "pid", pid, "error", err)
		}
	}
}

// freeze pauses a container and waits until its kernels have ended.
func (s *sharer) freeze(ctx context.Context, docker stopper, id string) error {
	if err := docker.Pause(ctx, id); err != nil {
		return err
	}

	select {
	case <-time.After(s.drain):
		return nil
	case <-ctx.Done(): // it stays frozen, and the next to stop it goes on here
		return berth.Errorf(berth.KindUnavailable, "waiting for the kernels of container %q: %w", id, context.Cause(ctx))
	}
}

// waitForEnd reports whether a container ends within grace.
func waitForEnd(ctx context.Context, docker stopper, id string, grace time.Duration) bool {
	deadline := time.After(grace)

	for {
		c, err := docker.Inspect(ctx, id)
		if berth.KindOf(err) == berth.KindNotFound || err == nil && c.State != berth.ContainerRunning {
			return true
		}

		select {
		case <-time.After(pollEnd):
		case <-deadline:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// clientsOf returns the MPS clients of a container by PID, and whether the GPU has, or may
// have, others. Error: the daemon does not answer.
func (s *sharer) clientsOf(ctx context.Context, c berth.Container) (own []int, others bool, err error) {
	clients, err := s.daemons.Clients(ctx, c.DeviceID)
	if err != nil {
		s.log.Warn("listing the MPS clients of a container that must stop; it is frozen first", "container", c.Name, "device", c.DeviceID, "error", err)

		return nil, true, err
	}

	for _, pid := range clients {
		if id, ok := s.proc(pid); ok && id == c.ID {
			own = append(own, pid)
		} else {
			others = true
		}
	}

	return own, others, nil
}

// handleTerm reports whether SIGTERM lets a container end in order: its program, which
// gets the signal from its init process, and all its clients have a handler. By
// default, SIGTERM ends a program in the middle of its kernels.
func (s *sharer) handleTerm(initPID int, clients []int) bool {
	pid := strconv.Itoa(initPID)

	children, err := fs.ReadFile(s.system, pid+"/task/"+pid+"/children")
	if err != nil || len(clients) == 0 {
		return false
	}

	pids := strings.Fields(string(children))
	for _, client := range clients {
		pids = append(pids, strconv.Itoa(client))
	}

	for _, pid := range pids {
		if !s.catches(pid, syscall.SIGTERM) {
			return false
		}
	}

	return true
}

// catches reports whether a process has a handler for a signal.
func (s *sharer) catches(pid string, signal syscall.Signal) bool {
	status, err := fs.ReadFile(s.system, pid+"/status")
	if err != nil {
		return false
	}

	for line := range strings.Lines(string(status)) {
		if mask, found := strings.CutPrefix(line, "SigCgt:"); found {
			caught, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)

			return err == nil && caught>>(signal-1)&1 == 1
		}
	}

	return false
}

func killProcess(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }
