package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

func TestFailedText(t *testing.T) {
	t.Parallel()

	s := summary{Sweep: client.Sweep{ID: "b80c8fef-a677"}}
	for i := 1; i <= 8; i++ {
		s.Failed = append(s.Failed, client.Trial{Number: i, State: client.TrialStateFailed, Message: "no\nvalue"})
	}

	s.Failed = append(s.Failed, client.Trial{Number: 9, State: client.TrialStateInfeasible, FailureKind: "host_oom"})

	require.Equal(t, "trials 1, 2, 3, 4, 5 and 3 more failed: no value\n"+
		"trial 9 infeasible: host_oom\n"+
		"more: berth sweep trials b80c8fef --state failed,infeasible\n", failedText(s))
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
