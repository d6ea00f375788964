package runtrial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/berthml/berth"
)

// claim is one Run's hold on its attempt.
type claim struct {
	cut  context.CancelCauseFunc // ends the Run's context
	over chan struct{}           // closed when the Run has ended
}

// errReplaced ends a Run when another one of the same attempt takes over.
var errReplaced = errors.New("another run of the attempt took over")

// claim makes this the only Run of the attempt in this process. Temporal runs
// an activity again when it has not heard of it for a while, and the one it
// gave up may still be at work here: that one is cut off, which detaches it,
// and has ended when this returns. Two at once could start a container anew
// that the other has just committed and removed.
func (e *Executor) claim(ctx context.Context, attemptID string) (context.Context, func(), error) {
	for {
		e.mu.Lock()

		other := e.claims[attemptID]
		if other == nil {
			ctx, cut := context.WithCancelCause(ctx)
			mine := &claim{cut: cut, over: make(chan struct{})}
			e.claims[attemptID] = mine
			e.mu.Unlock()

			return ctx, func() { e.yield(attemptID, mine) }, nil
		}

		e.mu.Unlock()
		other.cut(errReplaced)

		select {
		case <-other.over:
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("%w (%w)", ErrDetached, context.Cause(ctx))
		}
	}
}

func (e *Executor) yield(attemptID string, mine *claim) {
	e.mu.Lock()
	delete(e.claims, attemptID)
	e.mu.Unlock()

	mine.cut(nil)
	close(mine.over)
}

// Busy reports whether a Run of the attempt is going on in this process.
func (e *Executor) Busy(attemptID string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()

	return e.claims[attemptID] != nil
}

// Untidy reports whether files were left since it was last asked.
func (e *Executor) Untidy() bool { return e.untidy.Swap(false) }

// Leftovers are the attempts of which there is more on disk than their output.
func (e *Executor) Leftovers() ([]string, error) {
	left, err := e.withSecrets()
	if err != nil {
		return nil, err
	}

	entries, err := os.ReadDir(e.attemptsDir())
	if errors.Is(err, fs.ErrNotExist) {
		return left, nil
	}

	if err != nil {
		return left, fmt.Errorf("listing attempts on disk: %w", err)
	}

	for _, entry := range entries {
		dir := filepath.Join(e.attemptsDir(), entry.Name())

		for _, name := range slices.Concat(ours, []string{workName, workManifest}) {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				left = append(left, entry.Name())

				break
			}
		}
	}

	slices.Sort(left)

	return slices.Compact(left), nil
}

// Clean removes what an attempt that is over left on disk, but its output. One
// that a Run of this process is at is left to it.
func (e *Executor) Clean(attemptID string) error {
	e.mu.Lock()

	if e.claims[attemptID] != nil {
		e.mu.Unlock()

		return nil
	}

	mine := &claim{cut: func(error) {}, over: make(chan struct{})}
	e.claims[attemptID] = mine
	e.mu.Unlock()

	defer e.yield(attemptID, mine)

	e.ooms.Delete(attemptID)

	return e.dirs(berth.Assignee{Attempt: berth.Attempt{ID: attemptID}}).clean()
}
