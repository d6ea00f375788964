package forecast_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/forecast"
	"github.com/berthml/berth/internal/packing"
	_ "github.com/berthml/berth/internal/testseed"
)

// reasons are all that a start is unknown for in a replay.
var reasons = []berth.StartUnknown{
	berth.StartNothingFits, berth.StartHostAway, berth.StartNoEndHelps, berth.StartTimeUnknown, berth.StartFarBack, berth.StartFarAhead,
}

func drawTimes(t *rapid.T, what string) berth.RunTime {
	least := time.Duration(rapid.IntRange(0, 20).Draw(t, what+" min")) * time.Minute

	return berth.RunTime{
		Known: rapid.IntRange(0, 5).Draw(t, what+" known") > 0,
		Min:   least, Max: least + time.Duration(rapid.IntRange(0, 20).Draw(t, what+" more"))*time.Minute,
	}
}

func drawWorld(t *rapid.T) forecast.World {
	w := forecast.World{
		Sweeps: map[string]packing.SweepLimit{
			"free":    {},
			"limited": {MaxParallel: rapid.IntRange(1, 4).Draw(t, "max parallel"), Away: rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "away")},
		},
		More: map[string]int{"free": rapid.IntRange(0, 30).Draw(t, "more")},
	}

	for i := range rapid.IntRange(0, 3).Draw(t, "hosts") {
		h := host(fmt.Sprint("h", i), rapid.Int64Range(1, 6).Draw(t, "slots"))
		h.State = rapid.SampledFrom([]berth.HostState{berth.HostReady, berth.HostReady, berth.HostReady, berth.HostLost, berth.HostDraining}).Draw(t, "state")
		h.MemoryFreeBytes = h.MemoryBytes / 4 * rapid.SampledFrom([]int64{4, 4, 4, 2, 0}).Draw(t, "free")
		w.Hosts = append(w.Hosts, h)
	}

	for range rapid.IntRange(0, 8).Draw(t, "running") {
		for i := range w.Hosts {
			sweep := rapid.SampledFrom([]string{"free", "limited"}).Draw(t, "sweep")
			if h := w.Hosts[i]; h.MemoryReservedBytes+gib <= h.MemoryBytes && rapid.Bool().Draw(t, "there") {
				hold(&w, i, sweep, 1, drawTimes(t, "left"))
				w.Running[len(w.Running)-1].Silent = rapid.IntRange(0, 9).Draw(t, "silent") == 0

				limit := w.Sweeps[sweep]
				limit.Running++
				w.Sweeps[sweep] = limit
			}
		}
	}

	kinds := []struct {
		sweep string
		slots int64
		takes berth.RunTime
	}{
		{"free", 1, drawTimes(t, "small")}, {"free", rapid.Int64Range(1, 7).Draw(t, "size"), drawTimes(t, "wide")}, {"limited", 2, drawTimes(t, "limited")},
	}

	for i := range rapid.IntRange(0, 25).Draw(t, "requests") {
		k := rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")
		r := request(kinds[k].sweep, i, kinds[k].slots, kinds[k].takes)
		r.ShapeKey = fmt.Sprint(k)
		r.Waited = time.Duration(rapid.IntRange(0, 15).Draw(t, "longest"))*time.Minute - time.Duration(i)*time.Second
		r.Waited = max(r.Waited, 0)
		r.Asked = r.Waited
		w.Requests = append(w.Requests, r)
	}

	return w
}

func TestStarts_Properties(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		before := fmt.Sprint(w)
		starts := forecast.Starts(w)

		require.Equal(t, before, fmt.Sprint(w), "the world is as it was")
		require.Equal(t, starts, forecast.Starts(w), "deterministic")
		require.Len(t, starts, len(w.Requests))

		turned := w
		turned.Requests = slices.Clone(w.Requests)
		slices.Reverse(turned.Requests)

		if w.More["free"] == 0 { // what a later trial asks for is the last of its sweep
			require.Equal(t, starts, forecast.Starts(turned), "in any order of input")
		}

		largest, never := int64(0), []berth.StartUnknown{berth.StartNothingFits}
		for _, h := range w.Hosts {
			largest = max(largest, h.MemoryBytes)
		}

		if !slices.ContainsFunc(w.Hosts, func(h berth.Host) bool { return h.State == berth.HostReady }) {
			never = append(never, berth.StartHostAway)
		}

		for _, r := range w.Requests {
			s := starts[r.AttemptID]
			require.GreaterOrEqual(t, s.Min, time.Duration(0), "never before now")
			require.GreaterOrEqual(t, s.Max, s.Min)

			if s.Unknown != "" {
				require.Contains(t, reasons, s.Unknown)
				require.Equal(t, berth.ExpectedStart{Unknown: s.Unknown}, s, "a reason or a range")
			}

			if r.Demands[berth.ClassCPU].MemoryBytes > largest {
				require.Contains(t, never, s.Unknown, "it fits nowhere")
			}
		}

		// What the placer places now starts now.
		asked := make([]packing.Request, len(w.Requests))
		for i, r := range w.Requests {
			asked[i] = r.Request
		}

		for _, d := range packing.Decide(w.Hosts, w.Sweeps, asked) {
			if d.Placed {
				require.Equal(t, berth.ExpectedStart{}, starts[d.AttemptID])
			}
		}
	})
}

// Of equal requests the one that has waited longer starts no later, by both ends of its range.
func TestStarts_MonotoneAmongEquals(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		starts := forecast.Starts(w)
		of := make(map[string][]forecast.Request)

		for _, r := range w.Requests {
			of[r.ShapeKey] = append(of[r.ShapeKey], r)
		}

		for _, key := range slices.Sorted(maps.Keys(of)) {
			equal := of[key]
			slices.SortStableFunc(equal, func(a, b forecast.Request) int {
				if a.Waited != b.Waited {
					return int(b.Waited - a.Waited)
				}

				return a.Number - b.Number
			})

			for i := 1; i < len(equal); i++ {
				a, b := starts[equal[i-1].AttemptID], starts[equal[i].AttemptID]

				if b.Unknown != "" {
					continue
				}

				require.Empty(t, a.Unknown, "%s behind %s", equal[i].AttemptID, equal[i-1].AttemptID)
				require.LessOrEqual(t, a.Min, b.Min)
				require.LessOrEqual(t, a.Max, b.Max)
			}
		}
	})
}

// With slots for all alike, and each attempt as long as one between the ends of its range, each start is in its range.
func TestStarts_HoldForTrialsBetweenTheQuartiles(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 12).Draw(t, "slots")
		each := berth.RunTime{Known: true, Min: time.Duration(rapid.IntRange(1, 600).Draw(t, "min")) * time.Second}
		each.Max = each.Min + time.Duration(rapid.IntRange(0, 600).Draw(t, "spread"))*time.Second
		took := rapid.Int64Range(int64(each.Min), int64(each.Max))

		w := forecast.World{Hosts: []berth.Host{host("a", int64(slots))}}
		places := make([]time.Duration, slots) // when each is free

		for i := range places {
			ran := time.Duration(rapid.Int64Range(0, int64(each.Min)).Draw(t, "ran"))
			hold(&w, 0, "s", 1, berth.RunTime{Known: true, Min: each.Min - ran, Max: each.Max - ran})
			places[i] = time.Duration(took.Draw(t, "took")) - ran
		}

		for i := range rapid.IntRange(0, 40).Draw(t, "requests") {
			w.Requests = append(w.Requests, request("s", i, 1, each))
		}

		starts := forecast.Starts(w)

		for _, r := range w.Requests {
			first := slices.Index(places, slices.Min(places))
			s := starts[r.AttemptID]
			require.Empty(t, s.Unknown)
			require.GreaterOrEqual(t, places[first], s.Min)
			require.LessOrEqual(t, places[first], s.Max)

			places[first] += time.Duration(took.Draw(t, "took"))
		}
	})
}
