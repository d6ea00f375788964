// Package gputest is one test suite for every gpu.Driver: for the driver of real
// GPUs, for that driver over an invented library, and for any simulator. It
// assumes nothing about the GPUs: its demands hold on any machine with a GPU.
package gputest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
)

// patience is for steps that take well under a second.
const patience = 30 * time.Second

// Run runs the suite; open returns a driver whose life is the test's. The machine
// must have a card that works.
func Run(t *testing.T, open func(t *testing.T) gpu.Driver) {
	t.Helper()

	for name, test := range map[string]func(*testing.T, gpu.Driver){
		"inventory":        testInventory,
		"inventory again":  testInventoryAgain,
		"reading":          testReading,
		"activity":         testActivity,
		"activity goes on": testActivityGoesOn,
		"unknown card":     testUnknownCard,
		"quiet":            testQuiet,
		"canceled":         testCanceled,
		"many callers":     testManyCallers,
		"closed":           testClosed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func list(t *testing.T, d gpu.Driver) gpu.Inventory {
	t.Helper()

	inventory, err := d.Inventory(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, inventory.Cards)

	return inventory
}

// readable are the cards that have no problem.
func readable(t *testing.T, d gpu.Driver) []gpu.Card {
	t.Helper()

	var cards []gpu.Card

	for _, card := range list(t, d).Cards {
		if card.Problem == "" {
			cards = append(cards, card)
		}
	}

	require.NotEmpty(t, cards, "no card works")

	return cards
}

func testInventory(t *testing.T, d gpu.Driver) {
	seen := make(map[string]bool)

	for _, card := range list(t, d).Cards {
		require.NotEmpty(t, card.UUID)
		require.False(t, seen[card.UUID], "%s twice", card.UUID)
		require.False(t, seen[card.Index], "number %s twice", card.Index)
		seen[card.UUID], seen[card.Index] = true, true

		if card.Problem != "" {
			continue
		}

		require.NotEmpty(t, card.Model)
		require.Positive(t, card.MemoryBytes)
		require.GreaterOrEqual(t, card.Major, 0)
	}
}

func testInventoryAgain(t *testing.T, d gpu.Driver) {
	first := list(t, d)
	require.Equal(t, first, list(t, d), "nothing changed in between")
}

func testReading(t *testing.T, d gpu.Driver) {
	for _, card := range readable(t, d) {
		before := time.Now()
		reading, err := d.Read(t.Context(), card.UUID)
		require.NoError(t, err)

		require.False(t, reading.At.Before(before), "read in the past")
		require.False(t, reading.At.After(time.Now()), "read in the future")
		require.Equal(t, card.MemoryBytes, reading.TotalBytes)
		require.Equal(t, reading.TotalBytes, reading.ReservedBytes+reading.UsedBytes+reading.FreeBytes)
		require.GreaterOrEqual(t, reading.ReservedBytes, int64(0))
		require.GreaterOrEqual(t, reading.UsedBytes, int64(0))
		require.GreaterOrEqual(t, reading.FreeBytes, int64(0))

		last := 0

		for _, p := range reading.Processes {
			require.Greater(t, p.PID, last, "by ascending PID, each once")
			require.GreaterOrEqual(t, p.Bytes, int64(0))
			require.LessOrEqual(t, p.Bytes, reading.TotalBytes)

			last = p.PID
		}
	}
}

// requireShares requires values from 0 to 1, all 0 where they cannot be measured.
func requireShares(t *testing.T, a gpu.Activity) (known bool) {
	t.Helper()

	most := 1.0
	if a.From.IsZero() {
		most = 0
	}

	for _, share := range []float64{a.SMActivity, a.Tensor, a.DRAMBandwidth} {
		require.GreaterOrEqual(t, share, 0.0)
		require.LessOrEqual(t, share, most)
	}

	return most > 0
}

func testActivity(t *testing.T, d gpu.Driver) {
	for _, card := range readable(t, d) {
		before := time.Now()
		activity, err := d.Activity(t.Context(), card.UUID)
		require.NoError(t, err)
		require.False(t, activity.To.After(time.Now()))

		if !requireShares(t, activity) {
			continue
		}

		require.Greater(t, activity.To.Sub(activity.From), 100*time.Millisecond)
		require.Less(t, before.Sub(activity.From), patience, "began long before it was asked for")
	}
}

func testActivityGoesOn(t *testing.T, d gpu.Driver) {
	for _, card := range readable(t, d) {
		first, err := d.Activity(t.Context(), card.UUID)
		require.NoError(t, err)

		if !requireShares(t, first) {
			continue
		}

		// At once again: the same value, or the next one without a gap.
		var next gpu.Activity

		require.Eventually(t, func() bool {
			next, err = d.Activity(t.Context(), card.UUID)
			require.NoError(t, err)
			requireShares(t, next)

			return !next.From.Equal(first.From)
		}, patience, 10*time.Millisecond)
		require.True(t, next.From.Equal(first.To), "%s to %s, then from %s", first.From, first.To, next.From)
	}
}

func testUnknownCard(t *testing.T, d gpu.Driver) {
	for _, uuid := range []string{"GPU-99999999-9999-9999-9999-999999999999", "MIG-99999999-9999-9999-9999-999999999999", "no card", ""} {
		_, err := d.Read(t.Context(), uuid)
		require.Equal(t, berth.KindNotFound, berth.KindOf(err), "%v", err)
		require.ErrorContains(t, err, fmt.Sprintf("%q", uuid))

		_, err = d.Activity(t.Context(), uuid)
		require.Equal(t, berth.KindNotFound, berth.KindOf(err), "%v", err)
	}

	require.NotEmpty(t, readable(t, d))
}

// testQuiet: an idle GPU has no event, and the wait ends with its context. A
// machine without events reports that.
func testQuiet(t *testing.T, d gpu.Driver) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()

	event, err := d.WaitEvent(ctx)
	require.Error(t, err, "%+v", event)
	require.True(t, errors.Is(err, context.DeadlineExceeded) || errors.Is(err, gpu.ErrUnsupported), "%v", err)
	require.Less(t, len(strings.Split(err.Error(), "\n")), 20)
}

func testCanceled(t *testing.T, d gpu.Driver) {
	card := readable(t, d)[0]
	reason := errors.New("the host drains") //nolint:err113 // a cause like any other

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)

	for name, err := range every(ctx, d, card.UUID) {
		require.ErrorIs(t, err, reason, name)
	}

	_, err := d.Read(t.Context(), card.UUID)
	require.NoError(t, err, "the driver goes on")
}

// every calls each method and returns the errors by its name.
func every(ctx context.Context, d gpu.Driver, uuid string) map[string]error {
	found := make(map[string]error)
	_, found["Inventory"] = d.Inventory(ctx)
	_, found["Read"] = d.Read(ctx, uuid)
	_, found["Activity"] = d.Activity(ctx, uuid)
	_, found["WaitEvent"] = d.WaitEvent(ctx)

	return found
}

func testManyCallers(t *testing.T, d gpu.Driver) {
	cards := readable(t, d)

	var callers sync.WaitGroup

	errs := make(chan error, 1000)

	for i := range 20 {
		callers.Go(func() {
			card := cards[i%len(cards)]

			_, err := d.Read(t.Context(), card.UUID)
			errs <- err

			_, err = d.Activity(t.Context(), card.UUID)
			errs <- err

			_, err = d.Inventory(t.Context())
			errs <- err
		})
	}

	callers.Wait()
	close(errs)

	for err := range errs {
		require.NoError(t, err)
	}
}

func testClosed(t *testing.T, d gpu.Driver) {
	card := readable(t, d)[0]

	require.NoError(t, d.Close())
	require.NoError(t, d.Close(), "closing twice is closing once")

	for name, err := range every(t.Context(), d, card.UUID) {
		require.Equal(t, berth.KindConflict, berth.KindOf(err), "%s: %v", name, err)
	}
}
