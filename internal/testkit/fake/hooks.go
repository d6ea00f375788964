package fake

import (
	"context"

	"github.com/berthml/berth"
)

// Call wraps one method of a fake that answers with an O. It may fail before
// call, lose the answer after it, wait, or change the context or the answer. in
// is the method's input. nil = the method as it is.
type Call[I, O any] func(ctx context.Context, in I, call func(ctx context.Context) (O, error)) (O, error)

func (c Call[I, O]) call(ctx context.Context, in I, call func(ctx context.Context) (O, error)) (O, error) {
	if c == nil {
		return call(ctx)
	}

	return c(ctx, in, call)
}

// Command is a Call of a method that only says whether it failed.
type Command[I any] func(ctx context.Context, in I, call func(ctx context.Context) error) error

func (c Command[I]) do(ctx context.Context, in I, call func(ctx context.Context) error) error {
	if c == nil {
		return call(ctx)
	}

	return c(ctx, in, call)
}

// Faults make calls fail (internal/testkit/fault); nil = none does. A call is of a
// method about a subject, such as an attempt. They do its work, half of it where
// half is not nil, or nothing, and may lose the answer. A call of no method hands
// a chunk of a log to the caller: only a dead process does not take it.
type Faults func(ctx context.Context, method, subject string, work, half func() error) error

func (f Faults) call(ctx context.Context, method, subject string, work, half func() error) error {
	if f == nil {
		return work()
	}

	return f(ctx, method, subject, work, half)
}

// DockerHooks stand around the methods of a Docker. Strings are ids or names of
// containers.
type DockerHooks struct {
	Ensure Call[berth.Launch, berth.Container]
	List   Call[struct{}, []berth.Container]
	Wait   Call[string, berth.Container]
	Stop   Command[string]
	Remove Command[string]
	Logs   Command[string]
}

// Hook changes the wrappers of the methods from the next call on.
func (d *Docker) Hook(change func(h *DockerHooks)) {
	d.mu.Lock()
	defer d.mu.Unlock()

	change(&d.hooks)
}

func (d *Docker) hooked() DockerHooks {
	d.mu.Lock()
	defer d.mu.Unlock()

	return d.hooks
}

// Registration is the input of RegisterHost.
type Registration struct {
	Host    berth.Host
	Version string
}

// Touch is the input of TouchHost.
type Touch struct {
	Free berth.HostFree
	Seen []berth.SeenAttempt // as given; nil = none
}

// LedgerHooks stand around the methods of a Ledger that hosts use. Strings are
// ids of attempts, unless their name says hosts.
type LedgerHooks struct {
	Assignee       Call[string, berth.Assignee]
	AttemptRunning Command[string]
	NoteWait       Command[string]
	FinishAttempt  Command[berth.Result]
	PutMetrics     Command[string]
	PutLog         Command[string]
	PutMemory      Command[string]
	RegisterHost   Command[Registration]
	TouchHost      Command[Touch]
	Checkpoints    Call[string, []berth.EarlierCheckpoint]
	HostLeases     Call[string, []berth.HostLease]
	LeasesOf       Call[[]string, []berth.HostLease]
	ReleaseLease   Command[string]
}

// Hook changes the wrappers of the methods from the next call on.
func (l *Ledger) Hook(change func(h *LedgerHooks)) {
	l.mu.Lock()
	defer l.mu.Unlock()

	change(&l.hooks)
}

func (l *Ledger) hooked() LedgerHooks {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.hooks
}
