package artifacts_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/postgres"
)

// noting is a ledger that notes the trials whose checkpoints are begun.
type noting struct {
	*postgres.Store

	begun func(trial string)
}

func (n noting) BeginCheckpoint(ctx context.Context, id string, of berth.AttemptCheckpoint, entries []berth.CheckpointEntry) ([]berth.Digest, error) {
	n.begun(of.TrialID)

	return n.Store.BeginCheckpoint(ctx, id, of, entries)
}

// another is a further trial of the bench, whose attempt runs on its host.
func (x *trials) another(number int) *trials {
	x.t.Helper()

	y := &trials{bench: x.bench, files: &checkpoints{dir: x.files.dir}, pointer: x.pointer, trial: uuid.NewString(), second: x.second}
	_, _, err := x.db.Suggest(x.t.Context(), x.sweep, number, 1, false, func(berth.Tried) ([]berth.NewTrial, bool, error) {
		return []berth.NewTrial{{ID: y.trial, Params: berth.Assignment{}, Shape: berth.Shape{ImageDigest: "sha256:x", Command: []string{"run"}}}}, false, nil
	})
	require.NoError(x.t, err)
	y.runs(x.host)

	return y
}

// An attempt ends while the checkpoint of a running one is sent. Its turn comes before that
// of all others that run: another host waits for it.
func TestCheckpointer_AnAttemptThatEndsComesNext(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	y, z := x.another(2), x.another(3)

	var order []string

	x.pointer = x.newPointer(noting{x.db, func(trial string) {
		order = append(order, trial)
		if len(order) == 1 {
			z.fails()
		}
	}})
	x.files.running = []berth.AttemptCheckpoint{x.of, y.of, z.of}

	for _, one := range []*trials{x, y, z} {
		one.writes(map[string]string{"state": one.trial})
	}

	for began := 0; len(order) == 0; began++ {
		require.Less(t, began, 10, "the first look knows them, the next finds them due")
		x.looks()
	}

	require.Equal(t, []string{x.trial, z.trial, y.trial}, slices.Compact(order))
	require.Len(t, order, 3, "none is stored twice")
	require.False(t, z.next().Coming)
}

// sending stands for an upload of a trial's checkpoint that takes hours.
type sending struct {
	*postgres.Store

	trial   string
	once    *sync.Once
	began   chan struct{}
	release chan struct{}
	going   *atomic.Int32 // uploads of that trial
	alone   bool          // an upload that goes on beside another one fails
}

func (s sending) BeginCheckpoint(ctx context.Context, id string, of berth.AttemptCheckpoint, entries []berth.CheckpointEntry) ([]berth.Digest, error) {
	if of.TrialID == s.trial {
		s.once.Do(func() { close(s.began) })
		s.going.Add(1)

		defer s.going.Add(-1)

		select {
		case <-s.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	} else if s.alone && s.going.Load() > 0 {
		return nil, berth.Errorf(berth.KindUnavailable, "both stall")
	}

	return s.Store.BeginCheckpoint(ctx, id, of, entries)
}

// failing is a ledger that refuses the checkpoints of one trial, and is slow with the others.
type failing struct {
	*postgres.Store

	trial string
	takes time.Duration
}

func (f failing) BeginCheckpoint(ctx context.Context, id string, of berth.AttemptCheckpoint, entries []berth.CheckpointEntry) ([]berth.Digest, error) {
	if of.TrialID == f.trial {
		return nil, berth.Errorf(berth.KindUnavailable, "it fails for now")
	}

	select {
	case <-time.After(f.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	return f.Store.BeginCheckpoint(ctx, id, of, entries)
}

// The checkpoint of an ended attempt cannot be stored for now, and is tried again in a minute. On a
// slow uplink this must not cut the upload of a running attempt again and again.
func TestCheckpointer_WhatFailedLatelyCutsNoUpload(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	y := x.another(2)
	x.pointer = x.newPointer(failing{x.db, y.trial, 500 * time.Millisecond})
	x.pointer.FindsItSlow()
	x.pointer.Every = 50 * time.Millisecond
	x.files.running = []berth.AttemptCheckpoint{x.of}
	x.writes(map[string]string{"state": "of a trial that goes on"})
	y.writes(map[string]string{"state": "of one that has ended"})
	y.fails()

	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())

	go func() { ended <- x.pointer.Run(ctx) }() // joined below

	require.Eventually(t, func() bool {
		return x.sql().Int("SELECT count(*) FROM checkpoints WHERE stored_at IS NOT NULL AND trial_id = '"+x.trial+"'") == 1
	}, 30*time.Second, 100*time.Millisecond, "it is sent for half a second")

	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.True(t, y.next().Coming, "it is still to be stored")
}

// The checkpoint of a running attempt is large and the uplink slow: ten GiB at 2 MiB/s take 85
// minutes. An attempt of another sweep ends on the host during the upload. Its next one,
// elsewhere, waits an hour at most and then starts without a checkpoint: ended attempts must
// not wait for running ones.
func TestCheckpointer_ALongUploadOfOneTrialCostsNoOtherItsCheckpoint(t *testing.T) {
	t.Parallel()

	for name, slow := range map[string]bool{"on a link that both share": false, "on a slow one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			aLongUpload(t, slow)
		})
	}
}

func aLongUpload(t *testing.T, slow bool) {
	t.Helper()

	x := setupTrials(t)
	y := x.another(2)
	ledger := sending{x.db, x.trial, new(sync.Once), make(chan struct{}), make(chan struct{}), new(atomic.Int32), slow}
	x.pointer = x.newPointer(ledger)

	if slow {
		x.pointer.FindsItSlow()
	}

	x.pointer.Every = 10 * time.Millisecond
	x.files.running = []berth.AttemptCheckpoint{x.of}
	x.writes(map[string]string{"large": "of a trial that goes on"})
	y.writes(map[string]string{"state": "ten hours"})

	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- x.pointer.Run(ctx) }()

	stored := func(of *trials) bool {
		for began := time.Now(); time.Since(began) < 30*time.Second; {
			if x.sql().Int("SELECT count(*) FROM checkpoints WHERE stored_at IS NOT NULL AND trial_id = '"+of.trial+"'") == 1 {
				return true
			}

			select {
			case <-time.After(100 * time.Millisecond):
			case err := <-ended:
				require.NoError(t, err)
			}
		}

		return false
	}

	<-ledger.began
	y.fails()

	other := stored(y)

	close(ledger.release)

	own := stored(x)

	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.True(t, other, "it waits for as long as the other is sent")
	require.True(t, own)
	require.False(t, y.next().Coming)
}
