//go:build cgo && linux

package nvml

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// lane calls the library: one call after the other, in one goroutine. So a
// hanging call holds one goroutine and one thread, for any number of callers.
//
//	idle ── call ──▶ calling ── answer ──▶ idle
//	                    │ patience
//	                    ▼
//	                 overdue: callers fail at once ── answer ──▶ idle
//
// One lane serves all GPUs: the driver takes locks that its GPUs share, so a
// call that hangs on a GPU hangs most questions about the others as well.
type lane struct {
	jobs    chan *job
	closing chan struct{} // closed by stop
	done    chan struct{} // closed when the goroutine has ended
	once    sync.Once

	mu      sync.Mutex
	running *job // nil = the library is not being called
}

// job is one use of the library, which may be several calls.
type job struct {
	doing    string // for people: "reading GPU …"
	patience time.Duration
	run      func()
	began    time.Time
}

// start starts the lane. last is called in its goroutine when it ends.
func start(last func()) *lane {
	l := &lane{jobs: make(chan *job), closing: make(chan struct{}), done: make(chan struct{})}

	go l.serve(last)

	return l
}

func (l *lane) serve(last func()) {
	defer close(l.done)

	for {
		select {
		case <-l.closing:
			l.carryOut(&job{doing: "closing NVIDIA's library", run: last})

			return
		case j := <-l.jobs:
			l.carryOut(j)
		}
	}
}

func (l *lane) carryOut(j *job) {
	l.mu.Lock()
	j.began, l.running = time.Now(), j
	l.mu.Unlock()

	j.run()

	l.mu.Lock()
	l.running = nil
	l.mu.Unlock()
}

// stop ends the lane after the call that runs. It does not wait.
func (l *lane) stop() { l.once.Do(func() { close(l.closing) }) }

// overdue reports whether a call is out that took longer than its patience.
func (l *lane) overdue() bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.running != nil && time.Since(l.running.began) >= l.running.patience
}

// gaveUp is the error of a caller whose patience, or whose context, is at an end. It keeps the
// cause of the context.
func (l *lane) gaveUp(ctx context.Context, doing string) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	switch cause := context.Cause(ctx); {
	case l.running == nil && cause != nil:
		return fmt.Errorf("%s: %w", doing, cause)
	case l.running == nil:
		return berth.Errorf(berth.KindUnavailable, "%s: the NVIDIA driver answers too slowly: try again", doing)
	case cause != nil:
		return fmt.Errorf("%s: no answer of the NVIDIA driver since %s (%s): %w", doing, l.running.began.Format(time.RFC3339), l.running.doing, cause)
	default:
		return berth.Errorf(berth.KindUnavailable, "%s: the NVIDIA driver does not answer since %s (%s): look for XID lines in `dmesg`; if `nvidia-smi` hangs too, reboot the machine",
			doing, l.running.began.Format(time.RFC3339), l.running.doing)
	}
}

func closed(doing string) error {
	return berth.Errorf(berth.KindConflict, "%s: the reader of GPUs is closed", doing)
}

// ask runs use in the lane and returns its result. A caller that stops waiting
// leaves use behind; its answer is dropped. Errors: unavailable when the driver
// does not answer; the context's cause.
func ask[T any](ctx context.Context, l *lane, patience time.Duration, doing string, use func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}

	var none T

	select {
	case <-l.closing:
		return none, closed(doing)
	default:
	}

	if ctx.Err() != nil || l.overdue() {
		return none, l.gaveUp(ctx, doing)
	}

	answers := make(chan answer, 1) // the lane never waits for a caller
	j := &job{doing: doing, patience: patience, run: func() {
		value, err := use()
		answers <- answer{value, err}
	}}

	timer := time.NewTimer(patience)
	defer timer.Stop()

	select {
	case l.jobs <- j:
	case <-l.closing:
		return none, closed(doing)
	case <-ctx.Done():
		return none, l.gaveUp(ctx, doing)
	case <-timer.C:
		return none, l.gaveUp(ctx, doing)
	}

	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, l.gaveUp(ctx, doing)
	case <-timer.C:
		return none, l.gaveUp(ctx, doing)
	}
}
