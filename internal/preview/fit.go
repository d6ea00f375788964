package preview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
)

// bindsTrials stands for a dimension when there are no more trials.
const bindsTrials = "trials"

// HostFit is how many trials one host runs at once.
type HostFit struct {
	ID, Name string
	AtOnce   int
	Binds    string // the dimension used up first, as in a rejection, or trials
	Why      string // in plain words

	AtOnceNow  int   // beside what runs there now
	Memory     Fill  // when these have started
	SpillBytes int64 // of Memory.SweepBytes, for what GPUs cannot hold (gpu_memory_spill)
	Devices    []DeviceFill
}

type fit struct {
	atOnce int
	hosts  []HostFit
	why    string
}

// fitAll asks the placer's own decision how many of the demands run at once on
// the hosts when nothing else does.
func fitAll(hosts []berth.Host, demands []berth.Demands, maxParallel int) fit {
	idle := emptied(hosts)
	requests := make([]packing.Request, len(demands))
	all := make([]berth.Demand, len(demands))

	for i, d := range demands {
		requests[i] = packing.Request{AttemptID: strconv.Itoa(i), Number: i + 1, Demands: d}
		all[i] = d.First()
	}

	limit := map[string]packing.SweepLimit{"": {MaxParallel: maxParallel}}
	placed := make(map[string][]berth.Demand)

	var refused *packing.Decision // the one most worth explaining: the first that could run on an emptier machine

	out := fit{}

	for _, d := range packing.Decide(idle, limit, requests) {
		if d.Placed {
			out.atOnce++
			placed[d.Placement.HostID] = append(placed[d.Placement.HostID], d.Placement.Demand)
		} else if refused == nil || refused.Impossible && !d.Impossible {
			refused = &d
		}
	}

	var reasons []berth.Rejection
	if refused != nil {
		reasons = refused.Rejections(0)
	}

	for i := range idle {
		out.hosts = append(out.hosts, explain(&idle[i], placed[idle[i].ID], all, reasons))
	}

	fillAll(hosts, requests, limit, out.hosts)

	out.why = why(out, reasons, maxParallel)

	return out
}

// emptied is the hosts with nothing of ours on them.
func emptied(hosts []berth.Host) []berth.Host {
	idle := make([]berth.Host, len(hosts))

	for i, h := range hosts {
		h.CPUMilliReserved, h.MemoryReservedBytes, h.Attempts, h.Exclusive = 0, 0, 0, false
		devices := make([]berth.Device, len(h.Devices))

		for j, d := range h.Devices {
			d.ReservedBytes, d.ContextsReserved, d.Attempts, d.Exclusive = 0, 0, 0, false
			devices[j] = d
		}

		h.Devices = devices
		idle[i] = h
	}

	return idle
}

// explain says what binds on one host.
func explain(h *berth.Host, placed, all []berth.Demand, reasons []berth.Rejection) HostFit {
	f := HostFit{ID: h.ID, Name: h.Name, AtOnce: len(placed), Binds: bindsTrials}

	i := slices.IndexFunc(reasons, func(r berth.Rejection) bool { return r.HostID == h.ID || r.HostID == "" }) // of several GPUs the first
	if i >= 0 {
		f.Binds, f.Why = string(reasons[i].Dimension), packing.Explain(reasons[i])
	}

	switch {
	case len(placed) == 0:
		return f
	case f.Binds == bindsTrials:
		f.Why = "the sweep has no more trials"
	case f.Binds == string(berth.DimensionSweep):
		f.Why = "the sweep's max_parallel binds"
	case f.Binds == string(berth.DimensionExclusive) && reasons[i].DeviceID != "":
		f.Why = "each has a GPU for itself, as gpu_sharing says or until its shape is measured"
	default:
		f.Why = binding(h, f.Binds, mean(placed, all))
	}

	return f
}

// binding is such as "CPU binds (2 cores, 1 each); memory would hold 31".
func binding(h *berth.Host, dimension string, each berth.Demand) string {
	room := min(h.CapacityBytes(), h.MemoryFreeBytes)
	byCPU := fmt.Sprintf("CPU would hold %d", h.CPUMilli/max(each.CPUMilli, 1))
	byMemory := fmt.Sprintf("memory would hold %d", room/max(each.MemoryBytes, 1))

	switch berth.Dimension(dimension) {
	case berth.DimensionCPU:
		return fmt.Sprintf("CPU binds (%s, %s each); %s", cores(h.CPUMilli), number(each.CPUMilli), byMemory)
	case berth.DimensionMemory:
		return fmt.Sprintf("memory binds (%s, %s each); %s", berth.BytesText(room), berth.BytesText(each.MemoryBytes), byCPU)
	case berth.DimensionFreeMemory:
		return fmt.Sprintf("memory binds (programs outside Berth leave %s, %s each); %s", berth.BytesText(room), berth.BytesText(each.MemoryBytes), byCPU)
	case berth.DimensionDeviceBytes:
		return fmt.Sprintf("GPU memory binds (%s, %s each); %s, %s", gpuText(h.Devices), berth.BytesText(each.DeviceBytes), byCPU, byMemory)
	case berth.DimensionAttempts:
		return fmt.Sprintf("the host's limit of %d attempts binds; %s, %s", h.MaxAttempts, byCPU, byMemory)
	default:
		return strings.ReplaceAll(dimension, "_", " ") + " binds"
	}
}

// gpuText is such as "2 GPUs with 281,600 MiB".
func gpuText(devices []berth.Device) string {
	total := int64(0)
	for _, dev := range devices {
		total += dev.CapacityBytes()
	}

	if len(devices) == 1 {
		return "1 GPU with " + berth.BytesText(total)
	}

	return fmt.Sprintf("%d GPUs with %s", len(devices), berth.BytesText(total))
}

// mean is the average demand of what was placed, or of all when nothing was.
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
func why(f fit, reasons []berth.Rejection, maxParallel int) string {
	head := fmt.Sprintf("%d at once: ", f.atOnce)

	switch {
	case f.atOnce == 0 && len(reasons) == 0:
		return "there are no trials"
	case f.atOnce == 0:
		texts := make([]string, len(reasons))
		for i, r := range reasons {
			texts[i] = packing.Explain(r)
		}

		return "none can run: " + strings.Join(texts, "; ")
	case maxParallel > 0 && f.atOnce == maxParallel:
		return head + fmt.Sprintf("the sweep's max_parallel is %d", maxParallel)
	case len(reasons) == 0:
		return head + "these are all the trials"
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
