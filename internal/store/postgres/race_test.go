package postgres_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/testseed"
)

// race lets four things happen at once to an attempt that was placed: the host commits a
// result and the workflow settles by it; a person cancels, in half of the rounds when the
// result is there; Temporal loses the host, in a third; and the reconciler looks. It returns
// the ends whose caller changed the trial.
func (b *bundle) race(ctx context.Context, r berth.PlacementRequest, token int64, random *rand.Rand) (won []berth.TrialState, err error) {
	ends, committed := make(chan berth.TrialState, 2), make(chan struct{})
	end := func(state berth.TrialState, kind berth.FailureKind, value *float64) error {
		changed, err := b.store.SetTrialState(ctx, berth.TrialUpdate{
			TrialID: r.TrialID, SweepID: b.sweep, Number: b.trial, State: state, Kind: kind, Message: "m", Value: value,
		})
		if changed {
			ends <- state
		}

		return err
	}

	var group errgroup.Group

	group.Go(func() error { // the host, and then the trial's workflow
		err := b.store.FinishAttempt(ctx, result(r, token, berth.Outcome{
			Kind: berth.FailureOK, Message: "ok", Value: new(0.5), FinishedAt: time.Now(), Usage: berth.Usage{MemoryPeakBytes: gib, Samples: 1},
		}))

		close(committed)

		if berth.KindOf(err) == berth.KindFenced {
			return nil
		}

		return errors.Join(err, end(berth.TrialSucceeded, berth.FailureOK, new(0.5)))
	})

	late := random.IntN(2) == 0

	group.Go(func() error {
		if late {
			<-committed
		}

		return end(berth.TrialCanceled, berth.FailureCanceled, nil)
	})

	if random.IntN(3) == 0 {
		group.Go(func() error { return b.store.AbandonAttempt(ctx, r.AttemptID, "host lost") })
	}

	group.Go(func() error { // the reconciler, which finds no container of an attempt that is over
		attempt, err := b.store.GetAttempt(ctx, r.AttemptID)
		if err != nil || attempt.FinishedAt == nil {
			return err
		}

		return b.store.ReleaseLease(ctx, r.AttemptID, "no container")
	})

	err = group.Wait()
	close(ends)

	for state := range ends {
		won = append(won, state)
	}

	return won, err
}

// Failure 38: the first end wins, in any order of the others, and nothing stays
// booked. A thousand times, eight at once.
func TestRace_CancelAndCompletion(t *testing.T) { //nolint:tparallel // the group of players ends when they have
	t.Parallel()

	const players, rounds = uint64(8), 125

	var succeeded, canceled atomic.Int64

	b := setup(t)
	b.host.CPUMilli, b.host.MemoryBytes = 64_000, 64*gib
	b.register(t)

	t.Run("all at once", func(t *testing.T) {
		for player := range players {
			t.Run(strconv.FormatUint(player, 10), func(t *testing.T) {
				t.Parallel()

				p, random := b.another(t, berth.Resources{}), rand.New(rand.NewPCG(testseed.Seed(t), player))

				for range rounds {
					r := p.request(t, gib)
					won, err := p.race(t.Context(), r, p.place(t, r).Token, random)
					require.NoError(t, err)

					trial, attempt := p.getTrial(t, p.trial), p.attempt(t, r.AttemptID)
					require.Equal(t, []berth.TrialState{trial.State}, won, "the first end stands, and is the only one")
					require.NotNil(t, attempt.FinishedAt)

					if trial.State == berth.TrialSucceeded {
						require.Equal(t, berth.FailureOK, attempt.Kind)
						succeeded.Add(1)
					} else {
						require.Equal(t, berth.TrialCanceled, trial.State)
						require.Nil(t, trial.Value)
						canceled.Add(1)
					}

					require.NoError(t, p.store.ReleaseLease(t.Context(), r.AttemptID, "no container"))
				}
			})
		}
	})

	require.NoError(t, (&ledger{pool: b.pool}).check(t.Context()))
	require.Greater(t, succeeded.Load(), int64(50), "completion never won")
	require.Greater(t, canceled.Load(), int64(50), "cancel never won")

	memory, _ := b.reserved(t)
	require.Zero(t, memory)
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
