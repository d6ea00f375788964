package postgres_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/testseed"
)

// race is one attempt that ends and is canceled at the same time.
type race struct {
	*ledger

	request berth.PlacementRequest
	token   int64
	won     chan berth.TrialState // each end whose caller changed the trial
}

// begin places the attempt of a new trial.
func (l *ledger) begin(ctx context.Context) (race, error) {
	if _, err := l.ask(ctx); err != nil {
		return race{}, err
	}

	// What ask asked for at random may fit nowhere.
	r := &l.requests[len(l.requests)-1]
	if _, err := l.store.WithdrawRequest(ctx, r.AttemptID); err != nil {
		return race{}, err
	}

	r.AttemptID, r.Number, r.Demand = uuid.NewString(), 2, berth.Demand{MemoryBytes: gib, CPUMilli: 1000}
	if _, err := l.store.RequestPlacement(ctx, *r); err != nil {
		return race{}, err
	}

	if _, err := l.store.Place(ctx, map[string]berth.Placement{r.AttemptID: {HostID: l.hosts[0], Demand: r.Demand}}); err != nil {
		return race{}, err
	}

	status, err := l.store.PlacementStatus(ctx, r.AttemptID)

	return race{ledger: l, request: *r, token: status.Token, won: make(chan berth.TrialState, 2)}, err
}

// run lets four things happen at once: the host commits a result and the workflow settles
// by it; a person cancels, in half of the rounds when the result is there; Temporal loses
// the host, in a third; and the reconciler looks.
func (r race) run(ctx context.Context) error {
	end := func(state berth.TrialState, kind berth.FailureKind, value *float64) error {
		changed, err := r.store.SetTrialState(ctx, berth.TrialUpdate{
			TrialID: r.request.TrialID, SweepID: r.sweep, Number: len(r.requests), State: state, Kind: kind, Message: "m", Value: value,
		})
		if changed {
			r.won <- state
		}

		return err
	}

	var group errgroup.Group

	committed, late, loses := make(chan struct{}), r.rand.IntN(2) == 0, r.rand.IntN(3) == 0

	group.Go(func() error { // the host, and then the trial's workflow
		err := r.store.FinishAttempt(ctx, result(r.request, r.token, berth.Outcome{
			Kind: berth.FailureOK, Message: "ok", Value: new(0.5), FinishedAt: time.Now(), Usage: berth.Usage{MemoryPeakBytes: gib, Samples: 1},
		}))

		close(committed)

		if berth.KindOf(err) == berth.KindFenced {
			return nil
		}

		return errors.Join(err, end(berth.TrialSucceeded, berth.FailureOK, new(0.5)))
	})
	group.Go(func() error {
		if late {
			<-committed
		}

		return end(berth.TrialCanceled, berth.FailureCanceled, nil)
	})

	if loses {
		group.Go(func() error { return r.store.AbandonAttempt(ctx, r.request.AttemptID, "host lost") })
	}

	group.Go(func() error { // the reconciler, which finds no container of an attempt that is over
		attempt, err := r.store.GetAttempt(ctx, r.request.AttemptID)
		if err != nil || attempt.FinishedAt == nil {
			return err
		}

		return r.store.ReleaseLease(ctx, r.request.AttemptID, "no container")
	})

	return group.Wait()
}

// settled returns the trial's end, after checking that it is one.
func (r race) settled(ctx context.Context) (berth.TrialState, error) {
	trial, err := r.store.GetTrial(ctx, r.sweep, len(r.requests))
	if err != nil {
		return "", err
	}

	attempt, err := r.store.GetAttempt(ctx, r.request.AttemptID)

	switch {
	case err != nil:
		return "", err
	case !trial.State.Terminal() || attempt.FinishedAt == nil:
		return "", berth.Errorf(berth.KindInternal, "the trial is %s, its attempt %s", trial.State, attempt.State)
	case len(r.won) != 1:
		return "", berth.Errorf(berth.KindInternal, "%d ends changed the trial", len(r.won))
	case <-r.won != trial.State:
		return "", berth.Errorf(berth.KindInternal, "another end than the first stands: %s", trial.State)
	case trial.State == berth.TrialSucceeded && attempt.Kind != berth.FailureOK:
		return "", berth.Errorf(berth.KindInternal, "a trial succeeded whose attempt ended as %s", attempt.Kind)
	case trial.State == berth.TrialCanceled && trial.Value != nil:
		return "", berth.Errorf(berth.KindInternal, "a canceled trial has a value")
	}

	return trial.State, r.store.ReleaseLease(ctx, r.request.AttemptID, "no container")
}

// Failure 38: the first end wins, in any order of the others, and nothing stays
// booked. A thousand times, eight at once.
func TestRace_CancelAndCompletion(t *testing.T) {
	t.Parallel()

	const players, rounds = 8, 125

	ledgers := newLedgers(t, testseed.Seed(t), players, berth.Host{
		ID: uuid.NewString(), Name: "h", BootID: "boot", CPUMilli: 64_000, MemoryBytes: 64 * gib, MemoryFreeBytes: 64 * gib,
	})

	var (
		mu   sync.Mutex
		ends = map[berth.TrialState]int{}
	)

	atOnce(t, ledgers, rounds, func(ctx context.Context, l *ledger) error {
		r, err := l.begin(ctx)
		if err != nil {
			return err
		}

		if err := r.run(ctx); err != nil {
			return err
		}

		state, err := r.settled(ctx)

		mu.Lock()
		defer mu.Unlock()

		ends[state]++

		return err
	})

	require.NoError(t, ledgers[0].check(t.Context()))
	t.Logf("ends: %v", ends)
	require.Greater(t, ends[berth.TrialSucceeded], 50, "completion never won")
	require.Greater(t, ends[berth.TrialCanceled], 50, "cancel never won")

	require.Zero(t, number[int64](t, ledgers[0].pool, "SELECT memory_reserved_bytes FROM hosts"))
}

// Failure 39: fifty calls at once with one key make one sweep, and one with
// another body is a conflict.
func TestRace_OneKeyFiftyTimes(t *testing.T) {
	t.Parallel()

	b := bare(t)
	submission := func(body byte) berth.NewSweep {
		return berth.NewSweep{
			ID: uuid.NewString(), Spec: berth.Spec{Name: "s"}, ImageDigest: "sha256:1", CreatedBy: "me", Route: "POST /sweeps", Key: "k", BodyHash: []byte{body},
		}
	}
	submitted := func(body byte) (string, error) {
		return b.store.SubmittedSweep(t.Context(), submission(body).SubmissionKey())
	}

	id, err := submitted(1)
	require.NoError(t, err)
	require.Empty(t, id)

	var (
		group   errgroup.Group
		answers = make(chan string, 50)
		made    atomic.Int64
	)

	for range 50 {
		group.Go(func() error {
			id, created, err := b.store.CreateSweep(t.Context(), submission(1))
			answers <- id

			if created {
				made.Add(1)
			}

			return err
		})
	}

	require.NoError(t, group.Wait())
	require.Equal(t, int64(1), made.Load())
	require.Equal(t, 1, b.rows(t, "sweeps"))

	id, err = submitted(1)
	require.NoError(t, err)

	for range 50 {
		require.Equal(t, id, <-answers)
	}

	_, _, err = b.store.CreateSweep(t.Context(), submission(2))
	require.Equal(t, berth.KindConflict, berth.KindOf(err))

	_, err = submitted(2)
	require.Equal(t, berth.KindConflict, berth.KindOf(err))
}

// A cordoned GPU and a draining host take nothing from the moment the person gets the
// answer. No transaction deadlocks over it.
func TestRace_CordonAndPlacement(t *testing.T) {
	t.Parallel()

	const pairs = 40

	b := setup(t)
	b.host.CPUMilli, b.host.MemoryBytes = pairs*2000, pairs*2*gib
	ids := []string{"GPU-1", "GPU-2"}
	b.register(t, ids...)

	decisions := make([]map[string]berth.Placement, pairs)
	for i := range decisions {
		decisions[i] = map[string]berth.Placement{}

		for _, id := range ids {
			r := b.request(t, gib)
			r.Demand.DeviceBytes = gib
			decisions[i][r.AttemptID] = berth.Placement{HostID: b.host.ID, DeviceID: id, Class: h200, Demand: r.Demand}
		}
	}

	ctx, ended := context.WithCancel(t.Context())
	group, ctx := errgroup.WithContext(ctx)
	goOn := func(work func() error) {
		group.Go(func() error {
			for ctx.Err() == nil {
				if err := work(); err != nil && ctx.Err() == nil {
					return err
				}
			}

			return nil
		})
	}
	// keeps closes the host's GPUs to attempts, and opens them a moment later.
	keeps := func(do, undo func() error) func() error {
		return func() error {
			count := func() (n int, err error) {
				err = b.pool.QueryRow(ctx, "SELECT count(*) FROM attempts").Scan(&n)

				return n, err
			}

			if err := do(); err != nil {
				return err
			}

			before, err := count()
			if err != nil {
				return err
			}

			time.Sleep(5 * time.Millisecond)

			after, err := count()
			if err == nil && after != before {
				err = berth.Errorf(berth.KindInternal, "%d attempts were placed meanwhile", after-before)
			}

			err = errors.Join(err, undo())

			time.Sleep(20 * time.Millisecond)

			return err
		}
	}

	goOn(keeps(func() error {
		return errors.Join(b.store.CordonDevice(ctx, ids[0], ""), b.store.CordonDevice(ctx, ids[1], ""))
	}, func() error { return errors.Join(b.store.ReadyDevice(ctx, ids[1]), b.store.ReadyDevice(ctx, ids[0])) }))
	goOn(keeps(func() error { return b.store.SetHostState(ctx, b.host.ID, berth.HostDraining) },
		func() error { return b.store.SetHostState(ctx, b.host.ID, berth.HostReady) }))
	goOn(func() error {
		return b.store.TouchHost(ctx, b.host.ID, berth.HostFree{Devices: []berth.DeviceFree{{ID: ids[1]}, {ID: ids[0]}}}, nil)
	})
	group.Go(func() error {
		defer ended()

		for _, pair := range decisions {
			for left := len(pair); left > 0; {
				placed, err := b.store.Place(ctx, pair)
				if err != nil {
					return err
				}

				left -= len(placed)
			}
		}

		return nil
	})
	require.NoError(t, group.Wait())

	host := b.first(t)
	require.Equal(t, []int{2 * pairs, pairs, pairs}, []int{host.Attempts, host.Devices[0].Attempts, host.Devices[1].Attempts})
}
