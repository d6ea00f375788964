package postgres_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// batches makes a trial with this batch size, whose shape differs from others' in it alone.
func (b *bundle) batches(t *testing.T, batch int64, optimizer string) berth.PlacementRequest {
	t.Helper()

	b.trial++

	shape := berth.Shape{ImageDigest: "sha256:x", Command: []string{"run"}, Values: berth.Assignment{
		"batch": berth.IntValue(batch), "optimizer": berth.StringValue(optimizer),
	}}
	r := berth.PlacementRequest{
		AttemptID: uuid.NewString(), SweepID: b.sweep, TrialID: uuid.NewString(), WorkflowID: "w", Number: 1,
		Stage: berth.StageMain, Purpose: berth.PurposeRun, ShapeKey: shape.Key(), Demand: berth.Demand{MemoryBytes: gib, CPUMilli: 1000},
	}

	_, _, err := b.store.Suggest(t.Context(), b.sweep, b.trial, 1, berth.SearchNeeds{}, func(berth.Tried) ([]berth.NewTrial, bool, error) {
		return []berth.NewTrial{{ID: r.TrialID, Params: shape.Values, Shape: shape}}, false, nil
	})
	require.NoError(t, err)

	return r
}

// measures runs the attempt of a request to its end.
func (b *bundle) measures(t *testing.T, r berth.PlacementRequest, peak int64) {
	t.Helper()

	_, err := b.store.RequestPlacement(t.Context(), r)
	require.NoError(t, err)
	b.runs(t, r, berth.FailureOK, peak)
}

func (b *bundle) planned(t *testing.T, number int) berth.Footprints {
	t.Helper()

	trial, err := b.store.PlannedTrial(t.Context(), b.sweep, number, berth.StageMain)
	require.NoError(t, err)

	return trial.Footprints
}

// Two measured shapes of a family predict all shapes between them, of present and of later
// trials. A measured shape is not predicted.
func TestPredict(t *testing.T) {
	t.Parallel()

	b := setup(t)
	small, large := b.batches(t, 16, "adam"), b.batches(t, 64, "adam")
	between, other, beyond := b.batches(t, 32, "adam"), b.batches(t, 32, "sgd"), b.batches(t, 65, "adam")

	b.measures(t, small, 300*mib)
	require.Empty(t, b.planned(t, 3), "one says nothing of others")

	b.measures(t, large, 700*mib)

	known, err := b.store.Footprints(t.Context(), []string{between.ShapeKey, other.ShapeKey, beyond.ShapeKey, small.ShapeKey})
	require.NoError(t, err)
	require.Len(t, known, 2)

	f := known[between.ShapeKey][berth.ClassCPU]
	require.Equal(t, berth.FootprintPredicted, f.Source)
	require.Zero(t, f.Samples)
	require.InDelta(t, 1.10*(300+400.0/3)*mib, f.MemoryPeakBytes, mib, "by a line, and a tenth")
	require.Equal(t, berth.FootprintFull, known[small.ShapeKey][berth.ClassCPU].Source)

	b.batches(t, 40, "adam")
	require.Equal(t, berth.FootprintPredicted, b.planned(t, 6)[berth.ClassCPU].Source, "of a trial that came later")

	b.measures(t, between, 500*mib)
	f = b.planned(t, 3)[berth.ClassCPU]
	require.Equal(t, berth.FootprintFull, f.Source)
	require.Equal(t, int64(500*mib), f.MemoryPeakBytes)
	require.Greater(t, b.planned(t, 6)[berth.ClassCPU].MemoryPeakBytes, int64(500*mib), "what was measured since counts")
}
