package ledgertest

import (
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func testRequest(t *testing.T, b *bench) {
	r := b.ask(t, 1)

	again, err := b.RequestPlacement(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWaiting, again.State, "asking twice is asking once")

	token := b.put(t, r)
	b.requireReserved(t, 1, 1)

	again, err = b.RequestPlacement(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, berth.RequestPlaced, again.State)
	require.Equal(t, token, again.Token)

	_, err = b.PlacementStatus(t.Context(), uuid.NewString())
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
}

func testBook(t *testing.T, b *bench) {
	first, firstToken := b.place(t, 2)
	_, secondToken := b.place(t, 3)
	require.Greater(t, secondToken, firstToken)
	b.requireReserved(t, 5, 2)

	placed, err := b.Place(t.Context(), b.here(first))
	require.NoError(t, err)
	require.Empty(t, placed, "it does not wait any more")
	b.requireReserved(t, 5, 2)

	a := b.attempt(t, first.AttemptID)
	require.Equal(t, berth.AttemptPlaced, a.State)
	require.Equal(t, firstToken, a.Token)
	require.Equal(t, first.Demand, a.Demand)
}

// An attempt gets the decision's demand, not the request's.
func testBookDecided(t *testing.T, b *bench) {
	first, second := b.ask(t, 1), b.ask(t, 1)
	give := func(of berth.PlacementRequest, d berth.Demand) ([]string, error) {
		return b.Place(t.Context(), map[string]berth.Placement{of.AttemptID: {HostID: b.host.ID, Class: berth.ClassCPU, Demand: d}})
	}

	_, err := give(first, berth.Demand{MemoryBytes: 9 * gib, CPUMilli: 1000, Exclusive: true})
	require.Equal(t, berth.KindExhausted, berth.KindOf(err), "%v", err)

	larger := berth.Demand{MemoryBytes: 6 * gib, CPUMilli: 500, Exclusive: true}
	placed, err := give(first, larger)
	require.NoError(t, err)
	require.Equal(t, []string{first.AttemptID}, placed)
	require.Equal(t, larger, b.attempt(t, first.AttemptID).Demand)

	smaller := berth.Demand{MemoryBytes: gib / 2, CPUMilli: 1000}
	_, err = give(second, smaller)
	require.NoError(t, err)
	require.Equal(t, smaller, b.attempt(t, second.AttemptID).Demand)
}

func testOverCapacity(t *testing.T, b *bench) {
	b.place(t, 6)

	second := b.ask(t, 3)
	_, err := b.Place(t.Context(), b.here(second))
	require.Equal(t, berth.KindExhausted, berth.KindOf(err), "%v", err)

	status, err := b.PlacementStatus(t.Context(), second.AttemptID)
	require.NoError(t, err)
	require.Equal(t, berth.RequestWaiting, status.State)
	b.requireReserved(t, 6, 1)
	b.place(t, 2)
	b.requireReserved(t, 8, 2)
}

func testAllOrNothing(t *testing.T, b *bench) {
	small, large := b.ask(t, 1), b.ask(t, 8)

	_, err := b.Place(t.Context(), b.here(small, large))
	require.Equal(t, berth.KindExhausted, berth.KindOf(err), "%v", err)
	b.requireReserved(t, 0, 0)

	_, err = b.GetAttempt(t.Context(), small.AttemptID)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))

	placed, err := b.Place(t.Context(), b.here(small))
	require.NoError(t, err)
	require.Equal(t, []string{small.AttemptID}, placed)
}

func testOneLive(t *testing.T, b *bench) {
	first := b.Trial(t)
	first.Demand, first.Stage = berth.Demand{MemoryBytes: gib, CPUMilli: 1000}, "features" // a trial's stages run one after the other
	second := first
	second.AttemptID, second.Number, second.Stage = uuid.NewString(), 2, berth.StageMain

	for _, r := range []berth.PlacementRequest{second, first} { // in this order: the second withdraws or fences the first
		_, err := b.RequestPlacement(t.Context(), r)
		require.NoError(t, err)
	}

	token := b.put(t, first)

	_, err := b.Place(t.Context(), b.here(second))
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "%v", err)
	b.requireReserved(t, 1, 1)

	require.NoError(t, b.FinishAttempt(t.Context(), result(first, token, 1)))
	require.Greater(t, b.put(t, second), token)
	b.requireReserved(t, 1, 1)
}

func testPlacedAtOnce(t *testing.T, b *bench) {
	const callers = 12

	var (
		group    sync.WaitGroup
		requests [callers]berth.PlacementRequest
		errs     [callers]error
	)

	for i := range callers {
		requests[i] = b.ask(t, 3)
	}

	for i := range callers {
		group.Go(func() { _, errs[i] = b.Place(t.Context(), b.here(requests[i])) })
	}

	group.Wait()
	b.requireReserved(t, 6, 2)

	for _, err := range errs {
		if err != nil {
			require.Equal(t, berth.KindExhausted, berth.KindOf(err), "%v", err)
		}
	}
}
