//go:build integration

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// whole is the run of all tests: what they share fails it, and ends with it.
var whole suite

// suite stands for a test where something outlives each of them. It has what
// stacks need of a test, and no more.
type suite struct {
	testing.TB

	mu     sync.Mutex
	undo   []func()
	failed atomic.Bool
}

func (*suite) Helper()                  {}
func (*suite) Context() context.Context { return context.Background() }
func (s *suite) Failed() bool           { return s.failed.Load() }

func (s *suite) Cleanup(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.undo = append(s.undo, do)
}

func (*suite) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (s *suite) Errorf(format string, args ...any) {
	s.failed.Store(true)
	s.Logf(format, args...)
}

// FailNow ends the run: without a shared stack no test of it can go on.
func (*suite) FailNow() { panic("a shared stack does not work") }

// run runs all tests and then stops what they shared, last started first.
func (s *suite) run(m *testing.M) (code int) {
	code = m.Run()

	for _, do := range slices.Backward(s.undo) {
		do()
	}

	if s.Failed() {
		code = max(code, 1)
	}

	return code
}

// share makes a stack that the first test starts that asks for it. It outlives the
// tests: each looks at its own sweeps only, and ends them.
func share(start func() *stack) func(*testing.T) *stack {
	started := sync.OnceValue(start)

	return func(t *testing.T) *stack {
		t.Helper()

		mine := *started()
		mine.t = t

		t.Cleanup(func() {
			if t.Failed() {
				mine.tell()
			}
		})

		return &mine
	}
}

// plain is the stack of most tests: a machine on which all of them fit at once,
// with a store of files, the data set "flowers", and a directory for logins.
var plain = share(func() *stack {
	s := newStack(&whole)
	flowers := filepath.Join(s.dir, "flowers")

	require.NoError(&whole, os.Mkdir(flowers, 0o755))                                                        //nolint:gosec // G301: the trial's user reads it
	require.NoError(&whole, os.WriteFile(filepath.Join(flowers, "labels.txt"), []byte("acc=0.75\n"), 0o644)) //nolint:gosec // G306: the same

	s.env = []string{"BERTH_ARTIFACTS=" + filepath.Join(s.dir, "store"), "DOCKER_CONFIG=" + filepath.Join(s.dir, "login")}
	s.flags = []string{"--cpus", "24", "--memory", "12GiB", "--dataset", "flowers=" + flowers}

	return s.begin()
})
