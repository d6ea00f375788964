package artifacts_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// Attempt 1 ran in full beside the probe of its shape, ran out of memory and left a checkpoint. The
// carrier ran too long, so the trial measures its shape by a short probe, which is attempt 2, on the
// same host, with a directory of its own. Attempt 1's checkpoint is still to be stored.
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

// Attempts end while their checkpoint is sent, and others begin on the same host: the sent part of
// the first is useless, and the store deletes it while the trial still runs.
func TestCheckpointer_HalfOfAnEarlierAttemptGoes(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	changes := func() error { // the next attempt writes while the first file was sent
		x.writes(map[string]string{"b": "changed"})

		return nil
	}

	for n := range 3 {
		x.writes(map[string]string{"a": "first of " + strconv.Itoa(n), "b": "second of " + strconv.Itoa(n)})
		x.fails()
		x.pointer = x.newPointer(halting{x.db, changes})
		x.looks()
		x.runs(x.host)
		x.looks() // settles ended attempts, and begins one
		require.LessOrEqual(t, x.sql().Int("SELECT count(*) FROM checkpoints"), int64(1), "halves of attempts that are over")
	}

	x.pointer = x.newPointer(x.db)
	x.writes(map[string]string{"a": "whole", "b": "whole too"})
	x.looks()
	require.EqualValues(t, 1, x.sql().Int("SELECT count(*) FROM checkpoints WHERE stored_at IS NOT NULL"))
	require.Zero(t, x.sql().Int("SELECT count(*) FROM checkpoints WHERE stored_at IS NULL"))
	require.Len(t, x.objects(), 2)
}

// The host that sent one went away in the middle, and may come back. Once a later attempt has one
// stored, that half counts for nothing. What a later attempt has begun stays.
func TestCheckpointer_HalfThatIsOlderThanTheNewestGoes(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	begin := func() string {
		id := uuid.NewString()
		_, err := x.db.BeginCheckpoint(t.Context(), id, x.of, []berth.CheckpointEntry{{Path: "state", Mode: 0o644, Bytes: 1, Digest: berth.Digest([]byte(strings.Repeat(strconv.Itoa(x.number), 32)))}})
		require.NoError(t, err)

		return id
	}

	first := begin()
	x.fails() // and its checkpoint is coming

	of := x.of
	x.runs(x.second)
	second, newer := begin(), x.of
	require.EqualValues(t, 2, x.sql().Int("SELECT count(*) FROM checkpoints"), "the first may still be finished")

	dropped, err := x.db.FinishCheckpoint(t.Context(), second, newer)
	require.NoError(t, err)
	require.Equal(t, []berth.Digest{berth.Digest([]byte(strings.Repeat("1", 32)))}, dropped)
	require.Equal(t, second, x.sql().Text("SELECT id::text FROM checkpoints"))

	_, err = x.db.FinishCheckpoint(t.Context(), first, of)
	require.Equal(t, berth.KindFenced, berth.KindOf(err))

	third := begin()
	require.NotEqual(t, second, third)
	require.EqualValues(t, 2, x.sql().Int("SELECT count(*) FROM checkpoints"), "the newest whole one stays beside what was begun")
}
