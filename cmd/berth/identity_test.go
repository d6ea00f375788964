package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
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

	_, _, err = store.Suggest(t.Context(), sweep, 1, 1, false, func(berth.Tried) ([]berth.NewTrial, bool, error) {
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

// A dump that was made while a trial ran says that the machine holds a place for it. The worker of a
// drill is not led to the data directory of the original's worker, and a share of the machine is its own.
func TestIdentify_OfADrillOnTheMachineInUse(t *testing.T) {
	t.Parallel()

	store, log := pgtest.Store(t), slog.New(slog.DiscardHandler)
	original := berth.Host{
		ID: uuid.NewString(), Name: "a", BootID: "boot", MachineID: "docker-1", DataDir: "/var/lib/berth", CPUMilli: 4000, MemoryBytes: 8 << 30, MemoryFreeBytes: 8 << 30,
	}
	placeOn(t, store, original)

	drill := original
	m := machine{dataDir: t.TempDir(), instance: "drill", machineID: "docker-1"}

	err := m.identify(t.Context(), store, &drill, false, log)
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "--machine-id drill with --cpus and --memory")
	require.NotContains(t, err.Error(), "/var/lib/berth")

	_, err = os.Stat(filepath.Join(m.dataDir, hostIDFile))
	require.ErrorIs(t, err, os.ErrNotExist)

	m.machineID = "drill"
	require.NoError(t, m.identify(t.Context(), store, &drill, false, log))
	require.NoError(t, store.RegisterHost(t.Context(), drill, "test"))
	require.NotEqual(t, original.ID, drill.ID)

	m.machineID = "docker-1"
	err = m.identify(t.Context(), store, &drill, false, log)
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "at a later start, too: %v", err)

	emptied, m := original, machine{dataDir: t.TempDir(), instance: "main", machineID: "docker-1"}
	require.NoError(t, m.identify(t.Context(), store, &emptied, true, log))
	require.Equal(t, original.ID, emptied.ID, "of the original, whose directory was emptied")
}
