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

// retryEvery is the pause between two tries, at a daemon that is busy or that is
// starting. A try is a process, of some ms.
const retryEvery = 50 * time.Millisecond

// errSilent: the daemon did not answer in time. Without it, the program said itself
// why there is no answer.
var errSilent = errors.New("no answer")

// busyText is the program's text when the daemon serves another caller: it
// takes one connection at a time and turns away the rest.
const busyText = "Cannot send command to MPS control daemon process"

// ask puts a question to the GPU's daemon and returns the answer, without the
// spaces around it. Where the daemon is busy, ask tries again. Call it in turn.
// Errors: unavailable, with errSilent in it when the timeout was reached; the cause
// of ctx.
func (m *MPS) ask(ctx context.Context, g *gpu, command string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()

	for {
		said, err := m.run(limited, g, command)

		switch {
		case err == nil:
			return said, nil
		case ctx.Err() != nil:
			return "", fmt.Errorf("asking the MPS control daemon of GPU %q for %q: %w", g.uuid, command, context.Cause(ctx))
		case limited.Err() != nil:
			return "", berth.Errorf(berth.KindUnavailable, "asking the MPS control daemon of GPU %q for %q: %w within %s %s", g.uuid, command, errSilent, m.timeout, said)
		case !strings.Contains(said, busyText):
			return "", berth.Errorf(berth.KindUnavailable, "asking the MPS control daemon of GPU %q for %q: it says %q (%w)", g.uuid, command, said, err)
		}

		pause(limited)
	}
}

// pause waits until the next try, or until ctx ends.
func pause(ctx context.Context) {
	select {
	case <-time.After(retryEvery):
	case <-ctx.Done():
	}
}

// askPIDs is ask for a question that lists processes, one a line.
func (m *MPS) askPIDs(ctx context.Context, g *gpu, command string) ([]int, error) {
	answer, err := m.ask(ctx, g, command)
	if err != nil {
		return nil, err
	}

	var pids []int

	for line := range strings.Lines(answer) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}

		pid, err := strconv.Atoi(line)
		if err != nil || pid <= 0 {
			return nil, g.malformed(command, answer)
		}

		pids = append(pids, pid)
	}

	return pids, nil
}

// malformed is the error of a malformed answer. It counts as no answer: it must not
// look like an empty list.
func (g *gpu) malformed(command, answer string) error {
	return berth.Errorf(berth.KindUnavailable, "asking the MPS control daemon of GPU %q for %q: its answer is %q", g.uuid, command, answer)
}
