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

// A program that Keras' caps do not end: custom loops, PyTorch, JAX.
func TestRun_ShortProbeIsCapped(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		probe, trial, want time.Duration
		exitCode           int // after SIGTERM
	}{
		"probe.max_duration":                       {probe: 2 * time.Minute, trial: time.Hour, want: 2 * time.Minute, exitCode: 143},
		"none is named":                            {want: defaultProbeFor, exitCode: 137},
		"the trial's is less":                      {probe: time.Hour, trial: time.Minute, want: time.Minute, exitCode: 143},
		"it ends with an error when it is stopped": {probe: time.Minute, want: time.Minute, exitCode: 1},
		"it says that it could go on":              {probe: time.Minute, want: time.Minute, exitCode: 75},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setup(t)
				r.books.says(func(who *berth.Assignee) {
					who.Spec.Probe.MaxDuration, who.Spec.Limits.MaxTrialDuration = berth.Duration(c.probe), berth.Duration(c.trial)
				})
				r.docks.exitCode = c.exitCode

				order := r.order()
				order.Short = true
				began := time.Now()

				got := <-r.start(t.Context(), order)
				require.NoError(t, got.err)
				require.Equal(t, c.want, time.Since(began))
				require.Equal(t, berth.FailureOK, got.outcome.Kind, "the trial now runs in full, and nothing is charged")
				require.Contains(t, got.outcome.Message, c.want.String())
				require.Nil(t, got.outcome.Value)

				result := r.books.result(t)
				require.Equal(t, berth.FootprintPartial, result.Source)
				require.Equal(t, int64(300<<20), result.Outcome.Usage.MemoryPeakBytes)
				require.Positive(t, result.Outcome.Usage.Samples)
			})
		})
	}
}

// A full probe's result counts: only max_trial_duration ends it.
func TestRun_FullProbeIsNotCapped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.books.says(func(who *berth.Assignee) { who.Attempt.Purpose = berth.PurposeProbe })
		r.books.says(func(who *berth.Assignee) { who.Spec.Probe.MaxDuration = berth.Duration(time.Minute) })

		ended := r.start(t.Context(), r.order())
		box := r.docks.started(t)
		time.Sleep(time.Hour)
		box.Print(berth.Stdout, "acc=1\n")
		box.Exit(0)

		got := <-ended
		require.NoError(t, got.err)
		require.InDelta(t, 1, *got.outcome.Value, 0)
		require.Equal(t, berth.FootprintFull, r.books.result(t).Source)
	})
}

// A worker that was killed between the stop and the verdict knows no intent.
func TestRun_RecallsThatTheProbeWasCapped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		order := r.order()
		order.Short = true

		ctx, crash := context.WithCancelCause(t.Context())
		ended := r.start(ctx, order)
		box := r.docks.started(t)
		crash(errors.New("the worker was killed"))
		require.ErrorIs(t, (<-ended).err, ErrDetached)
		time.Sleep(defaultProbeFor)
		box.Exit(143)

		got := <-r.start(t.Context(), order)
		require.NoError(t, got.err)
		require.Equal(t, berth.FailureOK, got.outcome.Kind)
		require.Equal(t, berth.FootprintPartial, r.books.result(t).Source)
	})
}
