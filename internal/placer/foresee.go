package placer

import (
	"maps"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/forecast"
	"github.com/berthml/berth/internal/packing"
)

// Foresee says of each request of a queue, by attempt, when it is expected to start. It is
// for people, and no part of a round: it decides as a round does on what the ledger says. Of
// what the leader alone knows it takes that a request is overdue when a host is kept free
// for it, or when it waited for long and its sweep has no limit that it may have been behind.
func Foresee(f berth.Foresight) map[string]berth.ExpectedStart {
	starts := make(map[string]berth.ExpectedStart)
	queue := f.Queue
	queue.Waiting = nil

	for _, w := range f.Queue.Waiting {
		switch {
		case !queue.Sweeps[w.SweepID].TakesTrials():
			starts[w.AttemptID] = berth.ExpectedStart{Unknown: berth.StartSweepInactive}
		case w.Blocked != "":
			starts[w.AttemptID] = berth.ExpectedStart{Unknown: berth.StartBlocked}
		default:
			queue.Waiting = append(queue.Waiting, w)
		}
	}

	asked, _ := requests(queue, func(w berth.WaitingRequest) standing {
		s := standing{waited: w.Waited, kept: kept{place: packing.Place(w.Kept)}}

		switch limited := queue.Sweeps[w.SweepID].MaxParallel > 0; {
		case limited && w.Kept == berth.KeptPlace{}:
			s.waited = 0
		case limited: // how much of the rest was behind the limit is not known: its turn is not over
			s.waited = min(w.Waited, packing.DrainAfter)
		}

		return s
	})

	w := forecast.World{Hosts: queue.Hosts, Sweeps: limits(queue.Sweeps), More: make(map[string]int)}
	for id, use := range queue.Sweeps {
		w.More[id] = use.Left
	}

	for _, r := range asked {
		w.Requests = append(w.Requests, forecast.Request{Request: r, Takes: f.Times[r.SweepID].Of(r.ShapeKey).Each()})
	}

	for _, a := range f.Running {
		w.Running = append(w.Running, forecast.Running{
			SweepID: a.SweepID, HostID: a.HostID, DeviceID: a.DeviceID, Demand: a.Demand, Activity: a.Activity,
			Left: a.Left(f.Times[a.SweepID].Of(a.ShapeKey)), Silent: a.Silent,
		})
	}

	maps.Copy(starts, forecast.Starts(w))

	return starts
}
