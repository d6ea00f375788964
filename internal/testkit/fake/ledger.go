package fake

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// Ledger is the database for hosts, the placer and a trial's workflow:
// requests, attempts, leases, bookings of hosts, results, metrics and logs. It
// is safe for concurrent use; every call is one transaction.
type Ledger struct {
	Faults  Faults // set before the first call
	changed func()

	mu       sync.Mutex
	hooks    LedgerHooks
	later    time.Duration // added to the clock
	tokens   int64
	hosts    map[string]*berth.Host
	targets  map[string]berth.Host // the workers' last reports
	trials   map[string]Trial
	requests map[string]*request
	attempts map[string]*berth.Attempt
	leases   map[string]*lease // by attempt
	refused  map[string]bool   // attempts that do not go back to their host
	results  map[string]berth.Result
	metrics  map[string]map[metricKey]berth.MetricPoint // by attempt
	rungs    map[rungKey]berth.Rung
	logs     map[string]map[int64]berth.LogPiece // by attempt and offset
	memory   map[string][]berth.MemoryPoint      // by attempt
	held     map[string][]int64                  // the values that MeasureRunning got, by attempt
	dropped  []string                            // attempts whose outputs were forgotten
	needed   []string                            // attempts whose outputs are needed
	files    map[string][]berth.Artifact         // in the store, by attempt
}

// Trial is a trial's row before it runs.
type Trial struct {
	berth.Trial

	Spec        berth.Spec
	ImageDigest string
	StageKey    string // of the stage that its attempts run; empty = its own command
	Inputs      []berth.StageInput
}

type request struct {
	berth.PlacementRequest

	state   berth.RequestState
	revives string // the abandoned attempt that is the answer; empty = a new one
}

type lease struct {
	berth.Lease

	number  int64 // oldest first
	created time.Time
	proof   string
}

type rungKey struct {
	trial string
	rung  int64
}

type metricKey struct {
	name string
	step int64
}

// NewLedger returns an empty ledger. It calls changed after every change; nil =
// it does not.
func NewLedger(changed func()) *Ledger {
	if changed == nil {
		changed = func() {}
	}

	return &Ledger{
		changed: changed, hosts: map[string]*berth.Host{}, targets: map[string]berth.Host{}, trials: map[string]Trial{}, requests: map[string]*request{},
		attempts: map[string]*berth.Attempt{}, leases: map[string]*lease{}, refused: map[string]bool{}, results: map[string]berth.Result{},
		metrics: map[string]map[metricKey]berth.MetricPoint{}, rungs: map[rungKey]berth.Rung{}, logs: map[string]map[int64]berth.LogPiece{}, memory: map[string][]berth.MemoryPoint{}, held: map[string][]int64{},
	}
}

// do is one transaction of a method about a subject: a failing one must have
// changed nothing.
func (l *Ledger) do(ctx context.Context, method, subject string, work func() error) error {
	return l.Faults.call(ctx, method, subject, func() error {
		l.mu.Lock()

		err := ctx.Err()
		if err != nil { // as every error that is not the database's own answer
			err = berth.Errorf(berth.KindUnavailable, "%s %s: %w", method, subject, context.Cause(ctx))
		} else if err = work(); err != nil {
			err = fmt.Errorf("%s %s: %w", method, subject, err)
		}

		l.mu.Unlock()
		l.changed()

		return err
	}, nil)
}

// step is do, as the call that a hook stands around.
func (l *Ledger) step(method, subject string, work func() error) func(context.Context) error {
	return func(ctx context.Context) error { return l.do(ctx, method, subject, work) }
}

// answer is step for a call with a result.
func answer[O any](l *Ledger, method, subject string, work func() (O, error)) func(context.Context) (O, error) {
	return func(ctx context.Context) (result O, err error) {
		err = l.do(ctx, method, subject, func() error {
			result, err = work()

			return err
		})

		return result, err
	}
}

func (l *Ledger) now() time.Time { return time.Now().Add(l.later).UTC() }

// Pass lets time pass for leases.
func (l *Ledger) Pass(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.later += d
}

// AddTrial makes a trial.
func (l *Ledger) AddTrial(t Trial) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.trials[t.ID] = t
}

// EndTrial ends a trial: it withdraws its waiting request and fences its live
// attempt.
func (l *Ledger) EndTrial(id string) {
	l.mu.Lock()

	trial, now := l.trials[id], l.now()
	trial.FinishedAt = &now
	l.trials[id] = trial

	for _, r := range l.requests {
		if r.TrialID == id && r.state == berth.RequestWaiting {
			r.state = berth.RequestWithdrawn
		}
	}

	for _, a := range l.attempts {
		if a.TrialID == id && !over(a) {
			l.abandon(a, berth.FailureCanceled, "its trial ended without it")
		}
	}

	l.mu.Unlock()
	l.changed()
}
