package placer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
)

// minutes is how long each trial of a sweep takes.
func minutes(n int) berth.ShapeTimes {
	d := time.Duration(n) * time.Minute

	return berth.ShapeTimes{"": {Ended: 3, Mean: d, Lower: d, Upper: d, Low: d, High: d}}
}

func TestForesee(t *testing.T) {
	t.Parallel()

	_, f := setup(t)
	h := f.hosts[0]
	h.MemoryReservedBytes, h.CPUMilliReserved, h.Attempts = 7*gib, 1000, 1

	paused, blocked, wide := request("paused", gib), request("blocked", gib), request("wide", 6*gib)
	paused.SweepID, blocked.Blocked, wide.SweepID = "p", "attempt 1 of the trial is still open on host a", "w"
	wide.Waited = packing.DrainAfter
	foresight := berth.Foresight{
		Queue: berth.Queue{
			Hosts: []berth.Host{h}, Waiting: []berth.WaitingRequest{paused, blocked, wide, request("a", gib), request("huge", 9*gib)},
			Sweeps: map[string]berth.SweepUse{"p": {State: berth.SweepPaused}, "s": {State: berth.SweepRunning}, "w": {State: berth.SweepRunning}},
		},
		Running: []berth.RunningAttempt{{SweepID: "s", HostID: "h", Demand: berth.Demand{MemoryBytes: 7 * gib, CPUMilli: 1000}, Ran: 4 * time.Minute}},
		Times:   map[string]berth.ShapeTimes{"s": minutes(10), "w": minutes(30)},
	}
	before := foresight.Queue.Waiting[0]

	in := func(m int) berth.ExpectedStart {
		return berth.ExpectedStart{Min: time.Duration(m) * time.Minute, Max: time.Duration(m) * time.Minute}
	}

	require.Equal(t, map[string]berth.ExpectedStart{
		"paused":  {Unknown: berth.StartSweepInactive},
		"blocked": {Unknown: berth.StartBlocked},
		"wide":    in(6),
		"a":       in(6), // beside it: the host is kept free for the wide one until then
		"huge":    {Unknown: berth.StartNothingFits},
	}, Foresee(foresight))
	require.Equal(t, before, foresight.Queue.Waiting[0])

	foresight.Queue.Sweeps["w"] = berth.SweepUse{State: berth.SweepRunning, MaxParallel: 1}
	require.Equal(t, in(0), Foresee(foresight)["a"], "what may have been behind its sweep's limit is not overdue")

	foresight.Queue.Waiting[2].Kept = berth.KeptPlace{HostID: "h"}
	require.Equal(t, in(6), Foresee(foresight)["a"], "the ledger says that the host is kept")

	foresight.Times["s"] = nil
	require.Equal(t, berth.ExpectedStart{Unknown: berth.StartTimeUnknown}, Foresee(foresight)["wide"])

	foresight.Running[0].Ended = true
	require.Equal(t, in(0), Foresee(foresight)["wide"], "its host is about to say that it has ended")
}

// Of what a request waited its sweep's limit may have been the reason for most: that a host is kept
// for it says that its turn has begun, and not that it is over.
func TestForesee_KeptAfterALongWaitBehindTheLimit(t *testing.T) {
	t.Parallel()

	_, f := setup(t)
	h := f.hosts[0]
	h.MemoryReservedBytes, h.CPUMilliReserved, h.Attempts = 4*gib, 1000, 1

	wide, small := request("wide", 7*gib), request("small", gib)
	wide.SweepID, wide.Kept, small.SweepID = "w", berth.KeptPlace{HostID: "h"}, "s"
	wide.Waited = 100 * time.Minute // of which 88 were behind the limit

	starts := Foresee(berth.Foresight{
		Queue: berth.Queue{Hosts: []berth.Host{h}, Waiting: []berth.WaitingRequest{wide, small}, Sweeps: map[string]berth.SweepUse{
			"w": {State: berth.SweepRunning, MaxParallel: 1}, "s": {State: berth.SweepRunning},
		}},
		Running: []berth.RunningAttempt{{SweepID: "s", HostID: "h", Demand: berth.Demand{MemoryBytes: 4 * gib, CPUMilli: 1000}}},
		Times:   map[string]berth.ShapeTimes{"s": minutes(30), "w": minutes(30)},
	})
	require.GreaterOrEqual(t, starts["small"].Max, 30*time.Minute)
}
