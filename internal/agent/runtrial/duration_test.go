package runtrial

import (
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
		bubble(t, name, func(t *testing.T) {
			r := setup(t)
			r.books.says(func(who *berth.Assignee) {
				who.Spec.Probe.MaxDuration, who.Spec.Limits.MaxTrialDuration = berth.Duration(c.probe), berth.Duration(c.trial)
			})
			r.docks.exitCode = c.exitCode

			order := r.order()
			order.Short = true
			began := time.Now()

			got := came(t, r.start(t.Context(), order))
			require.Equal(t, c.want, time.Since(began))
			require.Equal(t, berth.FailureOK, got.Kind, "the trial now runs in full, and nothing is charged")
			require.Contains(t, got.Message, c.want.String())
			require.Nil(t, got.Value)

			result := r.books.result(t)
			require.Equal(t, berth.FootprintPartial, result.Source)
			require.Equal(t, int64(300<<20), result.Outcome.Usage.MemoryPeakBytes)
			require.Positive(t, result.Outcome.Usage.Samples)
		})
	}
}

// A full probe's result counts: only max_trial_duration ends it.
func TestRun_FullProbeIsNotCapped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.seldom()
		r.books.says(func(who *berth.Assignee) { who.Attempt.Purpose = berth.PurposeProbe })
		r.books.says(func(who *berth.Assignee) { who.Spec.Probe.MaxDuration = berth.Duration(time.Minute) })

		box, ended := r.begin(t)
		time.Sleep(time.Hour)
		got := ends(t, box, ended, "acc=1\n", 0)
		require.InDelta(t, 1, *got.Value, 0)
		require.Equal(t, berth.FootprintFull, r.books.result(t).Source)
	})
}
