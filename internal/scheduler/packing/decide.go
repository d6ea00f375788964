package packing

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
)

const (
	// DrainAfter is how long a request waits before a host is kept free for it.
	DrainAfter = 10 * time.Minute
	// DrainAfterExclusive is the same for a request that needs a host or device
	// for itself, which backfilling would otherwise never let happen.
	DrainAfterExclusive = time.Minute
	// firstTurn is for how long a host is kept free at first. Then it is open to
	// all for as long, and each further turn is twice as long: a neighbour that
	// runs for days costs others at most half of the host's time, and a request
	// behind neighbours that run for hours is placed in the turn that outlasts
	// them. It is longer than most trials of small jobs.
	firstTurn = time.Hour
	// longestTurn bounds a turn: for longer than a day no host stands still.
	longestTurn = 24 * time.Hour
	// keptFraction is the part of the hosts that is kept free at once, at least
	// one: a long queue must not stop small requests on every machine.
	keptFraction = 4
	// unknownRun is the run time of an unmeasured shape: longer than any, so
	// that it comes first and others need not wait for its footprint at the
	// end.
	unknownRun = 7 * 24 * time.Hour
)

// Request is an attempt that waits for a place.
type Request struct {
	AttemptID string
	SweepID   string
	Number    int           // of the trial
	Demands   berth.Demands // its need, by the class of device that it can use
	Expected  time.Duration // of the whole attempt; 0 = unknown
	Waited    time.Duration // for room: not behind the sweep's own limit
	Kept      Place         // kept free for it by the last Decide; zero = none

	FailedHosts []string // where earlier attempts of the trial failed through no fault of its own: the last choice
	ShapeKey    string
	Measures    bool     // the first of its shape on a GPU, whose demand there is a guess: others of the shape wait for it
	Unmeasured  bool     // it waits for an attempt that measures its shape, and runs
	Datasets    []string // the data sets that the host must have, as NAME or NAME@VERSION
	Lacking     []string // hosts that would pull its image, or fetch outputs of earlier stages, first
	Unable      []string // hosts that are known to lack its image, and cannot pull it
	SecretKeys  []string // public parts of the keys that the host must have
	Checkpoint  string   // the host that alone has the checkpoint it would go on from; empty = none
	Stored      bool     // its checkpoint is in the store, or will be in a while
	Holders     []string // hosts that have its stored checkpoint in their directory
	Inputs      bool     // it reads outputs of earlier stages
	InputHosts  []string // hosts that have all of them, or can fetch them
	Shared      bool     // others wait for what it makes
	CPUsGiven   bool     // the user said how many cores it gets
	Away        bool     // an earlier attempt of the trial is one of its sweep's Away

	avoid []string        // hosts of FailedHosts that lack the image while another host may hold it
	on    []*berth.Demand // Demands, by index in ledger.classes; nil = it cannot use the class
	size  int             // requests that need the same on all classes have one number
}

// hasClass reports whether a host, also a former one, offers a class that the request can use.
func (r *Request) hasClass() bool {
	return slices.ContainsFunc(r.on, func(d *berth.Demand) bool { return d != nil })
}

// Place is a host, or one of its GPUs.
type Place struct{ HostID, DeviceID string }

// SweepLimit is the limit set by a sweep's owner.
type SweepLimit struct {
	MaxParallel int // attempts at once; 0 = no limit
	Running     int // attempts that hold a lease now
	Away        int // attempts that a host holds which does not answer, and that are to be run again: not in Running
	Paused      bool

	waiting int // requests with a sure place, on the host kept free for them
}

// Decision is the answer to one request: a placement, or why not.
type Decision struct {
	AttemptID  string
	Placed     bool
	Placement  berth.Placement
	Impossible bool  // no host could ever hold it, even when empty, and no former host either
	Kept       Place // takes nothing younger until this request fits; zero = none

	request *Request
	ledger  *ledger         // as the round left it
	sweep   berth.Rejection // why no host was looked at; zero = they were
	former  *site           // the only host that could hold it, and is gone; nil = none
}

// Limited reports whether its sweep, or the run that measures its shape, keeps the
// request from a place: no host was looked at.
func (d Decision) Limited() bool { return d.sweep.Dimension != "" }

// Decide answers every request once, in the order it decided them. It does not
// change its arguments.
func Decide(hosts []berth.Host, sweeps map[string]SweepLimit, requests []Request) []Decision {
	requests = slices.Clone(requests)
	r := &round{
		ledger: newLedger(hosts),
		sweeps: make(map[string]SweepLimit, len(sweeps)),
		full:   make(map[need]bool),

		measures: make(map[string]bool),
	}
	for _, request := range requests {
		if request.Measures {
			r.measures[request.ShapeKey] = false
		}
	}

	r.ledger.toMeasure = len(r.measures)
	maps.Copy(r.sweeps, sweeps)
	r.ledger.resolve(requests)

	decisions := make([]Decision, 0, len(requests))
	for _, i := range r.order(requests) {
		decisions = append(decisions, r.decide(&requests[i]))
	}

	return decisions
}

// round is one pass over all waiting requests.
type round struct {
	ledger   *ledger
	sweeps   map[string]SweepLimit
	measures map[string]bool // shapes that are to be measured; true = an attempt placed in this round does
	full     map[need]bool   // demands that fit nowhere; room only shrinks in a round
}

// need identifies the part of a request that decides whether it fits somewhere.
type need struct {
	size    int
	mounts  string // data sets and keys that the host must have, and hosts with its inputs
	sweep   string // where a host is cordoned for this sweep alone; else empty
	attempt string // where it avoids a host; else empty
}

func (r *round) decide(request *Request) Decision {
	d := Decision{AttemptID: request.AttemptID, request: request, ledger: r.ledger}
	limit := r.sweeps[request.SweepID]

	if d.sweep = sweepRejection(limit, request.Away); d.Limited() {
		return d
	}

	if request.Unmeasured || request.Measures && r.measures[request.ShapeKey] {
		d.sweep = berth.Rejection{Dimension: berth.DimensionTrial, Reason: "what trials like it hold of a GPU was never measured; it waits for the first of them to train for a while"}

		return d
	}

	needed := need{size: request.size, mounts: strings.Join(request.Datasets, "/") + " " + strings.Join(request.SecretKeys, "/")}
	if request.Inputs {
		needed.mounts += " " + strings.Join(request.InputHosts, "/")
	}

	if request.avoid = r.ledger.avoid(request); len(request.avoid) > 0 {
		needed.attempt = request.AttemptID
	}

	if r.ledger.cordoned[request.SweepID] {
		needed.sweep = request.SweepID
	}

	if !r.full[needed] {
		if d.Placement, d.Placed = r.ledger.place(request); d.Placed {
			if request.Measures {
				r.measures[request.ShapeKey] = true
				r.ledger.toMeasure--
			}

			limit.Running++
			r.sweeps[request.SweepID] = limit.returned(request.Away)

			return d
		}

		r.full[needed] = true
	}

	d.former, d.Impossible = r.ledger.impossible(request)

	if !d.Impossible && overdue(request) {
		d.Kept = r.ledger.keepFree(request)
	}

	if d.Kept != (Place{}) { // or a younger sibling takes the sweep's free place, and the host is no longer kept
		limit.waiting++
		r.sweeps[request.SweepID] = limit.returned(request.Away)
	}

	return d
}

// returned is the limit once the place that was kept for an away attempt is
// another's.
func (l SweepLimit) returned(away bool) SweepLimit {
	if away {
		l.Away = max(l.Away-1, 0)
	}

	return l
}

// order returns the indexes of requests: overdue ones first, by age, then those whose output
// others wait for, then by weight. When two asked within a second, the trial with the lower number comes first: a
// search begins with the corners of its space (search.cornersFor).
func (r *round) order(requests []Request) []int {
	type key struct {
		index   int
		overdue bool
		shared  bool
		weight  float64
		waited  time.Duration
	}

	largest := r.ledger.largest()
	keys := make([]key, len(requests))

	for i := range requests {
		request := &requests[i]
		keys[i] = key{
			index: i, overdue: overdue(request), shared: request.Shared, waited: request.Waited.Truncate(time.Second),
			weight: cmp.Or(request.Expected, unknownRun).Seconds() * largest.dominantShare(request),
		}
	}

	slices.SortFunc(keys, func(a, b key) int {
		switch {
		case a.overdue != b.overdue:
			if a.overdue {
				return -1
			}

			return 1
		case !a.overdue && a.shared != b.shared:
			if a.shared {
				return -1
			}

			return 1
		case !a.overdue && a.weight != b.weight:
			return cmp.Compare(b.weight, a.weight)
		case a.waited != b.waited:
			return cmp.Compare(b.waited, a.waited)
		}

		x, y := &requests[a.index], &requests[b.index]

		return cmp.Or(cmp.Compare(x.Number, y.Number), cmp.Compare(x.AttemptID, y.AttemptID))
	})

	ordered := make([]int, len(keys))
	for i, k := range keys {
		ordered[i] = k.index
	}

	return ordered
}

func overdue(request *Request) bool { return overdueFor(request) >= 0 }

// overdueFor is how long a request has been overdue; negative = it is not.
func overdueFor(request *Request) time.Duration {
	alone := len(request.Demands) > 0 // on all classes that it can use
	for _, d := range request.Demands {
		alone = alone && (d.Exclusive || d.ExclusiveDevice)
	}

	if alone {
		return request.Waited - DrainAfterExclusive
	}

	return request.Waited - DrainAfter
}

// turnOf returns the length of the turn of an overdue request, its number from 0, and
// whether the host is kept free in it now or is open to all.
func turnOf(request *Request) (turn time.Duration, number int, kept bool) {
	turn = firstTurn
	since := overdueFor(request)

	for ; since >= 2*turn; turn = min(2*turn, longestTurn) {
		since -= 2 * turn
		number++
	}

	return turn, number, since < turn
}
