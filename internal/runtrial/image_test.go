package runtrial

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// withoutImage has a Docker lack the image until it is pulled; zero = never.
func (d *docks) withoutImage(pulled time.Time) {
	d.before = func(l berth.Launch) error {
		if pulled.IsZero() || time.Now().Before(pulled) {
			return &berth.StartError{Kind: berth.FailureImageMissing, Err: errors.New("no image " + l.Image)}
		}

		return nil
	}
}

func TestRun_WaitsForAMissingImage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.docks.withoutImage(time.Now().Add(10 * time.Second))
		ended := r.start(t.Context(), r.order())

		time.Sleep(5 * time.Second)
		require.Equal(t, []berth.SeenAttempt{{AttemptID: attemptID, Token: r.order().Token}}, r.Waiting(), "its lease is renewed meanwhile")

		box := r.docks.started(t)
		synctest.Wait()
		require.Empty(t, r.Waiting())
		box.Print(berth.Stdout, "acc=1\n")
		box.Exit(0)

		got := <-ended
		require.NoError(t, got.err)
		require.Equal(t, berth.FailureOK, got.outcome.Kind)
	})
}

func TestRun_GivesItsPlaceBackWithoutTheImage(t *testing.T) {
	t.Parallel()

	for number, want := range map[int]time.Duration{
		1: 15 * time.Second, 2: 30 * time.Second, 3: time.Minute, 5: 4 * time.Minute, 6: 5 * time.Minute, 10: 5 * time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t)
			r.config.HostName = "gpu-1"
			r.books.says(func(who *berth.Assignee) { who.Spec.Image = "digits:1" })
			r.books.says(func(who *berth.Assignee) { who.Attempt.Number = number })
			r.docks.withoutImage(time.Time{})
			began := time.Now()

			got := <-r.start(t.Context(), r.order())
			require.NoError(t, got.err)
			require.InDelta(t, want, time.Since(began), float64(imageLook))

			policy := got.outcome.Kind.Policy()
			require.Equal(t, berth.NextRetry, policy.Next, "a missing image never ends a trial by itself")
			require.False(t, policy.Charges)
			require.Contains(t, got.outcome.Message, `image "digits:1" is not on host "gpu-1"`)
			require.Contains(t, got.outcome.Message, "docker pull")
			require.True(t, r.books.result(t).ImageMissing, "the ledger is told apart from other failures")
			require.Empty(t, r.Waiting())
		})
	}
}

func TestRun_IsStoppedWhileItWaitsForItsImage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for cause, want := range map[error]error{errStop: nil, errors.New("the worker stops"): ErrDetached} {
			r := setup(t)
			r.docks.withoutImage(time.Time{})
			ctx, stop := context.WithCancelCause(t.Context())
			ended := r.start(ctx, r.order())

			time.Sleep(time.Second)
			stop(cause)

			got := <-ended
			require.ErrorIs(t, got.err, want)

			if want == nil {
				require.Equal(t, berth.FailureCanceled, got.outcome.Kind)
			}
		}
	})
}
