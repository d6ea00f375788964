//go:build integration && compose

package e2e

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"testing"
)

// undo registers the removal of something that outlives this process, such as
// containers that Docker restarts: at the test's end, and when a person
// interrupts the test, which runs no cleanup.
func undo(t testing.TB, do func()) {
	t.Helper()

	once := sync.OnceFunc(do)

	undone.mu.Lock()
	undone.all = append(undone.all, once)
	undone.mu.Unlock()

	t.Cleanup(once)
	undoWhenInterrupted()
}

var undone struct {
	mu  sync.Mutex
	all []func()
}

var undoWhenInterrupted = sync.OnceFunc(func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)

	go func() {
		<-signals
		undone.mu.Lock()

		for _, do := range slices.Backward(undone.all) {
			do()
		}

		os.Exit(1)
	}()
})
