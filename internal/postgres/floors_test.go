package postgres_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

const mib = 1 << 20

// waiting is what the requests that wait ask for.
func (b *bundle) waiting(t *testing.T) map[string]int64 {
	t.Helper()

	_, queue, _, err := b.store.Queue(t.Context(), 100)
	require.NoError(t, err)

	asked := make(map[string]int64, len(queue))
	for _, r := range queue {
		asked[r.AttemptID] = r.Demand.MemoryBytes
	}

	return asked
}

// runs places and ends an attempt that used so much.
func (b *bundle) runs(t *testing.T, r berth.PlacementRequest, kind berth.FailureKind, peak int64) {
	t.Helper()

	u := berth.Usage{MemoryPeakBytes: peak, Samples: 9, Wall: berth.Duration(time.Minute)}
	if kind == berth.FailureHostOOM {
		u.OOMKills = 1
	}

	require.NoError(t, b.store.FinishAttempt(t.Context(), result(r, b.place(t, r).Token, berth.Outcome{
		Kind: kind, Message: "m", FinishedAt: time.Now(), Usage: u,
	})))
}

// One trial that can never fit leaves the others of its shape as they were.
func TestFinishAttempt_AnOutlierDoesNotHoldTheShape(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.runs(t, b.request(t, 4*gib), berth.FailureOK, 175*mib)

	sibling := b.request(t, 256*mib)
	outlier := b.request(t, 256*mib)
	b.runs(t, outlier, berth.FailureHostOOM, 256*mib)
	require.Equal(t, int64(768*mib), b.waiting(t)[sibling.AttemptID], "it may need as much: they learn at once")

	again := func(size int64, alone bool) {
		outlier.AttemptID, outlier.Number = uuid.NewString(), outlier.Number+1
		outlier.Demand.MemoryBytes, outlier.Demand.Exclusive = size, alone

		_, err := b.store.RequestPlacement(t.Context(), outlier)
		require.NoError(t, err)
		b.runs(t, outlier, berth.FailureHostOOM, size)
	}
	again(768*mib, false)
	require.Equal(t, int64(gib), b.waiting(t)[sibling.AttemptID], "four times what they were measured to need, and no more")
	again(8*gib, true)
	require.Equal(t, int64(gib), b.waiting(t)[sibling.AttemptID], "the whole machine was not enough for that one trial")

	for range 3 {
		b.runs(t, b.request(t, gib), berth.FailureOK, 175*mib)
	}

	require.Equal(t, int64(256*mib), b.waiting(t)[sibling.AttemptID], "and those that still wait ask for their own size again")

	f, err := b.store.Footprint(t.Context(), sibling.ShapeKey)
	require.NoError(t, err)
	require.Zero(t, f.MemoryFloorBytes)
	require.Equal(t, int64(175*mib), f.MemoryPeakBytes)
}

func TestFinishAttempt_CountsRunsSinceTheFloor(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.runs(t, b.request(t, gib), berth.FailureHostOOM, gib)
	b.runs(t, b.request(t, 2*gib), berth.FailureOK, 500*mib)

	all, err := b.store.ListFootprints(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, int64(gib), all[0].Footprint.MemoryFloorBytes)
	require.Equal(t, 1, all[0].Footprint.FloorPassed)
}

// The memory peaks after the part that the probe measured: siblings that wait
// ask for what the first of them was found to need.
func TestFinishAttempt_AMeasuredRunResizesWhatWaits(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.runs(t, b.request(t, 4*gib), berth.FailureOK, gib)

	sibling := b.request(t, 1152*mib)
	retry := b.request(t, 1152*mib)
	b.runs(t, retry, berth.FailureHostOOM, 1152*mib)
	retry.AttemptID, retry.Number, retry.Demand.MemoryBytes = uuid.NewString(), 2, 4*gib
	_, err := b.store.RequestPlacement(t.Context(), retry)
	require.NoError(t, err)

	b.runs(t, b.request(t, 6*gib), berth.FailureOK, 3*gib)
	require.Equal(t, map[string]int64{
		sibling.AttemptID: 3392 * mib,
		retry.AttemptID:   4 * gib, // it knows better: its trial ran out of memory itself
	}, b.waiting(t))
}

// What the user writes stands, whatever other trials of the shape meet.
func TestFinishAttempt_LeavesTheUsersSize(t *testing.T) {
	t.Parallel()

	b := setup(t)
	other := b.sweep
	b.sweep, b.trial = uuid.NewString(), 0
	_, _, err := b.store.CreateSweep(t.Context(), berth.NewSweep{
		ID: b.sweep, Spec: berth.Spec{Name: "sized", Resources: berth.Resources{Memory: gib}}, ImageDigest: "sha256:x", CreatedBy: "local",
	})
	require.NoError(t, err)

	sized := b.request(t, gib)
	b.sweep, b.trial = other, 0
	auto := b.request(t, gib)
	b.runs(t, b.request(t, gib), berth.FailureHostOOM, gib)

	require.Equal(t, map[string]int64{sized.AttemptID: gib, auto.AttemptID: 1536 * mib}, b.waiting(t))
}

// Of a run that was not measured throughout, siblings learn no size to go by.
func TestFinishAttempt_RunWithAGap(t *testing.T) {
	t.Parallel()

	b := setup(t)
	sibling := b.request(t, 2*gib)
	r := b.request(t, 2*gib)
	done := result(r, b.place(t, r).Token, berth.Outcome{
		Kind: berth.FailureOK, Message: "m", FinishedAt: time.Now(),
		Usage: berth.Usage{MemoryPeakBytes: 155 * mib, Samples: 9, Unseen: berth.Duration(time.Minute)},
	})
	done.Source = berth.FootprintPartial
	require.NoError(t, b.store.FinishAttempt(t.Context(), done))
	require.Equal(t, map[string]int64{sibling.AttemptID: 2 * gib}, b.waiting(t))

	f, err := b.store.Footprint(t.Context(), r.ShapeKey)
	require.NoError(t, err)
	require.Equal(t, berth.FootprintPartial, f.Source)
	require.Zero(t, f.Samples)

	attempt, err := b.store.GetAttempt(t.Context(), r.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.Duration(time.Minute), attempt.Usage.Unseen)
}
