package mps

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berthml/berth"
)

// multiuser lets one server take clients of all users. It needs root.
const multiuser = "-multiuser-server"

// startTimeout is how long a daemon may take to start: 30 s by default. Without
// persistence mode the driver starts a GPU in 1 s to 3 s.
func (m *MPS) startTimeout() time.Duration { return 6 * m.timeout }

// Start makes sure that the GPU's daemon runs and answers. It takes over a running
// daemon of the worker before; otherwise it removes a dead one's files, and starts
// one. It starts an older control program that does not know -multiuser-server
// without that option: its server takes clients of one user at a time.
//
// Errors: unavailable, with the text of the program or its log; invalid when the
// path of the sockets would be too long, with the fix, or for a malformed UUID.
func (m *MPS) Start(ctx context.Context, uuid string) error {
	g := m.gpu(uuid)
	if err := g.check(); err != nil {
		return err
	}

	if err := g.takeDir(ctx); err != nil {
		return err
	}
	defer g.giveDir()

	if err := g.prepare(); err != nil {
		return err
	}

	if err := m.check(ctx, g); err != nil {
		if err := m.begin(ctx, g, err); err != nil {
			return err
		}
	}

	return g.openToUsers()
}

// begin gets a daemon to answer that did not: silence says why.
func (m *MPS) begin(ctx context.Context, g *gpu, silence error) error {
	if ctx.Err() != nil {
		return silence
	}

	if pid := g.process(); pid != 0 { // it may have been started a moment ago
		if err := m.await(ctx, func() error { return m.check(ctx, g) }); err != nil {
			return berth.Errorf(berth.KindOf(err), "process %d is that daemon: when no trial runs on the GPU, end it with `kill %d`: %w", pid, pid, err)
		}

		return nil
	}

	if err := g.clearPipe(); err != nil {
		return err
	}

	logged := g.controlLogSize()

	err := m.launch(ctx, g, multiuser)
	if err != nil && unknownOption(g.endOfLog(startLog, 0)) {
		err = m.launch(ctx, g)
	}

	if err == nil {
		err = m.await(ctx, func() error { return m.check(ctx, g) })
	}

	if err == nil {
		return nil
	}

	if ctx.Err() != nil {
		return fmt.Errorf("starting the MPS control daemon of GPU %q: %w", g.uuid, context.Cause(ctx))
	}

	said := strings.Trim(g.endOfLog(startLog, 0)+"; "+g.endOfLog(controlLog, logged), "; ")

	return berth.Errorf(berth.KindUnavailable, "starting the MPS control daemon of GPU %q: it says %q: %w; its logs are in %q", g.uuid, said, err, g.log)
}

// unknownOption reports whether the program's output says that it does not know the
// option. There is no other sign: it has no way to ask for its version.
func unknownOption(said string) bool {
	said = strings.ToLower(said)

	for _, words := range []string{"usage", "unknown option", "unrecognized option", "invalid option"} {
		if strings.Contains(said, words) {
			return true
		}
	}

	return false
}

// await calls ready until it succeeds, for as long as a daemon may take to start.
func (m *MPS) await(ctx context.Context, ready func() error) error {
	for deadline := time.Now().Add(m.startTimeout()); ; pause(ctx) {
		err := ready()
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// Check asks whether the GPU's daemon answers. Whether its server works, only a
// client can tell.
// Errors: unavailable when it does not.
func (m *MPS) Check(ctx context.Context, uuid string) error {
	g := m.gpu(uuid)
	if err := g.takeDir(ctx); err != nil {
		return err
	}
	defer g.giveDir()

	return m.check(ctx, g)
}

// check asks the same question as NVIDIA's Kubernetes device plugin.
func (m *MPS) check(ctx context.Context, g *gpu) error {
	const command = "get_default_active_thread_percentage"

	answer, err := m.ask(ctx, g, command)
	if err != nil {
		return err
	}

	if _, err := strconv.ParseFloat(answer, 64); err != nil {
		return g.malformed(command, answer)
	}

	return nil
}

// Stop ends the GPU's daemon, unless it has a client. The caller must start no client during
// Stop. Errors: unavailable when the daemon does not answer, or does not end.
func (m *MPS) Stop(ctx context.Context, uuid string) error {
	g := m.gpu(uuid)
	if err := g.takeDir(ctx); err != nil {
		return err
	}
	defer g.giveDir()

	pid := g.process()

	clients, err := m.clients(ctx, g)
	if err != nil && g.isAbsent(ctx, pid, err) {
		return nil
	}

	if err != nil || len(clients) > 0 {
		return err
	}

	_, quitErr := m.ask(ctx, g, "quit")
	err = m.await(ctx, func() error {
		if err := m.check(ctx, g); err == nil || !g.isAbsent(ctx, pid, err) {
			return berth.Errorf(berth.KindUnavailable, "stopping the MPS control daemon of GPU %q: it still runs (process %d)", g.uuid, pid)
		}

		return nil
	})

	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopping the MPS control daemon of GPU %q: %w", g.uuid, context.Cause(ctx))
	case err != nil:
		return errors.Join(err, quitErr)
	default:
		return nil
	}
}

// isAbsent reports whether no daemon runs, by the error of a question and by the
// earlier daemon's process (0 = none).
func (g *gpu) isAbsent(ctx context.Context, pid int, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, errSilent) && (pid == 0 || !g.owns(pid)) && g.process() == 0
}
