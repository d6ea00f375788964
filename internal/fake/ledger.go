package fake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// Ledger is the database as hosts, the placer and a trial's workflow use it:
// requests, attempts, leases, what hosts have reserved, results, metrics and
// logs. It is safe for concurrent use; every call is one transaction.
type Ledger struct {
	changed func()

	mu       sync.Mutex
	later    time.Duration // added to the clock
	tokens   int64
	hosts    map[string]*berth.Host
	targets  map[string]berth.Host // what workers said of them last
	trials   map[string]Trial
	requests map[string]*request
	attempts map[string]*berth.Attempt
	leases   map[string]*lease // by attempt
	refused  map[string]bool   // attempts that do not go back to their host
	results  map[string]berth.Result
	metrics  map[string]map[metricKey]berth.MetricPoint // by attempt
	logs     map[string]map[int64]berth.LogPiece        // by attempt and offset
}

// Trial is what the database knows of a trial before it runs.
type Trial struct {
	berth.Trial

	Spec        berth.Spec
	ImageDigest string
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

type metricKey struct {
	name string
	step int64
}

// NewLedger returns an empty ledger. changed is called after every change; nil
// = nobody looks.
func NewLedger(changed func()) *Ledger {
	if changed == nil {
		changed = func() {}
	}

	return &Ledger{
		changed: changed, hosts: map[string]*berth.Host{}, targets: map[string]berth.Host{}, trials: map[string]Trial{}, requests: map[string]*request{},
		attempts: map[string]*berth.Attempt{}, leases: map[string]*lease{}, refused: map[string]bool{}, results: map[string]berth.Result{},
		metrics: map[string]map[metricKey]berth.MetricPoint{}, logs: map[string]map[int64]berth.LogPiece{},
	}
}

// do is one transaction: what fails must have changed nothing.
func (l *Ledger) do(ctx context.Context, doing string, work func() error) error {
	l.mu.Lock()

	err := ctx.Err()
	if err != nil { // as every error that is not the database's own answer
		err = berth.Errorf(berth.KindUnavailable, "%s: %w", doing, context.Cause(ctx))
	} else if err = work(); err != nil {
		err = fmt.Errorf("%s: %w", doing, err)
	}

	l.mu.Unlock()
	l.changed()

	return err
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

// EndTrial ends a trial: what of it waits is withdrawn, what lives is fenced.
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

// abandon fences an attempt.
func (l *Ledger) abandon(a *berth.Attempt, kind berth.FailureKind, message string) {
	l.tokens++
	now := l.now()
	a.State, a.Token, a.Kind, a.Message, a.FinishedAt = berth.AttemptAbandoned, l.tokens, kind, message, &now
}

// RequestPlacement asks for a place and returns what became of the request.
func (l *Ledger) RequestPlacement(ctx context.Context, r berth.PlacementRequest) (berth.PlacementStatus, error) {
	if r.Demand.DeviceBytes > 0 {
		r.Demand.Contexts = max(r.Demand.Contexts, 1)
	}

	err := l.do(ctx, "requesting a place for attempt "+r.AttemptID, func() error {
		if _, known := l.trials[r.TrialID]; !known || r.Demand.MemoryBytes <= 0 || r.Demand.CPUMilli <= 0 {
			return berth.Errorf(berth.KindInternal, "a constraint is violated")
		}

		if l.requests[r.AttemptID] == nil {
			l.requests[r.AttemptID] = &request{PlacementRequest: r, state: berth.RequestWaiting}
			l.fenceEarlier(r)
			l.revive(func(a *berth.Attempt) bool {
				return a.TrialID == r.TrialID && l.hosts[a.HostID].Problem == ""
			})
		}

		return nil
	})
	if err != nil {
		return berth.PlacementStatus{}, err
	}

	return l.PlacementStatus(ctx, r.AttemptID)
}

// PlacementStatus returns what became of a request. Errors: not_found.
func (l *Ledger) PlacementStatus(ctx context.Context, attemptID string) (status berth.PlacementStatus, err error) {
	err = l.do(ctx, "reading placement of attempt "+attemptID, func() error {
		r := l.requests[attemptID]
		if r == nil {
			return berth.Errorf(berth.KindNotFound, "no such row")
		}

		status = berth.PlacementStatus{AttemptID: cmp.Or(r.revives, attemptID), State: r.state}
		if a := l.attempts[status.AttemptID]; a != nil {
			status.Short = l.requests[status.AttemptID].Short
			status.HostID, status.DeviceID, status.Token, status.Demand = a.HostID, a.DeviceID, a.Token, a.Demand
			status.HostName = l.hosts[a.HostID].Name
		}

		return nil
	})

	return status, err
}

// Place turns waiting requests into attempts with leases and books their hosts,
// all or nothing. Errors: exhausted when a host would hold more than it has;
// conflict when a trial has a live attempt already.
func (l *Ledger) Place(ctx context.Context, decisions map[string]berth.Placement) (placed []string, err error) {
	err = l.do(ctx, "placing attempts", func() error {
		booked := map[string]berth.Host{}
		live := map[string]bool{}

		for _, a := range l.attempts {
			if !over(a) {
				live[a.TrialID+"/"+a.Stage] = true
			}
		}

		for _, id := range slices.Sorted(maps.Keys(decisions)) {
			r := l.requests[id]
			if r == nil || r.state != berth.RequestWaiting {
				continue
			}

			host, there := booked[decisions[id].HostID]
			if known := l.hosts[decisions[id].HostID]; !there && known != nil {
				host, there = *known, true
			}

			if !there {
				return berth.Errorf(berth.KindInternal, "no host %s", decisions[id].HostID)
			}

			host.MemoryReservedBytes += r.Demand.MemoryBytes
			host.CPUMilliReserved += r.Demand.CPUMilli
			host.Attempts++

			if !holds(host) {
				return berth.Errorf(berth.KindExhausted, "the database refused to book more than there is")
			}

			if live[r.TrialID+"/"+r.Stage] {
				return berth.Errorf(berth.KindConflict, "trial %s has a live attempt", r.TrialID)
			}

			live[r.TrialID+"/"+r.Stage] = true
			booked[host.ID] = host
			placed = append(placed, id)
		}

		for _, id := range placed {
			l.book(l.requests[id], decisions[id])
		}

		for id, host := range booked {
			*l.hosts[id] = host
		}

		return nil
	})
	if err != nil {
		placed = nil
	}

	return placed, err
}

// holds is the CHECK of the hosts.
func holds(h berth.Host) bool {
	return 0 <= h.MemoryReservedBytes && h.MemoryReservedBytes <= h.MemoryBytes-h.MemoryHeadroomBytes &&
		0 <= h.CPUMilliReserved && h.CPUMilliReserved <= h.CPUMilli &&
		0 <= h.Attempts && (h.MaxAttempts == 0 || h.Attempts <= h.MaxAttempts)
}

func (l *Ledger) book(r *request, p berth.Placement) {
	l.tokens++
	r.state = berth.RequestPlaced
	l.attempts[r.AttemptID] = &berth.Attempt{
		ID: r.AttemptID, TrialID: r.TrialID, Number: r.Number, Stage: r.Stage, Purpose: r.Purpose, State: berth.AttemptPlaced,
		HostID: p.HostID, DeviceID: p.DeviceID, Token: l.tokens, Demand: r.Demand, PlacedAt: l.now(),
	}
	l.leases[r.AttemptID] = &lease{number: l.tokens, created: l.now(), Lease: berth.Lease{
		ID: "lease-of-" + r.AttemptID, AttemptID: r.AttemptID, HostID: p.HostID, DeviceID: p.DeviceID, Demand: r.Demand, Token: l.tokens,
		State: berth.LeaseHeld, ExpiresAt: l.now().Add(berth.LeaseTerm),
	}}
}

func over(a *berth.Attempt) bool {
	return a.State == berth.AttemptFinished || a.State == berth.AttemptAbandoned
}

// Assignee returns everything a host needs to run an attempt. Errors: not_found.
func (l *Ledger) Assignee(ctx context.Context, attemptID string) (who berth.Assignee, err error) {
	err = l.do(ctx, "reading attempt "+attemptID, func() error {
		a := l.attempts[attemptID]
		if a == nil {
			return berth.Errorf(berth.KindNotFound, "no such row")
		}

		trial := l.trials[a.TrialID]
		who = berth.Assignee{
			Attempt: *a, LeaseID: l.leases[attemptID].ID, SweepID: trial.SweepID, Spec: trial.Spec, ImageDigest: trial.ImageDigest,
			Trial: trial.Trial,
		}

		for _, p := range l.logs[attemptID] {
			if p.Stream != "berth" {
				who.LogOffset = max(who.LogOffset, p.Offset+int64(len(p.Data)))
			}
		}

		who.Resume = l.resumes(a)

		for _, other := range l.attempts {
			if other.TrialID == a.TrialID && other.Number < a.Number && other.HostID == a.HostID {
				who.Earlier = append(who.Earlier, other.ID)
			}
		}

		return nil
	})

	return who, err
}

// resumes reports whether an earlier attempt that counts had the same host. An
// attempt that ended well and was followed by another one was a short probe,
// and so were those before it.
func (l *Ledger) resumes(a *berth.Attempt) bool {
	probes := 0

	for _, other := range l.attempts {
		if other.TrialID == a.TrialID && other.Number < a.Number && other.Kind == berth.FailureOK {
			probes = max(probes, other.Number)
		}
	}

	for _, other := range l.attempts {
		if other.TrialID == a.TrialID && other.HostID == a.HostID && other.Number < a.Number && other.Number > probes {
			return true
		}
	}

	return false
}

// current finds an attempt that may still be written with this token. Errors: fenced.
func (l *Ledger) current(attemptID string, token int64) (*berth.Attempt, error) {
	a := l.attempts[attemptID]
	if a == nil || a.Token != token || over(a) {
		return nil, berth.Errorf(berth.KindFenced, "attempt %s is not ours any more: token %d is not the current one", attemptID, token)
	}

	return a, nil
}

// AttemptRunning records the container of an attempt. Errors: fenced.
func (l *Ledger) AttemptRunning(ctx context.Context, attemptID string, token int64, containerID string, startedAt time.Time) error {
	return l.do(ctx, "writing attempt "+attemptID, func() error {
		a, err := l.current(attemptID, token)
		if err != nil {
			return err
		}

		a.State, a.ContainerID = berth.AttemptRunning, containerID
		if a.StartedAt == nil {
			a.StartedAt = &startedAt
		}

		return nil
	})
}

// FinishAttempt commits a result and frees the lease. Repeating it with the
// same token is harmless, and changes nothing. Errors: fenced.
func (l *Ledger) FinishAttempt(ctx context.Context, r berth.Result) error {
	return l.do(ctx, "finishing attempt "+r.AttemptID, func() error {
		if a := l.attempts[r.AttemptID]; a != nil && a.State == berth.AttemptFinished && a.Token == r.Token {
			return nil
		}

		a, err := l.current(r.AttemptID, r.Token)
		if err != nil {
			return err
		}

		if r.Proof == "" {
			return errNoProof
		}

		o := r.Outcome
		a.State, a.Kind, a.Message, a.ExitCode, a.Value, a.Usage = berth.AttemptFinished, o.Kind, o.Message, o.ExitCode, o.Value, o.Usage
		a.Usage.CPUContended = false // not a column
		a.FinishedAt = &o.FinishedAt

		if a.StartedAt == nil && !o.StartedAt.IsZero() {
			a.StartedAt = &o.StartedAt
		}

		l.results[r.AttemptID] = r

		return l.release(r.AttemptID, r.Proof)
	})
}

// fenceEarlier fences attempts of a trial that its workflow is past.
func (l *Ledger) fenceEarlier(r berth.PlacementRequest) {
	for _, a := range l.attempts {
		if a.TrialID == r.TrialID && a.Stage == r.Stage && a.Number < r.Number && !over(a) {
			l.refused[a.ID] = true
			l.abandon(a, berth.FailureInfra, "its trial went on without it")
		}
	}
}

// RefuseAttempt is AbandonAttempt for one that does not go back to its host.
func (l *Ledger) RefuseAttempt(ctx context.Context, attemptID, message string) error {
	return l.do(ctx, "refusing attempt "+attemptID, func() error {
		if a := l.attempts[attemptID]; a != nil && !over(a) {
			l.refused[attemptID] = true
			l.abandon(a, berth.FailureInfra, message)
		}

		return nil
	})
}

// AbandonAttempt fences an attempt that is not over: its lease stays booked.
func (l *Ledger) AbandonAttempt(ctx context.Context, attemptID, message string) error {
	return l.do(ctx, "abandoning attempt "+attemptID, func() error {
		if a := l.attempts[attemptID]; a != nil && !over(a) {
			l.abandon(a, berth.FailureInfra, message)
		}

		return nil
	})
}

// GetAttempt returns an attempt. Errors: not_found.
func (l *Ledger) GetAttempt(ctx context.Context, id string) (attempt berth.Attempt, err error) {
	err = l.do(ctx, "reading attempt "+id, func() error {
		a := l.attempts[id]
		if a == nil {
			return berth.Errorf(berth.KindNotFound, "no such row")
		}

		attempt = *a

		return nil
	})

	return attempt, err
}

// PutMetrics stores points; one with the same name and step is replaced.
func (l *Ledger) PutMetrics(ctx context.Context, attemptID string, token int64, points []berth.MetricPoint) error {
	if len(points) == 0 {
		return nil
	}

	return l.do(ctx, "storing metrics of attempt "+attemptID, func() error {
		if a := l.attempts[attemptID]; a == nil || a.Token != token {
			return berth.Errorf(berth.KindFenced, "attempt %s is not ours any more: token %d is not the current one", attemptID, token)
		}

		if l.metrics[attemptID] == nil {
			l.metrics[attemptID] = make(map[metricKey]berth.MetricPoint)
		}

		for _, p := range points {
			l.metrics[attemptID][metricKey{p.Name, p.Step}] = p
		}

		return nil
	})
}

// ListMetrics returns points by name and step. An empty name means all.
func (l *Ledger) ListMetrics(ctx context.Context, attemptID, name string, limit int) (points []berth.MetricPoint, err error) {
	err = l.do(ctx, "listing metrics of attempt "+attemptID, func() error {
		for _, p := range l.metrics[attemptID] {
			if name == "" || p.Name == name {
				points = append(points, p)
			}
		}

		return nil
	})

	slices.SortFunc(points, func(a, b berth.MetricPoint) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Step, b.Step))
	})

	return points[:min(limit, len(points))], err
}

// PutLog stores a piece. Of two at one offset the longer stays: a run that took
// over cuts the same log elsewhere.
func (l *Ledger) PutLog(ctx context.Context, attemptID string, token int64, piece berth.LogPiece) error {
	return l.do(ctx, "storing log of attempt "+attemptID, func() error {
		if a := l.attempts[attemptID]; a == nil || a.Token != token {
			return berth.Errorf(berth.KindFenced, "attempt %s is not ours any more: token %d is not the current one", attemptID, token)
		}

		if l.logs[attemptID] == nil {
			l.logs[attemptID] = make(map[int64]berth.LogPiece)
		}

		if first, there := l.logs[attemptID][piece.Offset]; !there || first.Stream == piece.Stream && len(first.Data) < len(piece.Data) {
			piece.Data = slices.Clone(piece.Data)
			l.logs[attemptID][piece.Offset] = piece
		}

		return nil
	})
}

// ReadLog returns at most limit pieces that reach beyond the offset.
func (l *Ledger) ReadLog(ctx context.Context, attemptID string, offset int64, limit int) (pieces []berth.LogPiece, err error) {
	err = l.do(ctx, "reading log of attempt "+attemptID, func() error {
		for _, p := range l.logs[attemptID] {
			if p.Offset+int64(len(p.Data)) > offset {
				pieces = append(pieces, p)
			}
		}

		return nil
	})

	slices.SortFunc(pieces, func(a, b berth.LogPiece) int { return cmp.Compare(a.Offset, b.Offset) })

	return pieces[:min(limit, len(pieces))], err
}
