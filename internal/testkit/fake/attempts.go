package fake

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/berthml/berth"
)

// abandon fences an attempt.
func (l *Ledger) abandon(a *berth.Attempt, kind berth.FailureKind, message string) {
	l.tokens++
	now := l.now()
	a.State, a.Token, a.Kind, a.Message, a.FinishedAt = berth.AttemptAbandoned, l.tokens, kind, message, &now
}

// Assignee returns everything a host needs to run an attempt. Errors: not_found.
func (l *Ledger) Assignee(ctx context.Context, attemptID string) (berth.Assignee, error) {
	return l.hooked().Assignee.call(ctx, attemptID, answer(l, "Assignee", attemptID, func() (who berth.Assignee, err error) {
		a := l.attempts[attemptID]
		if a == nil {
			return who, berth.Errorf(berth.KindNotFound, "no such row")
		}

		trial := l.trials[a.TrialID]
		who = berth.Assignee{
			Attempt: *a, LeaseID: l.leases[attemptID].ID, SweepID: trial.SweepID, Spec: trial.Spec, ImageDigest: trial.ImageDigest,
			Trial: trial.Trial, StageKey: trial.StageKey, Inputs: trial.Inputs,
		}

		for _, p := range l.logs[attemptID] {
			if p.Stream != "berth" {
				who.LogOffset = max(who.LogOffset, p.Offset+int64(len(p.Data)))
			}
		}

		for _, other := range l.attempts {
			if other.TrialID == a.TrialID && other.Number < a.Number && other.HostID == a.HostID {
				who.Earlier = append(who.Earlier, other.ID)
			}
		}

		return who, nil
	}))
}

// DropStageOutput forgets the output of a stage.
func (l *Ledger) DropStageOutput(ctx context.Context, attemptID string) error {
	return l.do(ctx, "DropStageOutput", attemptID, func() error {
		l.dropped = append(l.dropped, attemptID)

		return nil
	})
}

// HeldOutputs returns the attempts that NeedOutputs named.
func (l *Ledger) HeldOutputs(ctx context.Context, attemptIDs []string) (held []string, err error) {
	err = l.do(ctx, "HeldOutputs", "", func() error {
		for _, id := range attemptIDs {
			if slices.Contains(l.needed, id) {
				held = append(held, id)
			}
		}

		return nil
	})

	return held, err
}

// NeedOutputs has unfinished trials need what these attempts wrote.
func (l *Ledger) NeedOutputs(attemptIDs ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.needed = attemptIDs
}

// StoreFiles has the store hold files of an attempt, by path.
func (l *Ledger) StoreFiles(attemptID string, files ...berth.Artifact) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.files == nil {
		l.files = make(map[string][]berth.Artifact)
	}

	l.files[attemptID] = files
}

// ListFiles reads stored files of an attempt by path, after the given one.
func (l *Ledger) ListFiles(ctx context.Context, attemptID, after string, limit int) (files []berth.Artifact, err error) {
	err = l.do(ctx, "ListFiles", attemptID, func() error {
		for _, file := range l.files[attemptID] {
			if file.Path > after && len(files) < limit {
				files = append(files, file)
			}
		}

		return nil
	})

	return files, err
}

// Dropped are the attempts whose outputs were forgotten.
func (l *Ledger) Dropped() []string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return slices.Clone(l.dropped)
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
	return l.hooked().AttemptRunning.do(ctx, attemptID, l.step("AttemptRunning", attemptID, func() error {
		a, err := l.current(attemptID, token)
		if err != nil {
			return err
		}

		a.State, a.ContainerID, a.Message = berth.AttemptRunning, containerID, ""
		if a.StartedAt == nil {
			a.StartedAt = &startedAt
		}

		return nil
	}))
}

// MeasureRunning notes a running attempt's memory on its GPU. This ledger's lease holds as
// much from then on. Errors: fenced.
func (l *Ledger) MeasureRunning(ctx context.Context, attemptID string, token int64, u berth.Usage, most int64) (bytes int64, err error) {
	err = l.do(ctx, "MeasureRunning", attemptID, func() error {
		_, err := l.current(attemptID, token)
		if err == nil {
			bytes = min(u.DevicePeakBytes, most)
			l.held[attemptID] = append(l.held[attemptID], bytes)
		}

		return err
	})

	return bytes, err
}

// Held returns the values that MeasureRunning got for an attempt, in order.
func (l *Ledger) Held(attemptID string) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()

	return slices.Clone(l.held[attemptID])
}

// NoteWait stores why an attempt has no container yet; empty = it no longer waits.
// Errors: fenced.
func (l *Ledger) NoteWait(ctx context.Context, attemptID string, token int64, text string) error {
	return l.hooked().NoteWait.do(ctx, attemptID, l.step("NoteWait", attemptID, func() error {
		a, err := l.current(attemptID, token)
		if err == nil && a.State == berth.AttemptPlaced {
			a.Message = text
		}

		return err
	}))
}

// EarlierCheckpoints returns the checkpoints of the attempts before one, newest
// first. This ledger has no store.
func (l *Ledger) EarlierCheckpoints(ctx context.Context, attemptID string) ([]berth.EarlierCheckpoint, error) {
	return l.hooked().Checkpoints.call(ctx, attemptID, answer(l, "EarlierCheckpoints", attemptID, func() (list []berth.EarlierCheckpoint, err error) {
		for id, e := range l.attempts {
			if a := l.attempts[attemptID]; a != nil && e.TrialID == a.TrialID && e.Number < a.Number {
				list = append(list, berth.EarlierCheckpoint{
					AttemptID: id, Number: e.Number, HostID: e.HostID, Host: l.hosts[e.HostID].Name, Ran: e.ContainerID != "", GivenUp: e.State == berth.AttemptAbandoned, Left: l.results[id].Checkpoint,
				})
			}
		}

		slices.SortFunc(list, func(a, b berth.EarlierCheckpoint) int { return b.Number - a.Number })

		return list, nil
	}))
}

// NoteResumed stores from which checkpoint an attempt goes on. Errors: fenced.
func (l *Ledger) NoteResumed(ctx context.Context, attemptID string, token int64, text string) error {
	return l.do(ctx, "NoteResumed", attemptID, func() error {
		a, err := l.current(attemptID, token)
		if err == nil {
			a.Resumed = text
		}

		return err
	})
}

// FinishAttempt commits a result and frees the lease. Repeating it with the
// same token is harmless, and changes nothing. Errors: fenced.
func (l *Ledger) FinishAttempt(ctx context.Context, r berth.Result) error {
	return l.hooked().FinishAttempt.do(ctx, r, l.step("FinishAttempt", r.AttemptID, func() error {
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
		a.ContainerID = cmp.Or(a.ContainerID, r.ContainerID)
		a.FinishedAt = &o.FinishedAt

		if a.StartedAt == nil && !o.StartedAt.IsZero() {
			a.StartedAt = &o.StartedAt
		}

		l.results[r.AttemptID] = r

		return l.release(r.AttemptID, r.Proof)
	}))
}

// fenceEarlier fences attempts of a trial that its workflow is past, and
// withdraws requests for them.
func (l *Ledger) fenceEarlier(r berth.PlacementRequest) {
	for _, earlier := range l.requests {
		if earlier.TrialID == r.TrialID && earlier.Number < r.Number && earlier.state == berth.RequestWaiting {
			earlier.state = berth.RequestWithdrawn
		}
	}

	for _, a := range l.attempts {
		if a.TrialID == r.TrialID && a.Number < r.Number && !over(a) {
			l.refused[a.ID] = true
			l.abandon(a, berth.FailureInfra, "its trial went on without it")
		}
	}
}

// RefuseAttempt is AbandonAttempt for an attempt that does not go back to its
// host.
func (l *Ledger) RefuseAttempt(ctx context.Context, attemptID, message string) error {
	return l.giveUp(ctx, attemptID, message, true)
}

// AbandonAttempt fences an attempt that is not over: its lease stays booked.
func (l *Ledger) AbandonAttempt(ctx context.Context, attemptID, message string) error {
	return l.giveUp(ctx, attemptID, message, false)
}

func (l *Ledger) giveUp(ctx context.Context, attemptID, message string, refused bool) error {
	return l.do(ctx, "AbandonAttempt", attemptID, func() error {
		if a := l.attempts[attemptID]; a != nil && !over(a) {
			l.refused[attemptID] = refused
			l.abandon(a, berth.FailureInfra, message)
		}

		return nil
	})
}

// GetAttempt returns an attempt. Errors: not_found.
func (l *Ledger) GetAttempt(ctx context.Context, id string) (attempt berth.Attempt, err error) {
	err = l.do(ctx, "GetAttempt", id, func() error {
		a := l.attempts[id]
		if a == nil {
			return berth.Errorf(berth.KindNotFound, "no such row")
		}

		attempt = *a

		return nil
	})

	return attempt, err
}
