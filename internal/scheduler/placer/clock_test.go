package placer

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// limited is a half used host, and a sweep s with max_parallel 1 whose request
// is too large for the free half. Other requests are of sweep t.
type limited struct {
	*queue

	p    *Placer
	wide berth.WaitingRequest
	n    int
}

func setupLimited(t *testing.T) *limited {
	t.Helper()

	p, f := setup(t)
	f.hosts[0].MemoryReservedBytes, f.hosts[0].Attempts = 4*gib, 1
	f.use["t"] = berth.SweepUse{State: berth.SweepRunning}

	return &limited{queue: f, p: p, wide: request("wide", 7*gib)}
}

// round decides when the wide request has waited this long, beside a small one
// of the named sweep. It returns whether the small one was placed, and whether
// the host is kept for the wide one.
func (l *limited) round(t *testing.T, waited time.Duration, running int, sweep string) (placed, kept bool) {
	t.Helper()

	l.n++
	small := request(fmt.Sprint(l.n), gib)
	small.SweepID, l.wide.Waited = sweep, waited

	l.use["s"] = berth.SweepUse{State: berth.SweepRunning, MaxParallel: 1, Running: running}
	l.waiting = []berth.WaitingRequest{l.wide, small}
	require.NoError(t, l.p.Round(t.Context()))

	return l.all()[small.AttemptID], l.p.kept["wide"].HostID != ""
}

// A request that waits for a trial of its own sweep to end does not wait for
// room: it does not go before requests that do, and no host is kept for it at
// once.
func TestRound_WaitingBehindTheOwnLimitIsNoWait(t *testing.T) {
	t.Parallel()

	const before = 15 * time.Hour

	l := setupLimited(t)

	for _, tt := range []struct {
		waited  time.Duration
		running int
		kept    bool
	}{
		{before - time.Minute, 1, false},
		{before, 1, false},
		{before + time.Second, 0, false}, // the limit lets it through
		{before + packing.DrainAfter - time.Second, 0, false},
		{before + packing.DrainAfter, 0, true},
		{before + 2*time.Hour, 1, false}, // another one of the sweep was given back to its host
		{before + 4*time.Hour, 1, false},
		{before + 4*time.Hour + time.Second, 0, true}, // as overdue as it was
		{before + 4*time.Hour, 0, true},               // the clock of the ledger was set back
		{time.Second, 0, false},                       // the sweep was resumed
		{packing.DrainAfter, 0, false},
		{packing.DrainAfter + time.Second, 0, true},
	} {
		placed, kept := l.round(t, tt.waited, tt.running, "t")
		require.Equal(t, tt.kept, kept, tt.waited)
		require.Equal(t, !tt.kept, placed, tt.waited)
	}
}

// A placer that leads again knows no more than a new one.
func TestRun_LeadsAnewWithoutOldClocks(t *testing.T) {
	t.Parallel()

	l := setupLimited(t)
	l.round(t, packing.DrainAfter, 1, "t")
	require.NoError(t, l.p.Run(t.Context()))

	placed, kept := l.round(t, 15*time.Hour, 0, "t")
	require.True(t, placed)
	require.False(t, kept)
}

// Of several requests that waited behind the limit the first trial goes first.
func TestRound_TheFirstTrialBehindTheLimitGoesFirst(t *testing.T) {
	t.Parallel()

	p, f := setup(t)

	var waiting []berth.WaitingRequest

	for i := range 9 {
		r := request(fmt.Sprint(9-i), gib)
		r.TrialNumber = 9 - i
		waiting = append(waiting, r)
	}

	for round := range 2 {
		f.use["s"] = berth.SweepUse{State: berth.SweepRunning, MaxParallel: 1, Running: 1 - round}

		f.waiting = nil
		for i, r := range waiting { // seconds are a double in the database: a few ns are noise
			r.Waited = time.Duration(i+round)*time.Minute + time.Duration(i*(1-2*round))
			f.waiting = append(f.waiting, r)
		}

		require.NoError(t, p.Round(t.Context()))
	}

	require.Equal(t, map[string]bool{"1": true}, f.all())
}
