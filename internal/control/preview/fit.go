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
	all := make([]berth.Demand, len(trials))

	for i, shape := range trials {
		requests[i] = needs
		requests[i].AttemptID, requests[i].Number, requests[i].Demands = strconv.Itoa(i), i+1, shapes[shape].Demands
		oneOfEach[shape] = requests[i]
		all[i] = shapes[shape].Demands.First()
	}

	most, whyMost := mostAtOnce(maxParallel)
	limit := map[string]packing.SweepLimit{"": {MaxParallel: most}}
	placed := make(map[string][]berth.Demand)
	used := make(map[string]bool) // GPUs that have some
	decisions := packing.Decide(idle, limit, requests)
	out := fit{}

	for _, d := range decisions {
		if d.Placed {
			out.atOnce++
			placed[d.Placement.HostID] = append(placed[d.Placement.HostID], d.Placement.Demand)
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

		if len(placed[h.ID]) == 0 && more.why != "" {
			on = alone(h, oneOfEach)
		}

		out.hosts = append(out.hosts, explain(h, len(placed[h.ID]), mean(placed[h.ID], all), reasonOf(h, on, used), more))
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

// explain says why one host runs no more trials than were placed there, each with the
// demand each: its own reason, or the reason why hosts with room refuse.
func explain(h *berth.Host, placed int, each berth.Demand, reason *berth.Rejection, more rest) HostFit {
	f := HostFit{ID: h.ID, Name: h.Name, AtOnce: placed, Binds: more.binds, Why: more.why}

	switch {
	case reason == nil:
		return f
	case placed == 0:
		f.Why = packing.Explain(*reason)
	default:
		f.Why = binding(h, *reason, each)
	}

	f.Binds = string(reason.Dimension)

	return f
}

// binding is such as "CPU binds (2 cores, 1 each); memory would hold 31".
func binding(h *berth.Host, r berth.Rejection, each berth.Demand) string {
	room := min(h.CapacityBytes(), h.MemoryFreeBytes)
	byCPU := fmt.Sprintf("CPU would hold %d", h.CPUMilli/max(each.CPUMilli, 1))
	byMemory := fmt.Sprintf("memory would hold %d", room/max(each.MemoryBytes, 1))

	switch {
	case r.Reason != "":
		return r.Reason
	case r.DeviceID != "":
		return bindingGPU(h.Devices, r, each) + "; " + byCPU + ", " + byMemory
	}

	switch r.Dimension {
	case berth.DimensionCPU:
		return fmt.Sprintf("CPU binds (%s, %s each); %s", cores(h.CPUMilli), number(each.CPUMilli), byMemory)
	case berth.DimensionMemory:
		return fmt.Sprintf("memory binds (%s, %s each); %s", berth.BytesText(room), berth.BytesText(each.MemoryBytes), byCPU)
	case berth.DimensionFreeMemory:
		return fmt.Sprintf("memory binds (programs outside Berth leave %s, %s each); %s", berth.BytesText(room), berth.BytesText(each.MemoryBytes), byCPU)
	case berth.DimensionAttempts:
		return fmt.Sprintf("the host's limit of %d attempts binds; %s, %s", h.MaxAttempts, byCPU, byMemory)
	default:
		return packing.Explain(r)
	}
}

// bindingGPU is such as "GPU memory binds (1 GPU with 24,576 MiB, 1,088 MiB each)".
func bindingGPU(devices []berth.Device, r berth.Rejection, each berth.Demand) string {
	gpus, capacity, free := takingGPUs(devices)

	switch r.Dimension {
	case berth.DimensionDeviceBytes:
		return fmt.Sprintf("GPU memory binds (%s with %s, %s each)", gpus, berth.BytesText(capacity), berth.BytesText(each.DeviceBytes))
	case berth.DimensionFreeMemory:
		return fmt.Sprintf("GPU memory binds (programs outside Berth leave %s on %s, %s each)", berth.BytesText(free), gpus, berth.BytesText(each.DeviceBytes))
	case berth.DimensionAttempts:
		i := slices.IndexFunc(devices, func(d berth.Device) bool { return d.ID == r.DeviceID })

		return fmt.Sprintf("a GPU takes no more than %d at once", devices[i].Limit())
	case berth.DimensionContexts:
		return "a GPU takes no more processes at once"
	case berth.DimensionActivity:
		return fmt.Sprintf("each keeps a GPU %d %% busy, and more at once would be slower and do no more", (r.Needed+5)/10)
	case berth.DimensionExclusive:
		return "each has a GPU for itself, as gpu_sharing says or until its shape is measured"
	default:
		return packing.Explain(r)
	}
}

// takingGPUs returns the open GPUs, such as "2 GPUs", with the bytes that all their leases
// may hold, and the bytes that programs outside Berth leave of these.
func takingGPUs(devices []berth.Device) (gpus string, capacity, free int64) {
	n := 0

	for _, d := range devices {
		if d.Refusal() == "" {
			n++
			capacity += d.CapacityBytes()
			free += min(d.CapacityBytes(), d.FreeBytes)
		}
	}

	if n == 1 {
		return "1 GPU", capacity, free
	}

	return fmt.Sprintf("%d GPUs", n), capacity, free
}

// mean is the average demand of the placed trials, or of all when none was
// placed.
func mean(placed, all []berth.Demand) berth.Demand {
	if len(placed) == 0 {
		placed = all
	}

	var sum berth.Demand

	for _, d := range placed {
		sum.MemoryBytes += d.MemoryBytes
		sum.CPUMilli += d.CPUMilli
		sum.DeviceBytes += d.DeviceBytes
	}

	n := int64(max(len(placed), 1))

	return berth.Demand{MemoryBytes: sum.MemoryBytes / n, CPUMilli: sum.CPUMilli / n, DeviceBytes: sum.DeviceBytes / n}
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
			parts = append(parts, fmt.Sprintf("%d on %s (%s)", h.AtOnce, h.Name, h.Why))
		}
	}

	return head + strings.Join(parts, ", ")
}

func cores(milli int64) string {
	if milli == 1000 {
		return "1 core"
	}

	return number(milli) + " cores"
}

func number(milli int64) string {
	return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64)
}
