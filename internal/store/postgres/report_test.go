package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/report"
)

func (b *bundle) report(t *testing.T) report.Report {
	t.Helper()

	in, err := b.store.ReportInput(t.Context(), b.sweep)
	require.NoError(t, err)

	return report.Make(in)
}

func TestReport(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.register(t, "GPU-1", "GPU-2")

	before := b.report(t)
	require.Empty(t, before.Trials)
	require.False(t, before.Ended)

	retried := b.request(t, gib)
	b.ran(t, retried, "GPU-1", berth.FailureDeviceOOM, 0, 10)
	b.ran(t, b.again(t, retried, 2), "GPU-1", berth.FailureOK, 10, 40)
	b.ran(t, b.request(t, gib), "GPU-1", berth.FailureOK, 10, 30)
	b.ran(t, b.request(t, gib), "", berth.FailureOK, 0, 30)

	other := b.another(t, berth.Resources{})
	other.ran(t, other.request(t, gib), "GPU-1", berth.FailureOK, 30, 60) // 10 s beside the sweep
	other.ran(t, other.request(t, gib), "GPU-1", berth.FailureOK, 60, 90) // later
	other.ran(t, other.request(t, gib), "GPU-2", berth.FailureOK, 10, 40) // on another card
	other.ran(t, other.request(t, gib), "", berth.FailureOK, 100, 130)    // later on the same cores

	in, err := b.store.ReportInput(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Len(t, in.Attempts, 5, "its four, and the one neighbour")

	mine, theirs := b.report(t), other.report(t)
	require.Equal(t, 40*time.Second, mine.GPU.Used)
	require.Equal(t, 35*time.Second, mine.GPU.Charged)
	require.Equal(t, 60*time.Second, mine.GPU.AttemptTime)
	require.Equal(t, 60*time.Second, mine.GPU.ActivityTime)
	require.Equal(t, []time.Duration{4500 * time.Millisecond, 900 * time.Millisecond}, []time.Duration{mine.GPU.SMTime, mine.GPU.DRAMTime}, "3 s of each of three")
	require.Equal(t, 30*time.Second, mine.Cores.Used)
	require.Equal(t, []int{3, 1, 2}, []int{len(mine.Trials), len(mine.Trials[1].Attempts), len(mine.Trials[0].Attempts)})
	require.Equal(t, []report.Loss{{Cause: "device_oom", Attempts: 1, Repeated: 1, Time: 10 * time.Second}}, mine.Losses)

	first := mine.Trials[0].Attempts[1]
	require.Positive(t, first.DefaultBytes)
	require.Equal(t, int64(2*gib), first.ReservedBytes)
	require.InDelta(t, 50, *first.SlackPercent, 1e-9)
	require.Equal(t, b.host.MemoryBytes, mine.Trials[2].Attempts[0].MemoryBytes)
	require.Equal(t, "a", mine.Trials[2].Attempts[0].HostName)

	require.Equal(t, 90*time.Second+30*time.Second, mine.GPU.Charged+theirs.GPU.Charged, "GPU-1 was in use for 90 s, GPU-2 for 30 s")

	_, err = b.store.ReportInput(t.Context(), uuid.NewString())
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
}

// First fits are of the attempts that gave the results of succeeded trials, with the searched values.
func TestReport_FirstFits(t *testing.T) {
	t.Parallel()

	b := setup(t)
	spec := berth.Spec{Name: "s", Parameters: []berth.Parameter{{Name: "n", Type: berth.ParameterInt}, {Name: "m", Type: berth.ParameterFixed}}}
	b.begin(t, spec)

	fit := func(digest string) berth.Outcome {
		return berth.Outcome{Kind: berth.FailureOK, FirstFit: &berth.FirstFit{Digest: digest, Epochs: 2, Seconds: 1.5}}
	}

	again := b.request(t, gib)
	b.ended(t, again, "", berth.Outcome{Kind: berth.FailureInfra, FirstFit: fit("x").FirstFit}, 0, 10)
	b.ended(t, b.again(t, again, 2), "", fit("y"), 10, 40)
	b.exec(t, `UPDATE trials SET params = '{"n": 3, "m": 4}'`)
	b.settle(t, again, berth.TrialSucceeded, berth.FailureOK, nil)

	for kind, state := range map[berth.FailureKind]berth.TrialState{berth.FailureOK: berth.TrialSucceeded, berth.FailureUserError: berth.TrialFailed} {
		other := b.request(t, gib)
		b.ended(t, other, "", berth.Outcome{Kind: kind}, 0, 10) // one has no second fit, the other no result
		b.settle(t, other, state, kind, nil)
	}

	in, err := b.store.ReportInput(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, []report.FirstFit{
		{Digest: "y", Values: berth.Assignment{"n": berth.IntValue(3)}, Fit: 1500 * time.Millisecond, Took: 30 * time.Second},
	}, in.FirstFits)
}

// The report says which data retention deleted, and counts running attempts
// until now.
func TestReport_OfWhatIsMissingAndWhatRuns(t *testing.T) {
	t.Parallel()

	b := setup(t)
	gone := b.request(t, gib)
	b.ran(t, gone, "", berth.FailureOK, 0, 10)
	b.settle(t, gone, berth.TrialSucceeded, berth.FailureOK, new(1.0))
	require.Zero(t, b.report(t).Missing)

	b.exec(t, "DELETE FROM attempts WHERE id = $1", gone.AttemptID)

	runs := b.request(t, gib)
	require.NoError(t, b.store.AttemptRunning(t.Context(), runs.AttemptID, b.place(t, runs).Token, "c", time.Now().Add(-time.Minute)))

	r := b.report(t)
	require.Equal(t, 1, r.Missing)
	require.GreaterOrEqual(t, r.Cores.Used, time.Minute)
	require.Less(t, r.Cores.Used, 10*time.Minute)
	require.Nil(t, r.Trials[0].Attempts[0].SlackPercent)
}
