package forecast

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
)

const (
	// grain is the part, as 1/n, of how long an attempt takes within which ends count as
	// one: each costs a decision.
	grain = 16
	// shortest is the least such time.
	shortest = time.Second
	// whileKept is after how long it is decided again without an end while a host is kept
	// free: it is kept in turns of an hour and more.
	whileKept = 30 * time.Minute
	// work bounds a replay: the cost of all its decisions. 200 requests are decided on 64
	// hosts 64 times.
	work = 64 * (200 + 16) * (64 + 4)
	// farAhead is where a replay ends: nobody plans by what is to come in a week.
	farAhead = 7 * 24 * time.Hour
)

// cost of a decision is about in proportion to hosts times requests; small ones cost
// something, too.
func cost(hosts, requests int) int { return (requests + 16) * (hosts + 4) }

// replay is one course of what is to come.
type replay struct {
	long    bool // each attempt takes as long as such attempts do; else as short
	now     time.Duration
	hosts   []berth.Host
	at      map[string]int // hosts by id
	sweeps  map[string]packing.SweepLimit
	more    map[string]int
	model   map[string]Request // what later trials of a sweep ask for, by sweep
	waiting []waiting
	running []running // those that end, the next first
	endless int       // attempts of which nobody knows how long they take
	silent  int       // attempts on hosts that do not answer
	left    int       // requests of people that wait
	later   int       // requests that came later
	step    time.Duration
	spent   int
	starts  map[string]time.Duration
}

// waiting is a request in a replay.
type waiting struct {
	Request

	asked, waited time.Duration // when it came
	came          time.Duration // when, in the replay
	behind        time.Duration // of the time since, behind its sweep's limit: that is no wait for room
	seen          time.Duration // when it was last decided
	limited       bool          // that limit kept it from a place then
	own           bool          // it waits now, and is no later trial
}

// running is an attempt in a replay.
type running struct {
	ends     time.Duration
	sweep    string
	host     int // -1 = it is gone
	device   int // -1 = none
	demand   berth.Demand
	activity int64
}

func newReplay(w World, requests []Request, long bool) *replay {
	r := &replay{
		long: long, hosts: copied(w.Hosts), at: make(map[string]int), sweeps: make(map[string]packing.SweepLimit), more: make(map[string]int),
		model: make(map[string]Request), starts: make(map[string]time.Duration), left: len(requests),
	}
	maps.Copy(r.sweeps, w.Sweeps)
	maps.Copy(r.more, w.More)

	for i, h := range r.hosts {
		r.at[h.ID] = i
	}

	for _, q := range requests {
		r.waiting = append(r.waiting, waiting{Request: q, asked: q.Asked, waited: q.Waited, own: true})
		r.model[q.SweepID] = q
	}

	for _, a := range w.Running {
		switch {
		case a.Silent && long:
			r.silent++
		case !a.Left.Known && long:
			r.endless++
		default:
			host, device := r.place(a.HostID, a.DeviceID)
			r.running = append(r.running, running{r.takes(a.Left), a.SweepID, host, device, a.Demand, a.Activity})
		}
	}

	slices.SortStableFunc(r.running, func(a, b running) int { return cmp.Compare(a.ends, b.ends) })
	r.step = r.stepOf(requests)

	return r
}

// stepOf is the time within which ends count as one.
func (r *replay) stepOf(requests []Request) time.Duration {
	var times []time.Duration

	for _, q := range requests {
		if q.Takes.Known {
			times = append(times, r.takes(q.Takes))
		}
	}

	for _, a := range r.running {
		times = append(times, a.ends)
	}

	if len(times) == 0 {
		return shortest
	}

	slices.Sort(times)

	return max(times[len(times)/2]/grain, shortest)
}

// takes is how long an attempt runs in this replay. Of one of which nothing is known the
// short one takes that it ends at once.
func (r *replay) takes(t berth.RunTime) time.Duration {
	switch {
	case !t.Known:
		return 0
	case r.long:
		return t.Max
	default:
		return t.Min
	}
}

func (r *replay) place(hostID, deviceID string) (host, device int) {
	i, known := r.at[hostID]
	if !known {
		return -1, -1
	}

	return i, slices.IndexFunc(r.hosts[i].Devices, func(d berth.Device) bool { return d.ID == deviceID })
}

// run goes on until all that waits now has its start, nothing ends any more, or the
// bounds of its work.
func (r *replay) run() {
	for r.left > 0 && r.spent < work && r.now < farAhead {
		keeps := r.decide()
		if r.left == 0 {
			return
		}

		switch next := r.now + whileKept; {
		case len(r.running) == 0 && !keeps:
			return
		case keeps && (len(r.running) == 0 || r.running[0].ends > next):
			r.now = next
		default:
			r.end()
		}
	}
}

// decide places what fits, and reports whether a host or GPU is kept free.
func (r *replay) decide() (keeps bool) {
	r.spent += cost(len(r.hosts), len(r.waiting))
	asked := make([]packing.Request, len(r.waiting))
	index := make(map[string]int, len(r.waiting))

	for i := range r.waiting {
		w := &r.waiting[i]
		if w.limited {
			w.behind += r.now - w.seen
		}

		w.seen = r.now
		asked[i] = w.Request.Request
		asked[i].Waited, asked[i].Asked = w.waited+r.now-w.came-w.behind, w.asked+r.now-w.came
		index[w.AttemptID] = i
	}

	for _, d := range packing.Decide(r.hosts, r.sweeps, asked) {
		w := &r.waiting[index[d.AttemptID]]

		if !d.Placed {
			w.Kept, w.Vain, w.limited = d.Kept, d.Vain, d.Limited()
			keeps = keeps || d.Kept != packing.Place{}

			continue
		}

		r.start(w, d.Placement)
	}

	r.waiting = slices.DeleteFunc(r.waiting, func(w waiting) bool { return w.AttemptID == "" })

	return keeps
}

// start books a placement. The request waits no more.
func (r *replay) start(w *waiting, p berth.Placement) {
	host, device := r.place(p.HostID, p.DeviceID)

	var dev *berth.Device
	if device >= 0 {
		dev = &r.hosts[host].Devices[device]
	}

	book(&r.hosts[host], dev, p.Demand, p.Class)

	limit := r.sweeps[w.SweepID]
	limit.Running++

	if w.Away {
		limit.Away = max(limit.Away-1, 0)
	}

	r.sweeps[w.SweepID] = limit

	if w.own {
		r.starts[w.AttemptID] = r.now
		r.left--
	}

	if w.Takes.Known || !r.long {
		a := running{r.now + r.takes(w.Takes), w.SweepID, host, device, p.Demand, p.Demand.DeviceActivity}
		at, _ := slices.BinarySearchFunc(r.running, a.ends, func(b running, ends time.Duration) int { return cmp.Compare(b.ends, ends) })
		r.running = slices.Insert(r.running, at, a)
	} else {
		r.endless++
	}

	w.AttemptID = ""
}

// end moves on to the next ends. In the short replay they come with the first of them, in
// the long one with the last: each errs to its own side.
func (r *replay) end() {
	first := r.running[0].ends
	n := 0

	for n < len(r.running) && r.running[n].ends <= first+r.step {
		a := r.running[n]
		n++

		if a.host >= 0 {
			var dev *berth.Device
			if a.device >= 0 {
				dev = &r.hosts[a.host].Devices[a.device]
			}

			release(&r.hosts[a.host], dev, a.demand, a.activity)
		}

		limit := r.sweeps[a.sweep]
		limit.Running = max(limit.Running-1, 0)
		r.sweeps[a.sweep] = limit

		if r.long {
			r.now = max(r.now, a.ends)
			r.ask(a.sweep)
		}
	}

	r.now = max(r.now, first)
	r.running = slices.Delete(r.running, 0, n)
}

// ask is a sweep's next trial, after the end of one.
func (r *replay) ask(sweep string) {
	q, known := r.model[sweep]
	if !known || r.more[sweep] <= 0 {
		return
	}

	r.more[sweep]--
	r.later++
	q.AttemptID, q.Number, q.Waited, q.Asked = fmt.Sprintf("later %d", r.later), q.Number+r.later, 0, 0
	q.Kept, q.Vain, q.FailedHosts, q.Checkpoint, q.Fetch, q.Away = packing.Place{}, nil, nil, "", 0, false
	r.waiting = append(r.waiting, waiting{Request: q, came: r.now, seen: r.now})
}

// unknown says why the replay, which has ended, does not know when a request starts.
func (r *replay) unknown(id string) berth.StartUnknown {
	away, only := false, false // its sweep's places are held on hosts that do not answer: some, and all

	for _, w := range r.waiting {
		if limit := r.sweeps[w.SweepID]; w.AttemptID == id && limit.Away > 0 {
			away, only = true, w.limited && limit.Running == 0
		}
	}

	switch {
	case only:
		return berth.StartHostAway
	case r.spent >= work:
		return berth.StartFarAhead
	case r.endless > 0:
		return berth.StartTimeUnknown
	case r.silent > 0 || away:
		return berth.StartHostAway
	case len(r.running) > 0:
		return berth.StartFarAhead
	default:
		return berth.StartNoEndHelps
	}
}
