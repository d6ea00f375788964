// Package apitest is an in-memory database and control for tests of the API and
// of its clients. It stores its input and has no rules of its own.
//
// It is not internal/fake's ledger: the API reads pages of sweeps, trials,
// events and tokens, which that ledger lacks, and its tests show any state,
// also states that no ledger reaches by itself.
package apitest

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/health"
	"github.com/berthml/berth/workflows"
)

// Start is when everything in the store was made, unless a test says otherwise.
var Start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Store is api.Store, api.Control and api.Images in memory. Change its fields
// before it serves, or under Change.
type Store struct {
	mu sync.Mutex

	Sweeps     []berth.Sweep
	Trials     []berth.Trial
	Attempts   []berth.Attempt
	Metrics    map[string][]berth.MetricPoint
	Logs       map[string][]berth.LogPiece
	Memory     map[string][]berth.MemoryPoint  // by attempt
	Machines   map[string][]berth.MachinePoint // by host, in their order
	Files      map[string][]berth.Artifact     // by attempt and path; see AddFile
	FileSets   map[string]berth.FileSet        // by attempt; pending where there is none
	Objects    map[berth.Digest]string         // contents of files
	ObjectErr  error                           // error of Read for a missing one
	Probes     []berth.ProbedShape
	Hosts      []berth.Host
	Former     []berth.Device        // that no host of these has
	Leases     []berth.HeldLease     // in their order
	Queued     []berth.QueuedRequest // in their order
	Events     []berth.Event
	Filtered   int   // how often events of some sweeps were listed
	Dropped    int64 // events up to this sequence are not kept any more
	Tokens     []berth.Token
	Recent     []berth.RecentUsage // of each shape
	Times      berth.TrialTimes    // of each sweep
	Audits     []berth.AuditEntry
	Updates    []string // such as "pause <sweep>"
	ImageErr   error
	Known      map[string]string // digests by image
	ControlErr func() error      // asked before every update and cancel; nil = none
	Secrets    []berth.Secret    // by name
	Sealed     []berth.SealedSecret
	InUse      []string        // names of secrets that sweeps mount
	SessionErr error           // error of CreateSession and DeleteSession
	Down       error           // the error of Ping, and of a look for tokens
	Unwell     health.State    // what Health answers
	Unreadable error           // what Health fails with, while all else answers
	Deaf       <-chan struct{} // events are told once it is closed; nil = at once

	ObjectsRead int // how often

	hashes   map[string]string  // of tokens, to their ids
	sessions map[string]session // by hash
	keys     map[string]keyed
	wake     chan struct{}
}

type keyed struct {
	id   string
	hash string
}

// Change changes the store while it serves.
func (s *Store) Change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()

	change()
}

// Publish appends an event with the next sequence and wakes the listeners.
func (s *Store) Publish(kind, sweepID, subject string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	last := s.Dropped
	if len(s.Events) > 0 {
		last = s.Events[len(s.Events)-1].Sequence
	}

	s.Events = append(s.Events, berth.Event{
		Sequence: last + 1, Kind: kind, SweepID: sweepID, Subject: subject, Data: json.RawMessage(text), CreatedAt: Start,
	})

	if s.wake != nil {
		close(s.wake)
		s.wake = nil
	}
}

// Ping is api.Pinger.
func (s *Store) Ping(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.Down
}

// Health is api.Healthy.
func (s *Store) Health(context.Context) (health.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.Unwell, cmp.Or(s.Down, s.Unreadable)
}

// ResolveImage is api.Images.
func (s *Store) ResolveImage(_ context.Context, ref string) (berth.Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return berth.Image{ID: "sha256:1", Digest: ref + "@sha256:" + strings.Repeat("1", 64)}, s.ImageErr
}

// RememberImage is api.KnownImages.
func (s *Store) RememberImage(_ context.Context, ref, digest string) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.Known == nil {
		s.Known = make(map[string]string)
	}

	s.Known[ref] = digest

	return nil
}

// RecallImage is api.KnownImages.
func (s *Store) RecallImage(_ context.Context, ref string) (string, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if digest, ok := s.Known[ref]; ok {
		return digest, Start, nil
	}

	return "", time.Time{}, berth.Errorf(berth.KindNotFound, "image %s was never resolved", ref)
}

// Update is api.Control.
func (s *Store) Update(_ context.Context, sweepID, update string, args ...any) (workflows.SweepView, error) {
	states := map[string]berth.SweepState{
		workflows.UpdatePause: berth.SweepPaused, workflows.UpdateResume: berth.SweepRunning, workflows.UpdateStop: berth.SweepStopping,
	}

	return workflows.SweepView{}, s.steer(sweepID, update, func(sweep *berth.Sweep) {
		if update == workflows.UpdateSetMaxParallel {
			sweep.MaxParallel, _ = args[0].(int)
		} else {
			sweep.State = states[update]
		}
	})
}

// Cancel is api.Control.
func (s *Store) Cancel(_ context.Context, sweepID string) error {
	return s.steer(sweepID, "cancel", func(sweep *berth.Sweep) { sweep.State = berth.SweepCanceling })
}

func (s *Store) steer(sweepID, what string, change func(*berth.Sweep)) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.ControlErr != nil {
		if err := s.ControlErr(); err != nil {
			return err
		}
	}

	s.Updates = append(s.Updates, what+" "+sweepID)

	for i := range s.Sweeps {
		if s.Sweeps[i].ID == sweepID {
			change(&s.Sweeps[i])
		}
	}

	return nil
}

// CreateSweep is api.Sweeps.
func (s *Store) CreateSweep(_ context.Context, n berth.NewSweep) (string, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if id, err := s.submitted(n.SubmissionKey()); id != "" || err != nil {
		return id, false, err
	}

	if s.keys == nil {
		s.keys = make(map[string]keyed)
	}

	s.keys[n.CreatedBy+" "+n.Route+" "+n.Key] = keyed{id: n.ID, hash: string(n.BodyHash)}
	s.Sweeps = append(s.Sweeps, berth.Sweep{
		ID: n.ID, Name: n.Spec.Name, Spec: n.Spec, ImageDigest: n.ImageDigest, State: berth.SweepPending,
		MaxParallel: int(n.Spec.Limits.MaxParallel), CreatedBy: n.CreatedBy, CreatedAt: Start, Counts: berth.Counts{Planned: n.Planned},
	})

	return n.ID, true, nil
}

// SubmittedSweep is api.Sweeps.
func (s *Store) SubmittedSweep(_ context.Context, k berth.SubmissionKey) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.submitted(k)
}

func (s *Store) submitted(k berth.SubmissionKey) (string, error) {
	prior, found := s.keys[k.Person+" "+k.Route+" "+k.Key]

	switch {
	case !found || k.Key == "":
		return "", nil
	case prior.hash != string(k.BodyHash):
		return "", berth.Errorf(berth.KindConflict, "Idempotency-Key %q was used for another body; use a new key for a new sweep", k.Key)
	default:
		return prior.id, nil
	}
}

// SweepRecord is api.Sweeps.
func (s *Store) SweepRecord(ctx context.Context, id string) (berth.Sweep, error) {
	sweep, err := s.GetSweep(ctx, id)
	sweep.Counts, sweep.BestTrial, sweep.BestValue = berth.Counts{Planned: sweep.Counts.Planned}, 0, nil

	return sweep, err
}

// GetSweep is api.Sweeps.
func (s *Store) GetSweep(_ context.Context, id string) (berth.Sweep, error) {
	return find(s, s.Sweeps, "sweep "+id, func(sweep berth.Sweep) bool { return sweep.ID == id })
}

// OpenSweeps is api.Sweeps.
func (s *Store) OpenSweeps(_ context.Context, person, route, key string) (open int, known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, sweep := range s.Sweeps {
		if sweep.CreatedBy == person && sweep.FinishedAt == nil {
			open++
		}
	}

	_, known = s.keys[person+" "+route+" "+key]

	return open, known && key != "", nil
}

// FindSweep is api.Sweeps.
func (s *Store) FindSweep(_ context.Context, prefix string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	found := ""

	for _, sweep := range s.Sweeps {
		if strings.HasPrefix(sweep.ID, prefix) {
			if found != "" {
				return "", berth.Errorf(berth.KindConflict, "several sweeps have an id that starts with %q; give more of it", prefix)
			}

			found = sweep.ID
		}
	}

	if found == "" {
		return "", berth.Errorf(berth.KindNotFound, "no sweep has an id that starts with %q", prefix)
	}

	return found, nil
}

// GetTrial is api.Trials.
func (s *Store) GetTrial(_ context.Context, sweepID string, number int) (berth.Trial, error) {
	return find(s, s.Trials, "trial "+strconv.Itoa(number), func(t berth.Trial) bool { return t.SweepID == sweepID && t.Number == number })
}

// ListTrials is api.Trials.
func (s *Store) ListTrials(_ context.Context, sweepID string, states []string, after, limit int) ([]berth.Trial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return take(s.Trials, limit, func(t berth.Trial) bool {
		return t.SweepID == sweepID && t.Number > after && wanted(states, string(t.State))
	}), nil
}

// GetAttempt is api.Trials.
func (s *Store) GetAttempt(_ context.Context, id string) (berth.Attempt, error) {
	return find(s, s.Attempts, "attempt "+id, func(a berth.Attempt) bool { return a.ID == id })
}

// ListAttempts is api.Trials.
func (s *Store) ListAttempts(_ context.Context, trialID string) ([]berth.Attempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return take(s.Attempts, len(s.Attempts), func(a berth.Attempt) bool { return a.TrialID == trialID }), nil
}

// ListSweepAttempts is api.Trials.
func (s *Store) ListSweepAttempts(_ context.Context, sweepID string, afterTrial, afterNumber, limit int) ([]berth.SweepAttempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	var all []berth.SweepAttempt

	for _, t := range s.Trials {
		for _, a := range s.Attempts {
			if t.SweepID == sweepID && a.TrialID == t.ID {
				all = append(all, berth.SweepAttempt{Attempt: a, TrialNumber: t.Number, ShapeKey: t.ShapeKey})
			}
		}
	}

	slices.SortFunc(all, func(a, b berth.SweepAttempt) int {
		return cmp.Or(cmp.Compare(a.TrialNumber, b.TrialNumber), cmp.Compare(a.Number, b.Number))
	})

	return take(all, limit, func(a berth.SweepAttempt) bool {
		return a.TrialNumber > afterTrial || a.TrialNumber == afterTrial && a.Number > afterNumber
	}), nil
}

// find returns a copy of the one row for which is holds.
func find[T any](s *Store, rows []T, what string, is func(T) bool) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, row := range rows {
		if is(row) {
			return row, nil
		}
	}

	var none T

	return none, berth.Errorf(berth.KindNotFound, "reading %s: no such row", what)
}

func take[T any](rows []T, limit int, is func(T) bool) []T {
	var out []T

	for _, row := range rows {
		if len(out) < limit && is(row) {
			out = append(out, row)
		}
	}

	return out
}

func wanted[T comparable](states []T, state T) bool {
	return len(states) == 0 || slices.Contains(states, state)
}

// NewID is a fixed id, so that golden files stay as they are.
func NewID(n int) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(strconv.Itoa(n))).String()
}

// DeleteSweep is api.Sweeps.
func (s *Store) DeleteSweep(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	i := slices.IndexFunc(s.Sweeps, func(sweep berth.Sweep) bool { return sweep.ID == id })

	switch {
	case i < 0:
		return berth.Errorf(berth.KindNotFound, "there is no sweep %q", id)
	case !s.Sweeps[i].State.Terminal():
		return berth.Errorf(berth.KindConflict, "the sweep is %s; stop or cancel it first", s.Sweeps[i].State)
	}

	s.Sweeps = slices.Delete(s.Sweeps, i, i+1)

	return nil
}
