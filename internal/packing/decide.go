package packing

import (
	"cmp"
	"slices"
	"time"

	"github.com/berthml/berth"
)

const (
	// DrainAfter is how long a request waits before a host is kept free for it.
	DrainAfter = 10 * time.Minute
	// DrainAfterExclusive is the same for a request that needs a host or device
	// for itself, which backfilling would otherwise never let happen.
	DrainAfterExclusive = time.Minute
)

// Request is an attempt that waits for a place.
type Request struct {
	AttemptID string
	SweepID   string
	Number    int // of the trial
	Demand    berth.Demand
	Expected  time.Duration // of the whole attempt; 0 = unknown
	Waited    time.Duration
}

// SweepLimit is what a sweep's owner allows.
type SweepLimit struct {
	MaxParallel int // attempts at once; 0 = no limit
	Running     int // attempts that hold a lease now
	Paused      bool
}

// Decision is the answer to one request: a placement, or why not.
type Decision struct {
	AttemptID  string
	Placed     bool
	Placement  berth.Placement
	Rejections []berth.Rejection // one for each candidate host; nil when placed; shared between decisions
	Impossible bool              // no host could ever hold it, even when empty
}

// Decide answers every request once, in the order it decided them. It does not
// change its arguments.
func Decide(hosts []berth.Host, sweeps map[string]SweepLimit, requests []Request) []Decision {
	r := &round{
		ledger:   newLedger(hosts),
		sweeps:   make(map[string]SweepLimit, len(sweeps)),
		rejected: make(map[berth.Demand][]berth.Rejection),
	}
	for id, limit := range sweeps {
		r.sweeps[id] = limit
	}

	ordered := r.order(requests)
	decisions := make([]Decision, 0, len(ordered))

	for _, request := range ordered {
		decisions = append(decisions, r.decide(request))
	}

	return decisions
}

// round is one pass over all waiting requests.
type round struct {
	ledger   *ledger
	sweeps   map[string]SweepLimit
	rejected map[berth.Demand][]berth.Rejection // demands that fit nowhere since the last placement or drain
}

func (r *round) decide(request Request) Decision {
	d := Decision{AttemptID: request.AttemptID}
	limit := r.sweeps[request.SweepID]

	if reason, ok := sweepRejection(limit); ok {
		d.Rejections = []berth.Rejection{reason}

		return d
	}

	rejections, known := r.rejected[request.Demand]
	if !known {
		placement, fresh, ok := r.ledger.place(request.Demand)
		if ok {
			limit.Running++
			r.sweeps[request.SweepID] = limit
			d.Placed, d.Placement = true, placement

			return d
		}

		rejections = fresh
		r.rejected[request.Demand] = rejections
	}

	d.Rejections = rejections
	d.Impossible = impossible(rejections)

	if !d.Impossible && overdue(request) && r.ledger.drain(rejections) {
		clear(r.rejected)
	}

	return d
}

// order sorts overdue requests first, by age, then by weight.
func (r *round) order(requests []Request) []Request {
	type weighed struct {
		Request
		overdue bool
		weight  float64
	}

	all := make([]weighed, len(requests))
	for i, request := range requests {
		all[i] = weighed{
			Request: request,
			overdue: overdue(request),
			weight:  request.Expected.Seconds() * r.ledger.dominantShare(request.Demand),
		}
	}

	slices.SortFunc(all, func(a, b weighed) int {
		switch {
		case a.overdue && !b.overdue:
			return -1
		case b.overdue && !a.overdue:
			return 1
		case a.overdue:
			return cmp.Or(cmp.Compare(b.Waited, a.Waited), cmp.Compare(a.AttemptID, b.AttemptID))
		}

		return cmp.Or(
			cmp.Compare(b.weight, a.weight),
			cmp.Compare(b.Waited, a.Waited),
			cmp.Compare(a.Number, b.Number),
			cmp.Compare(a.AttemptID, b.AttemptID),
		)
	})

	ordered := make([]Request, len(all))
	for i, w := range all {
		ordered[i] = w.Request
	}

	return ordered
}

func overdue(request Request) bool {
	if request.Demand.Exclusive {
		return request.Waited >= DrainAfterExclusive
	}

	return request.Waited >= DrainAfter
}

func sweepRejection(limit SweepLimit) (berth.Rejection, bool) {
	switch {
	case limit.Paused:
		return berth.Rejection{Dimension: berth.DimensionSweep, Reason: "the sweep takes no new trials now"}, true
	case limit.MaxParallel > 0 && limit.Running >= limit.MaxParallel:
		return berth.Rejection{
			Dimension: berth.DimensionSweep,
			Needed:    int64(limit.Running) + 1,
			Free:      int64(limit.MaxParallel),
			Reason:    "the sweep's max_parallel is reached",
		}, true
	default:
		return berth.Rejection{}, false
	}
}

func impossible(rejections []berth.Rejection) bool {
	for _, rejection := range rejections {
		if !rejection.Never {
			return false
		}
	}

	return len(rejections) > 0
}
