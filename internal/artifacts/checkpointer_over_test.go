package artifacts_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// Attempt 1 ran in full beside the probe of its shape, ran out of memory and left a checkpoint. The
// carrier ran too long, so the trial measures its shape by a short probe, which is attempt 2, on the
// same host, with a directory of its own. What attempt 1 left is still to be stored.
func TestCheckpointer_AShortProbeSettlesNothing(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "40 epochs"})
	x.fails()

	first, probe := x.of.AttemptID, uuid.NewString()
	demand := berth.Demand{MemoryBytes: gib, CPUMilli: 1000}
	_, err := x.db.RequestPlacement(t.Context(), berth.PlacementRequest{
		AttemptID: probe, SweepID: x.sweep, TrialID: x.trial, WorkflowID: "w", Number: x.number + 1, Stage: berth.StageMain,
		Purpose: berth.PurposeRun, ShapeKey: "s", Demand: demand, Short: true,
	})
	require.NoError(t, err)
	_, err = x.db.Place(t.Context(), map[string]berth.Placement{probe: {HostID: x.host, Demand: demand}})
	require.NoError(t, err)

	status, err := x.db.PlacementStatus(t.Context(), probe)
	require.NoError(t, err)
	require.NoError(t, x.db.AttemptRunning(t.Context(), probe, status.Token, "c2", time.Now()))

	list, err := x.db.CheckpointsToStore(t.Context(), x.host, 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, first, list[0].AttemptID)
}
