package worker_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/temporal"
	"github.com/berthml/berth/worker"
	"github.com/berthml/berth/workflows"
)

// restored is a ledger that believes that an attempt runs, and Temporal's state
// of its trial. It records the calls to the ledger in order.
type restored struct {
	run   temporal.TrialRun
	ended bool // the trial, in the ledger
	did   []string
	value *float64
}

func (r *restored) TrialRun(context.Context, string, int) (temporal.TrialRun, error) {
	return r.run, nil
}

func (r *restored) AbandonAttempt(_ context.Context, id, _ string) error {
	r.did = append(r.did, "abandon "+id)

	return nil
}

func (r *restored) FinishAttempt(_ context.Context, result berth.Result) error {
	r.did, r.value = append(r.did, "finish "+result.AttemptID+" "+string(result.Outcome.Kind)), result.Outcome.Value

	return nil
}

func (r *restored) SetTrialState(_ context.Context, u berth.TrialUpdate) (bool, error) {
	r.did = append(r.did, "trial "+u.TrialID+" "+string(u.State))

	return !r.ended, nil
}

// An attempt that the ledger believes to run without a container ends as its
// workflow did; a possibly running one is left alone.
func TestSettle(t *testing.T) {
	t.Parallel()

	value := 0.5
	ok := workflows.TrialResult{State: berth.TrialSucceeded, Kind: berth.FailureOK, Value: &value, Attempts: 2}
	failed := workflows.TrialResult{State: berth.TrialFailed, Kind: berth.FailureUserError, Attempts: 2}

	for name, tt := range map[string]struct {
		run   temporal.TrialRun
		age   time.Duration
		ended bool
		want  []string
	}{
		"its workflow is about to run it":     {temporal.TrialRun{Known: true, Open: true, Runs: true}, time.Hour, false, nil},
		"its workflow was not told yet":       {temporal.TrialRun{Known: true, Open: true}, time.Minute, false, nil},
		"its workflow is past it":             {temporal.TrialRun{Known: true, Open: true}, time.Hour, false, []string{"abandon a"}},
		"Temporal does not know its workflow": {temporal.TrialRun{}, time.Hour, false, nil},
		"it succeeded":                        {temporal.TrialRun{Known: true, Result: &ok}, time.Minute, false, []string{"finish a ok", "trial t succeeded"}},
		"its trial failed":                    {temporal.TrialRun{Known: true, Result: &failed}, time.Minute, false, []string{"trial t failed"}},
		"its workflow was terminated":         {temporal.TrialRun{Known: true}, time.Minute, false, []string{"trial t canceled"}},
		"its workflow failed":                 {temporal.TrialRun{Known: true, Failed: true}, time.Minute, false, []string{"trial t failed"}},
		"its trial has ended":                 {temporal.TrialRun{Known: true}, time.Minute, true, []string{"trial t canceled", "abandon a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := &restored{run: tt.run, ended: tt.ended}
			s := &worker.Settler{Runs: r, Ledger: r, Log: slog.New(slog.DiscardHandler)}
			require.NoError(t, s.Settle(t.Context(), berth.HostLease{
				AttemptID: "a", SweepID: "s", TrialID: "t", TrialNumber: 3, Number: 2, Token: 7, Age: tt.age,
			}))
			require.Equal(t, tt.want, r.did)

			if r.value != nil {
				require.InDelta(t, value, *r.value, 0)
			}
		})
	}
}
