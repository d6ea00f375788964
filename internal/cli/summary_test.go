package cli

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

func TestFailuresText(t *testing.T) {
	t.Parallel()

	reasons := []client.FailureReason{
		{State: client.TrialStateFailed, Message: "no\nvalue", Trials: 1234, First: 2},
		{State: client.TrialStateInfeasible, FailureKind: "host_oom", Trials: 1, First: 9},
	}
	text := "1,234 trials, first 2, failed: no value\ntrial 9 infeasible: host_oom\n"
	require.Equal(t, text, failuresText("b80c8fef-a677", reasons))

	require.Equal(t, text+text+"1,234 trials, first 2, failed: no value\n"+
		"more: berth sweep trials b80c8fef --state failed,infeasible\n", failuresText("b80c8fef-a677", slices.Repeat(reasons, 3)))
}

func TestProbePeak(t *testing.T) {
	t.Parallel()

	require.Equal(t, "-", probePeak(shapeSummary{}))
	require.Equal(t, "2 MiB", probePeak(shapeSummary{ProbePeakBytes: 2 << 20, KnownPeakBytes: 3 << 20}))
	require.Equal(t, "3 MiB (known)", probePeak(shapeSummary{KnownPeakBytes: 3 << 20}))
}

// That no time is known does not mean that nothing was measured.
func TestPreviewText_Time(t *testing.T) {
	t.Parallel()

	p := client.Preview{Trials: 6, Complete: true, ShapesTotal: 1, AtOnce: 2, Waves: 3}
	require.Contains(t, previewText(nil, p), "3 waves; how long is not known, as nothing is measured yet\n")

	p.ProbesCached = 1
	require.Contains(t, previewText(nil, p), "3 waves; how long is not known, as no run was timed\n")

	p.Duration = &client.PreviewDuration{MinSeconds: 30, MaxSeconds: 60}
	require.Contains(t, previewText(nil, p), "3 waves, 30 s to 60 s in all\n")
}
