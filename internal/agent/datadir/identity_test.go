package datadir

import (
	"log/slog"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// placeOn registers a host, and gives an attempt a place there.
func placeOn(t *testing.T, store *postgres.Store, host berth.Host) {
	t.Helper()

	sweep, trial, shape := uuid.NewString(), uuid.NewString(), berth.Shape{ImageDigest: "sha256:x", Command: []string{"run"}}

	require.NoError(t, store.RegisterHost(t.Context(), host, "test"))

	_, _, err := store.CreateSweep(t.Context(), berth.NewSweep{
		ID: sweep, Spec: berth.Spec{Name: "s", Objective: &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize}}, ImageDigest: "sha256:x", CreatedBy: "local",
	})
	require.NoError(t, err)

	_, _, err = store.Suggest(t.Context(), sweep, 1, 1, berth.SearchNeeds{}, func(berth.Tried) ([]berth.NewTrial, bool, error) {
		return []berth.NewTrial{{ID: trial, Params: berth.Assignment{"lr": berth.FloatValue(1)}, Shape: shape}}, false, nil
	})
	require.NoError(t, err)

	r := berth.PlacementRequest{
		AttemptID: uuid.NewString(), SweepID: sweep, TrialID: trial, WorkflowID: "w", Number: 1, Stage: berth.StageMain, Purpose: berth.PurposeRun,
		ShapeKey: shape.Key(), Demand: berth.Demand{MemoryBytes: 1 << 30, CPUMilli: 1000},
	}
	_, err = store.RequestPlacement(t.Context(), r)
	require.NoError(t, err)

	placed, err := store.Place(t.Context(), map[string]berth.Placement{r.AttemptID: {HostID: host.ID, Demand: r.Demand}})
	require.NoError(t, err)
	require.Len(t, placed, 1)
}

// The directory of a machine that holds a trial was emptied: it gets its host back.
func TestIdentify_AnEmptiedDirectory(t *testing.T) {
	t.Parallel()

	store, log := pgtest.Store(t), slog.New(slog.DiscardHandler)
	before := berth.Host{
		ID: uuid.NewString(), Name: "a", BootID: "boot", MachineID: "docker-1", DataDir: "/var/lib/berth", CPUMilli: 4000, MemoryBytes: 8 << 30, MemoryFreeBytes: 8 << 30,
	}
	placeOn(t, store, before)

	emptied, dir := before, t.TempDir()
	require.NoError(t, Identify(t.Context(), store, dir, &emptied, log))
	require.Equal(t, before.ID, emptied.ID)

	known, err := readHostID(dir)
	require.NoError(t, err)
	require.Equal(t, before.ID, known)
}
