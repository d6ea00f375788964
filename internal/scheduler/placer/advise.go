package placer

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/packing"
	"github.com/berthml/berth/internal/scheduler/parallelism"
)

// figuresEvery is how often the figures of an unchanged advice are updated: they
// change with each waiting request, and people read them.
const figuresEvery = 10 * time.Second

// adviser decides how many attempts should share each GPU, by the paces of the running
// and waiting shapes. It groups requests, because thousands of them have few different
// shapes.
type adviser struct {
	queue  berth.Queue
	groups []*group
	drains *drains
	quiet  bool // figures that change are not told now

	pools  map[string]*pool // by the classes of a GPU
	alike  map[string]int   // GPUs that take attempts, by place
	paces  map[paceKey][]berth.Pace
	latest map[paceKey]berth.MixPace // the newest of a shape, by its own key and place
	mixes  map[string]mix            // by device
}

// paceKey is a mix, or a shape of one, at a place.
type paceKey struct{ of, place string }

func newAdviser(queue berth.Queue, groups []*group, drains *drains, quiet bool) *adviser {
	a := &adviser{
		queue: queue, groups: groups, drains: drains, quiet: quiet, pools: make(map[string]*pool), alike: make(map[string]int),
		paces: make(map[paceKey][]berth.Pace), latest: make(map[paceKey]berth.MixPace), mixes: make(map[string]mix),
	}

	for _, p := range queue.Paces {
		key := paceKey{p.Mix, p.Place}
		a.paces[key] = append(a.paces[key], p.Pace)

		if own := (paceKey{p.ShapeKey, p.Place}); p.At.After(a.latest[own].At) || a.latest[own].Mix == "" {
			a.latest[own] = p
		}
	}

	for _, h := range queue.Hosts {
		for _, dev := range h.Devices {
			if h.State == berth.HostReady && dev.Refusal() == "" {
				a.alike[h.GPUPlace(dev)]++
			}
		}
	}

	return a
}

// advise sets the advice of each GPU of the queue. It returns the ids of the GPUs whose
// advice differs from the stored one. Only a part of the GPUs of open hosts drains for
// another mode at once; draining GPUs come first.
func (a *adviser) advise() map[string]berth.Advice {
	changed := make(map[string]berth.Advice)
	gpus, emptying := 0, 0

	for _, h := range a.queue.Hosts {
		for _, dev := range h.Devices {
			if h.State == berth.HostReady {
				gpus++

				if draining(dev) {
					emptying++
				}
			}
		}
	}

	for h := range a.queue.Hosts {
		host := &a.queue.Hosts[h]
		host.Devices = slices.Clone(host.Devices)

		for d := range host.Devices {
			dev := &host.Devices[d]
			before := draining(*dev)
			stays := a.drains.rests(packing.Place{HostID: host.ID, DeviceID: dev.ID}) || !before && emptying >= max(gpus/drainPart, 1)

			advice := berth.Advice{}
			if host.State == berth.HostReady {
				advice = a.adviceFor(host, dev, stays)
			}

			if same := dev.Advice; a.quiet && same.Company == advice.Company && same.Capped == advice.Capped && same.Trying == advice.Trying {
				advice.Why = same.Why
			}

			if advice != dev.Advice {
				changed[dev.ID] = advice
				dev.Advice = advice
			}

			if host.State == berth.HostReady && draining(*dev) != before {
				if emptying++; before {
					emptying -= 2
				}
			}
		}
	}

	return changed
}

// adviceFor is the advice for one GPU; stays = in its present mode, if it has attempts.
func (a *adviser) adviceFor(host *berth.Host, dev *berth.Device, stays bool) berth.Advice {
	waiting := a.pool(dev)

	modes := modes(dev, waiting, stays)
	if len(modes) == 0 || dev.Attempts == 0 && waiting.barred[dev.Modes()[0]] { // some cannot have the mode to prefer: the rule serves both
		return berth.Advice{}
	}

	loaded, place := a.loadedOn(dev.ID), host.GPUPlace(*dev)
	m := mixOf(loaded, waiting.loaded)
	a.mixes[dev.ID] = m
	known, others := m.key, max(a.alike[place], 1)

	if dev.Attempts == 0 && len(waiting.groups) == 1 && waiting.groups[0].waiting == 1 { // its most likely neighbour decides the mode
		known = cmp.Or(a.latest[paceKey{m.own(waiting.groups[0].loaded), place}].Mix, known)
	}

	q := parallelism.Question{
		Paces: a.paces[paceKey{known, place}], Modes: modes, Waiting: make(map[string]int), Limits: waiting.limits,
		Most: mostAtOnce(host, dev, waiting, others), Heavy: waiting.heavy || a.heavy(loaded), Left: waiting.later / others,
	}

	for _, l := range waiting.loaded { // other GPUs take their part of the queue
		q.Waiting[m.own(l)] = (waiting.queue[m.own(l)] + others - 1) / others
	}

	if dev.Attempts > 0 {
		q.Now = dev.Mode
	}

	advice := parallelism.Advise(q)
	if advice == (berth.Advice{}) && dev.Attempts > 0 && dev.Mode == berth.SharingTimeSlicing && slices.Contains(modes, berth.SharingMPS) &&
		dev.Attempts+waiting.coming >= leastByMPS {
		return berth.Advice{Company: berth.Company{Mode: berth.SharingMPS}, Why: "nothing needs time slices any more, and more get on by MPS"}
	}

	return advice
}

// pool is the groups of requests that may use a GPU.
func (a *adviser) pool(dev *berth.Device) *pool {
	var classes strings.Builder
	for _, m := range dev.Modes() {
		classes.WriteString(string(dev.ClassBy(m)) + "\n")
	}

	p, known := a.pools[classes.String()]
	if !known {
		p = poolOf(a.groups, a.queue.Sweeps, dev)
		a.pools[classes.String()] = p
	}

	return p
}

// loadedOn returns the leases on a GPU.
func (a *adviser) loadedOn(deviceID string) []berth.Loaded {
	loaded := slices.Clone(a.queue.OnDevices[deviceID])
	for i, l := range loaded {
		loaded[i] = loadOf(l.ShapeKey, l.Template, a.queue.Footprints)
	}

	return loaded
}

// modes are the modes that a GPU may be advised: its attempts' mode, and each mode in
// which all waiting requests can share it. A request that insists on one mode, or
// would have the GPU alone in the other, never waits for a change of mode.
func modes(dev *berth.Device, waiting *pool, stays bool) []berth.SharingMode {
	return slices.DeleteFunc(dev.Modes(), func(m berth.SharingMode) bool {
		if dev.ProblemBy(m) != "" || m == berth.SharingExclusive {
			return true
		}

		return (dev.Attempts == 0 || m != dev.Mode) && (waiting.barred[m] || stays && dev.Attempts > 0)
	})
}

// mostAtOnce is how many of the waiting requests a GPU can have at once, under any advice: of the
// smallest one, by its memory and its clients, by its host's memory, and its cores where
// the sweep file sets them, and by the limits of hosts and sweeps. The limits of sweeps are
// for all GPUs.
func mostAtOnce(host *berth.Host, dev *berth.Device, waiting *pool, others int) int {
	most := 0

	for s := range waiting.sizes {
		if dev.ProblemBy(s.mode) == "" {
			most = max(most, fittingAtOnce(host, dev, &s))
		}
	}

	for _, limit := range []int{dev.Limit(), host.MaxAttempts} {
		if limit > 0 {
			most = min(most, limit)
		}
	}

	if waiting.unlimited {
		return most
	}

	return min(most, (waiting.maxParallel+others-1)/others)
}

// fittingAtOnce is how many attempts of one size an empty GPU of an empty host takes at once,
// beside programs outside Berth.
func fittingAtOnce(host *berth.Host, dev *berth.Device, s *size) int {
	d := &s.demand
	if d.ExclusiveDevice || d.Exclusive {
		return 1
	}

	fit := int64(dev.ContextsBy(s.mode) / max(d.Contexts, 1))
	if d.DeviceBytes > 0 {
		fit = min(fit, min(dev.CapacityBytes(), dev.FreeBytes)/d.DeviceBytes)
	}

	if d.MemoryBytes > 0 {
		fit = min(fit, min(host.CapacityBytes(), host.MemoryFreeBytes)/d.MemoryBytes)
	}

	if s.cpusGiven && d.CPUMilli > 0 {
		fit = min(fit, host.CPUMilli/d.CPUMilli)
	}

	return int(fit)
}

// heavy reports whether one of the shapes was measured to fill much of a GPU.
func (a *adviser) heavy(loaded []berth.Loaded) bool {
	return slices.ContainsFunc(loaded, func(l berth.Loaded) bool { return fills(a.queue.Footprints[l.ShapeKey]) })
}

// fill says of each placement on a GPU which mix it is in.
func (a *adviser) fill(decisions []packing.Decision, requests []packing.Request) {
	shapes := make(map[string]berth.Loaded, len(requests))
	for _, r := range requests {
		shapes[r.AttemptID] = loadOf(r.ShapeKey, a.queue.Sweeps[r.SweepID].Template, a.queue.Footprints)
	}

	for i := range decisions {
		d := &decisions[i]
		if m, ok := a.mixes[d.Placement.DeviceID]; ok && d.Placed {
			d.Placement.Mix = berth.Mix{Key: m.key, Own: m.own(shapes[d.AttemptID])}
		}
	}
}

// tellAdvice stores the advice that people see.
func (p *Placer) tellAdvice(ctx context.Context, changed map[string]berth.Advice) error {
	if len(changed) == 0 {
		return nil
	}

	p.advised = time.Now()

	return p.ledger.StoreAdvice(ctx, changed)
}
