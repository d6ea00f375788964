package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A successful attempt teaches its pace beside a number of neighbours, in the mix
// since the last neighbour came. One that failed, or was tried again, teaches
// nothing.
func TestFinishAttempt_Paces(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.host.CPUMilli = 16_000
	b.register(t, "GPU-1")

	const place = "NVIDIA H200, 1 of 1, 16 cores"

	place1 := func(mix string) (berth.PlacementRequest, berth.PlacementStatus) {
		r := b.request(t, gib)

		return r, b.placeAs(t, r, berth.Placement{
			HostID: b.host.ID, DeviceID: "GPU-1", Class: h200, Mix: berth.Mix{Key: mix, Own: r.ShapeKey},
			Demand: berth.Demand{MemoryBytes: gib, CPUMilli: 100, DeviceBytes: gib},
		})
	}

	start := time.Now().Truncate(time.Second).Add(-time.Hour)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	finish := func(r berth.PlacementRequest, status berth.PlacementStatus, kind berth.FailureKind, from, to int) {
		require.NoError(t, b.store.AttemptRunning(t.Context(), r.AttemptID, status.Token, "c-"+r.AttemptID, at(from)))
		b.finish(t, r, berth.Outcome{
			Kind: kind, StartedAt: at(from), FinishedAt: at(to), Usage: berth.Usage{Samples: 1, Wall: berth.Duration(time.Duration(to-from) * time.Second)},
		})
	}

	r1, s1 := place1("first")
	r2, s2 := place1("then")
	r3, s3 := place1("then")
	require.NoError(t, b.store.AttemptRunning(t.Context(), r2.AttemptID, s2.Token, "c2", at(0)))
	require.NoError(t, b.store.AttemptRunning(t.Context(), r3.AttemptID, s3.Token, "c3", at(10)))

	finish(r1, s1, berth.FailureOK, 0, 20)        // beside one for 10 s, then two: 2.5 in the mean, 8 s of the GPU
	finish(r2, s2, berth.FailureUserError, 0, 20) // says nothing
	finish(r3, s3, berth.FailureOK, 10, 30)       // beside two for 10 s, then none: 2, 10 s

	waiting := b.request(t, gib)
	queue := b.queue(t)
	require.Equal(t, waiting.ShapeKey, r1.ShapeKey, "or the paces would not be read")
	require.Len(t, queue.Paces, 2)

	for i, want := range []struct {
		atOnce  int
		seconds float64
	}{{2, 10}, {3, 8}} {
		got := queue.Paces[i]
		require.Equal(t, place, got.Place)
		require.Equal(t, "then", got.Mix, "of the one that came last")
		require.Equal(t, berth.Company{Mode: berth.SharingTimeSlicing, AtOnce: want.atOnce}, got.Company)
		require.InDelta(t, want.seconds, got.Mean, 0.01)
		require.Equal(t, 1, got.Samples)
	}

	// A second one of the kind: mean and variance.
	r4, s4 := place1("then")
	r5, s5 := place1("then")
	require.NoError(t, b.store.AttemptRunning(t.Context(), r5.AttemptID, s5.Token, "c5", at(100)))
	finish(r4, s4, berth.FailureOK, 100, 112)
	finish(r5, s5, berth.FailureKilled, 100, 112)

	queue = b.queue(t)
	require.InDelta(t, 8, queue.Paces[0].Mean, 0.01)
	require.InDelta(t, 4, queue.Paces[0].Variance, 0.01)
	require.Equal(t, 2, queue.Paces[0].Samples)

	// Only failures that neighbours can cause count, and each good end takes off a part.
	run := func(kind berth.FailureKind, from int) {
		r, s := place1("then")
		finish(r, s, kind, from, from+12)
	}

	of := func(atOnce int) berth.MixPace {
		for _, p := range b.queue(t).Paces {
			if p.AtOnce == atOnce {
				return p
			}
		}

		return berth.MixPace{}
	}

	for i, kind := range []berth.FailureKind{berth.FailureNeighbourFault, berth.FailureUserError, berth.FailureHostOOM, berth.FailureTimedOut, berth.FailureDeviceOOM, berth.FailureCrashed} {
		run(kind, 200+20*i)
	}

	require.Equal(t, []int{0, 3}, []int{of(1).Samples, of(1).Failed})
	run(berth.FailureOK, 400)
	require.Equal(t, []int{1, 2}, []int{of(1).Samples, of(1).Failed})

	// Old paces are not read, begin again with the next attempt, and are deleted.
	age := func() {
		b.exec(t, "UPDATE paces SET updated_at = now() - interval '15 days'") // the database's time passes
	}

	age()
	require.Zero(t, of(1))
	run(berth.FailureOK, 500)
	require.Equal(t, []int{1, 0}, []int{of(1).Samples, of(1).Failed})
	require.InDelta(t, 12, of(1).Mean, 0.01)

	age()
	b.store.Retain(t.Context(), berth.Retention{}, map[string]error{})

	require.Zero(t, b.rows(t, "paces"))

	advice := berth.Advice{Company: berth.Company{Mode: berth.SharingMPS, AtOnce: 12}, Why: "as measured"}
	require.NoError(t, b.store.StoreAdvice(t.Context(), map[string]berth.Advice{"GPU-1": advice}))
	require.Equal(t, advice, b.first(t).Devices[0].Advice)
	require.NoError(t, b.store.ClearAdvice(t.Context()))
	require.Zero(t, b.first(t).Devices[0].Advice)
}
