package forecast

import (
	"fmt"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
)

// Most is how many requests get an answer: those that are decided first.
const Most = 200

// Running is what holds a part of a host now.
type Running struct {
	SweepID  string
	HostID   string
	DeviceID string // empty = it holds no GPU
	Demand   berth.Demand
	Activity int64         // of the GPU, booked
	Left     berth.RunTime // until its end
	Silent   bool          // its host does not answer for it: when it ends nobody knows
}

// Request is an attempt that waits, and how long it takes once it runs.
type Request struct {
	packing.Request

	Takes berth.RunTime
}

// World is what a replay begins with.
type World struct {
	Hosts    []berth.Host
	Sweeps   map[string]packing.SweepLimit
	More     map[string]int // trials by sweep that have not asked for a place yet
	Requests []Request
	Running  []Running
}

// Starts says of each request, by attempt, when it is expected to start. Where the two
// replays disagree the range holds both. It does not change the world.
func Starts(w World) map[string]berth.ExpectedStart {
	starts := make(map[string]berth.ExpectedStart, len(w.Requests))
	w.Hosts = quiet(w.Hosts)
	w.Requests = w.possible(starts)
	first := w.first(starts)

	if len(first) == 0 {
		return starts
	}

	short, long := newReplay(w, first, false), newReplay(w, first, true)
	short.run()
	long.run()

	for i := range first {
		id := first[i].AttemptID

		last, known := long.starts[id]
		if !known {
			starts[id] = berth.ExpectedStart{Unknown: long.unknown(id)}

			continue
		}

		soon := short.starts[id] // zero where that replay came to no end: at any time
		starts[id] = berth.ExpectedStart{Min: min(soon, last), Max: max(soon, last)}
	}

	return starts
}

// first are the requests that are decided first. The others are too far back.
func (w World) first(starts map[string]berth.ExpectedStart) []Request {
	if len(w.Requests) <= Most {
		return w.Requests
	}

	asked := make([]packing.Request, len(w.Requests))
	for i, r := range w.Requests {
		asked[i] = r.Request
	}

	order := packing.Order(w.Hosts, asked)
	first := make([]Request, Most)

	for n, i := range order {
		if n < Most {
			first[n] = w.Requests[i]
		} else {
			starts[w.Requests[i].AttemptID] = berth.ExpectedStart{Unknown: berth.StartFarBack}
		}
	}

	return first
}

// possible are the requests that would fit if all that runs had ended. What finds no room
// beside the others on empty hosts is asked for alone, once for all that ask for the same.
func (w World) possible(starts map[string]berth.ExpectedStart) []Request {
	idle := emptied(w.Hosts)
	asked, together := make([]packing.Request, len(w.Requests)), make(map[string]bool, len(w.Requests))

	for i, r := range w.Requests {
		asked[i] = r.Request
		asked[i].Kept, asked[i].Vain, asked[i].Waited = packing.Place{}, nil, 0
	}

	for _, d := range packing.Decide(idle, nil, asked) {
		together[d.AttemptID] = d.Placed
	}

	alone := make(map[string]packing.Decision)
	possible := make([]Request, 0, len(asked))

	for i, r := range asked {
		if !together[r.AttemptID] {
			like := r
			like.AttemptID, like.Number, like.Asked = "", 0, 0
			key := fmt.Sprint(like)

			d, known := alone[key]
			if !known {
				d = packing.Decide(idle, nil, []packing.Request{r})[0]
				alone[key] = d
			}

			if !d.Placed {
				starts[r.AttemptID] = berth.ExpectedStart{Unknown: whyNever(d)}

				continue
			}
		}

		possible = append(possible, w.Requests[i])
	}

	return possible
}

// whyNever says why a request does not fit hosts on which nothing runs.
func whyNever(d packing.Decision) berth.StartUnknown {
	if d.Impossible {
		return berth.StartNothingFits
	}

	for _, r := range d.Rejections(0) {
		if r.Dimension == berth.DimensionState && !r.Never {
			return berth.StartHostAway
		}
	}

	return berth.StartNoEndHelps
}
