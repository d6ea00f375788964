package packing_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// A neighbour that runs for days must not close its host to others for as long:
// the host is kept free for an hour, then open for an hour, then two, and so on.
func TestDecide_KeepsAHostFreeInTurns(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		demand berth.Demand
		after  time.Duration
	}{
		"exclusive": {berth.Demand{MemoryBytes: 4 * gib, CPUMilli: 100, Exclusive: true}, packing.DrainAfterExclusive},
		"large":     {berth.Demand{MemoryBytes: 4 * gib, CPUMilli: 100}, packing.DrainAfter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			busy := host("a", 4, 4)
			busy.MemoryReservedBytes, busy.CPUMilliReserved, busy.Attempts = gib, 1000, 1

			for waited, kept := range map[time.Duration]bool{
				-time.Second: false, 0: true, time.Hour - 1: true, time.Hour: false, 2*time.Hour - 1: false,
				2 * time.Hour: true, 4*time.Hour - 1: true, 4 * time.Hour: false, 6*time.Hour - 1: false, 6 * time.Hour: true,
				62 * time.Hour: true, 86*time.Hour - 1: true, 86 * time.Hour: false, 110*time.Hour - 1: false, 110 * time.Hour: true,
			} {
				old := packing.Request{AttemptID: "old", SweepID: "b", Demands: needs(tt.demand), Waited: tt.after + waited, Kept: packing.Place{HostID: "a"}}
				younger := packing.Request{AttemptID: "younger", SweepID: "b", Demands: needs(tt.demand), Waited: tt.after + min(waited, time.Minute) - time.Second}
				small := of("a", ask("small", 1, 1))

				decisions := packing.Decide([]berth.Host{busy}, nil, []packing.Request{small, old, younger})
				_, placed := where(decisions)["small"]
				require.Equal(t, !kept, placed, waited)

				for _, d := range decisions {
					switch {
					case d.AttemptID == "small" && kept:
						require.Contains(t, packing.Explain(d.Rejections(1)[0]), "kept free for an attempt that is overdue, for ")
						require.Contains(t, packing.Explain(d.Rejections(1)[0]), " at most; then it is open for as long")
					case d.AttemptID == "old" && kept:
						require.Equal(t, packing.Place{HostID: "a"}, d.Kept)
					default:
						require.Zero(t, d.Kept, "a younger one does not take the turn over")
					}
				}
			}
		})
	}
}

// However many small ones come, a large request is placed once it is overdue and the
// attempts running then have ended. Where every run takes longer than the first turn, a
// later one suffices.
func TestDecide_NothingStarves(t *testing.T) {
	t.Parallel()

	const short, long, every = 5 * time.Minute, 3 * time.Hour, 20 * time.Second

	type run struct {
		place berth.Placement
		end   time.Duration
	}

	for name, tt := range map[string]struct {
		demand       berth.Demand
		runs, within time.Duration
	}{
		"memory":           {berth.Demand{MemoryBytes: 4 * gib, CPUMilli: 100}, short, packing.DrainAfter + short + 2*every},
		"CPU":              {berth.Demand{MemoryBytes: gib, CPUMilli: 4000}, short, packing.DrainAfter + short + 2*every},
		"device":           {berth.Demand{MemoryBytes: gib, CPUMilli: 100, DeviceBytes: 2 * gib}, short, packing.DrainAfter + short + 2*every},
		"exclusive":        {berth.Demand{MemoryBytes: 4 * gib, CPUMilli: 100, Exclusive: true}, short, packing.DrainAfterExclusive + short + 2*every},
		"alone on device":  {berth.Demand{MemoryBytes: gib, CPUMilli: 100, DeviceBytes: gib, ExclusiveDevice: true}, short, packing.DrainAfterExclusive + short + 2*every},
		"behind long runs": {berth.Demand{MemoryBytes: 4 * gib, CPUMilli: 100, Exclusive: true}, long, 5*long + time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var runs []run

			large := packing.Request{AttemptID: "large", Demands: needs(tt.demand)}

			for now := -tt.runs; ; now += every { // the large one comes when the small ones have spread
				runs = slices.DeleteFunc(runs, func(r run) bool { return r.end <= now })
				busy := withDevices(host("a", 4, 4), 2, 2)

				for _, r := range runs {
					busy.MemoryReservedBytes += gib
					busy.CPUMilliReserved += 1000
					busy.Attempts++

					dev := &busy.Devices[slices.IndexFunc(busy.Devices, func(d berth.Device) bool { return d.ID == r.place.DeviceID })]
					dev.ReservedBytes += gib
					dev.ContextsReserved++
					dev.Attempts++
				}

				requests := []packing.Request{but(onGPU("small", 1), func(d *berth.Demand) { d.CPUMilli = 1000 })}
				if large.Waited = now; now >= 0 {
					requests = append(requests, large)
				}

				require.Less(t, now, tt.within, "still not placed")

				for _, d := range packing.Decide([]berth.Host{busy}, nil, requests) {
					switch {
					case d.AttemptID == "large" && d.Placed:
						require.Greater(t, now, every, "the small ones left it no room")

						return
					case d.AttemptID == "large":
						large.Kept = d.Kept
					case d.Placed:
						runs = append(runs, run{d.Placement, now + tt.runs})
					}
				}
			}
		})
	}
}
