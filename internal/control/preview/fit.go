package preview

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// bindsTrials stands for a dimension when there are no more trials.
const bindsTrials = "trials"

// HostFit is how many trials one host runs at once.
type HostFit struct {
	ID, Name string
	AtOnce   int
	Binds    string // the dimension in which the next trial does not fit, as in a rejection, or trials
	Why      string // in plain words

	AtOnceNow  int   // beside the running attempts, as if nothing else waited
	Memory     Fill  // when these have started
	SpillBytes int64 // of Memory.SweepBytes, the part that GPUs cannot hold (gpu_memory_spill)
	Devices    []DeviceFill
}

type fit struct {
	atOnce int
	hosts  []HostFit
	why    string
}

// rest is the reason why hosts with room take no further trials; empty = no host
// has room.
type rest struct{ binds, why string }

// fitAll asks the placer's own decision how many trials, each of one of the shapes, run at
// once on the hosts when nothing else does. complete = these are all the trials.
func fitAll(hosts []berth.Host, shapes []Shape, trials []int, needs packing.Request, maxParallel int, complete bool) fit {
	idle := emptied(hosts)
	requests := make([]packing.Request, len(trials))
	oneOfEach := make([]packing.Request, len(shapes))

	for i, shape := range trials {
		requests[i] = needs
		requests[i].AttemptID, requests[i].Number, requests[i].Demands = strconv.Itoa(i), i+1, shapes[shape].Demands
		oneOfEach[shape] = requests[i]
	}

	most, whyMost := mostAtOnce(maxParallel)
	limit := map[string]packing.SweepLimit{"": {MaxParallel: most}}
	placed := make(map[string]int) // trials, by host
	used := make(map[string]bool)  // GPUs that have some
	decisions := packing.Decide(idle, limit, requests)
	out := fit{}

	for _, d := range decisions {
		if d.Placed {
			out.atOnce++
			placed[d.Placement.HostID]++
			used[d.Placement.DeviceID] = true
		}
	}

	more, reasons := rest{string(berth.DimensionSweep), whyMost}, []berth.Rejection(nil)
	if out.atOnce < most {
		more, reasons = whatKeeps(decisions, complete)
	}

	for i := range idle {
		h := &idle[i]
		on := reasons

		if placed[h.ID] == 0 && more.why != "" {
			on = alone(h, oneOfEach)
		}

		out.hosts = append(out.hosts, explain(h, placed[h.ID], reasonOf(h, on, used), more))
	}

	fillAll(hosts, requests, limit, out.hosts)

	out.why = why(out, reasons, more)

	return out
}

// mostAtOnce is how many trials a sweep runs at once on any machines, and why no more.
func mostAtOnce(maxParallel int) (most int, why string) {
	if maxParallel > 0 && maxParallel <= berth.MaxOpenTrials {
		return maxParallel, fmt.Sprintf("the sweep's max_parallel is %d", maxParallel)
	}

	return berth.MaxOpenTrials, fmt.Sprintf("a sweep keeps %d trials open at most", berth.MaxOpenTrials)
}

// whatKeeps says why no more trials run at once: there are no more, or the hosts have no
// room, each for its own reasons.
func whatKeeps(decisions []packing.Decision, complete bool) (more rest, reasons []berth.Rejection) {
	switch refused := refusal(decisions); {
	case len(decisions) == 0:
		return rest{bindsTrials, "there are no trials"}, nil
	case refused != nil:
		return rest{}, refused.Rejections(0)
	case complete:
		return rest{bindsTrials, "these are all the trials"}, nil
	default:
		return rest{bindsTrials, "these are all the trials that were found"}, nil
	}
}

// refusal is the decision most worth explaining, nil when all are placed: the last one
// of the trials that could run on emptier machines. Decide begins with the largest, so
// that is the smallest that finds no room.
func refusal(decisions []packing.Decision) (last *packing.Decision) {
	for i := range decisions {
		if d := &decisions[i]; !d.Placed && (last == nil || last.Impossible || !d.Impossible) {
			last = d
		}
	}

	return last
}

// alone gives the reasons why a host takes none of the requests, with other trials and
// max_parallel left out; nil = it has room for one.
func alone(h *berth.Host, requests []packing.Request) []berth.Rejection {
	decisions := packing.Decide([]berth.Host{*h}, nil, requests)
	if len(decisions) == 0 || slices.ContainsFunc(decisions, func(d packing.Decision) bool { return d.Placed }) {
		return nil
	}

	return refusal(decisions).Rejections(0)
}

// reasonOf is a host's most important reason; nil = none. Each GPU has its own: first one
// with trials, then one that takes some.
func reasonOf(h *berth.Host, reasons []berth.Rejection, used map[string]bool) *berth.Rejection {
	rank := func(r berth.Rejection) int {
		switch {
		case used[r.DeviceID] && r.DeviceID != "":
			return 0
		case r.Dimension != berth.DimensionState:
			return 1
		default:
			return 2
		}
	}

	own := slices.DeleteFunc(slices.Clone(reasons), func(r berth.Rejection) bool { return r.HostID != h.ID })
	if len(own) == 0 {
		return nil
	}

	return new(slices.MinFunc(own, func(a, b berth.Rejection) int { return cmp.Compare(rank(a), rank(b)) }))
}

// emptied is the hosts without our attempts, and without advice, which is for running
// attempts.
func emptied(hosts []berth.Host) []berth.Host {
	idle := make([]berth.Host, len(hosts))

	for i, h := range hosts {
		h.CPUMilliReserved, h.MemoryReservedBytes, h.Attempts, h.Exclusive = 0, 0, 0, false
		devices := make([]berth.Device, len(h.Devices))

		for j, d := range h.Devices {
			d.ReservedBytes, d.ContextsReserved, d.ActivityReserved, d.Attempts, d.Exclusive, d.Advice = 0, 0, 0, 0, false, berth.Advice{}
			devices[j] = d
		}

		h.Devices = devices
		idle[i] = h
	}

	return idle
}

// explain says why one host runs no more trials than were placed there: its own reason,
// or the reason why hosts with room refuse.
func explain(h *berth.Host, placed int, reason *berth.Rejection, more rest) HostFit {
	f := HostFit{ID: h.ID, Name: h.Name, AtOnce: placed, Binds: more.binds, Why: more.why}
	if reason != nil {
		f.Binds, f.Why = string(reason.Dimension), packing.Explain(*reason)
	}

	return f
}

// why is the sentence of the whole.
func why(f fit, reasons []berth.Rejection, more rest) string {
	head := fmt.Sprintf("%d at once: ", f.atOnce)

	switch {
	case f.atOnce == 0 && len(reasons) == 0:
		return more.why
	case f.atOnce == 0:
		texts := make([]string, len(reasons))
		for i, r := range reasons {
			texts[i] = packing.Explain(r)
		}

		return "none can run: " + strings.Join(texts, "; ")
	case more.why != "":
		return head + more.why
	}

	parts := make([]string, 0, len(f.hosts))

	for _, h := range f.hosts {
		switch {
		case len(f.hosts) == 1:
			parts = append(parts, h.Why)
		case h.AtOnce > 0:
			parts = append(parts, strconv.Itoa(h.AtOnce)+" on "+h.Why)
		}
	}

	return head + strings.Join(parts, "; ")
}
