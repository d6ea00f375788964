// Package simulate stands in for a machine's Docker: attempts take their places
// in the real ledger, last for the configured time and succeed, but nothing
// runs. The remaining cost is Berth's own, which `make bench/throughput`
// measures.
//
// It is not internal/testkit/fake's Docker, although both start nothing: this one is in
// the program that users run, where test support must not be, and takes an
// executor's place, so that no container has a log, files or a meter.
package simulate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// Records is the database's record of attempts.
type Records interface {
	Assignee(ctx context.Context, attemptID string) (berth.Assignee, error)
	AttemptRunning(ctx context.Context, attemptID string, token int64, containerID string, startedAt time.Time) error
	FinishAttempt(ctx context.Context, r berth.Result) error
}

// Machine simulates. It is safe for concurrent use.
type Machine struct {
	records Records
	lasts   time.Duration // of every attempt

	mu      sync.Mutex
	running map[string]berth.Container // by attempt
}

// New returns a machine on which every attempt lasts for lasts.
func New(records Records, lasts time.Duration) *Machine {
	return &Machine{records: records, lasts: lasts, running: make(map[string]berth.Container)}
}

// peakBytes is the reported peak of an attempt.
const peakBytes = 16 << 20

// Run takes an attempt to its committed outcome, whose value is the trial's
// number. An order to stop, before or by the cause of ctx's end, gives the place back.
func (m *Machine) Run(ctx context.Context, order berth.Order) (berth.Outcome, error) {
	who, err := m.records.Assignee(ctx, order.AttemptID)
	if err != nil {
		return berth.Outcome{}, err
	}

	started := time.Now()
	value := float64(who.Trial.Number)
	end := berth.Outcome{
		Kind: berth.FailureOK, Message: "simulated", Value: &value, StartedAt: started,
		Usage: berth.Usage{MemoryPeakBytes: peakBytes, Wall: berth.Duration(m.lasts), Samples: 1},
	}

	stop := order.Stop
	if !stop {
		if err := m.records.AttemptRunning(ctx, order.AttemptID, order.Token, order.AttemptID, started); err != nil {
			return berth.Outcome{}, err
		}

		if err := m.last(ctx, who); err != nil {
			if !errors.Is(err, berth.ErrStop) {
				return berth.Outcome{}, err
			}

			stop = true
		}
	}

	if stop {
		end.Kind, end.Message, end.Value = berth.FailureCanceled, "canceled", nil
	}

	end.FinishedAt = time.Now()

	return end, m.records.FinishAttempt(context.WithoutCancel(ctx), berth.Result{
		AttemptID: order.AttemptID, TrialID: who.Trial.ID, SweepID: who.SweepID, ShapeKey: who.Attempt.ShapeKey, Token: order.Token,
		Reserved: who.Attempt.Demand, Outcome: end, Source: berth.FootprintFull, Proof: "simulated", StageKey: who.StageKey, Stage: who.Attempt.Stage,
	})
}

// last waits as long as an attempt lasts.
func (m *Machine) last(ctx context.Context, who berth.Assignee) error {
	m.mu.Lock()
	m.running[who.Attempt.ID] = berth.Container{
		ID: who.Attempt.ID, Name: who.Attempt.ID, AttemptID: who.Attempt.ID,
		Token: who.Attempt.Token, State: berth.ContainerRunning, CreatedAt: time.Now(),
	}
	m.mu.Unlock()

	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()

		delete(m.running, who.Attempt.ID)
	}()

	timer := time.NewTimer(m.lasts)
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// List returns the running containers, as Docker would.
func (m *Machine) List(context.Context) ([]berth.Container, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	list := make([]berth.Container, 0, len(m.running))
	for _, c := range m.running {
		list = append(list, c)
	}

	slices.SortFunc(list, func(a, b berth.Container) int { return a.CreatedAt.Compare(b.CreatedAt) })

	return list, nil
}

// Busy reports whether an attempt is running.
func (m *Machine) Busy(attemptID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	_, running := m.running[attemptID]

	return running
}

// Untidy is false: attempts have no files.
func (m *Machine) Untidy() bool { return false }

// Leftovers are none.
func (m *Machine) Leftovers() ([]string, error) { return nil, nil }

// Clean does nothing.
func (m *Machine) Clean(string) error { return nil }

// Stop does nothing: a simulated container ends by itself.
func (m *Machine) Stop(context.Context, string, time.Duration) error { return nil }

// Remove does nothing.
func (m *Machine) Remove(context.Context, string) error { return nil }

// ResolveImage finds every image.
func (m *Machine) ResolveImage(_ context.Context, ref string) (berth.Image, error) {
	sum := sha256.Sum256([]byte(ref))
	id := "sha256:" + hex.EncodeToString(sum[:])

	return berth.Image{ID: id, Digest: id}, nil
}

// AskRegistry is ResolveImage: nothing needs to be pulled.
func (m *Machine) AskRegistry(ctx context.Context, ref string) (berth.Image, error) {
	return m.ResolveImage(ctx, ref)
}
