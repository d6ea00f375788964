package placer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/packing"
	"github.com/berthml/berth/internal/parallelism"
)

// exactShapes is how many shapes a mix tells apart. With more of them each company of
// each would need many trials, so their templates stand for them.
const exactShapes = 3

// adviser says how many attempts should share each GPU, by the paces of what runs and
// waits there.
type adviser struct {
	queue    berth.Queue
	requests []packing.Request
	drains   *drains
	mixes    map[string]mix // by device
}

// mix is what there is for one GPU.
type mix struct {
	key    string
	own    func(berth.Loaded) string // the key of a shape's paces
	shapes []berth.Loaded
}

// advise sets the advice of each GPU of the queue. It returns the ids of those whose
// advice is not as stored.
func (a *adviser) advise() map[string]berth.Advice {
	changed := make(map[string]berth.Advice)
	a.mixes = make(map[string]mix)
	gpus, emptying := 0, 0

	for _, h := range a.queue.Hosts {
		gpus += len(h.Devices)
	}

	for h := range a.queue.Hosts {
		host := &a.queue.Hosts[h]
		host.Devices = slices.Clone(host.Devices)

		for d := range host.Devices {
			dev := &host.Devices[d]

			stays := a.drains.rests(packing.Place{HostID: host.ID, DeviceID: dev.ID}) || emptying >= max(gpus/drainPart, 1)
			advice := a.of(host, dev, stays)

			if after := *dev; advice != (berth.Advice{}) {
				after.Advice = advice
				if draining(after) {
					emptying++
				}
			}

			if advice != dev.Advice {
				changed[dev.ID] = advice
				dev.Advice = advice
			}
		}
	}

	return changed
}

// of is the advice for one GPU; stays = in the mode that it is in, if attempts are there.
func (a *adviser) of(host *berth.Host, dev *berth.Device, stays bool) berth.Advice {
	modes := a.modes(dev, stays)
	if len(modes) == 0 {
		return berth.Advice{}
	}

	waiting, sweeps := a.waitingFor(dev)
	m := mixOf(append(slices.Clone(a.queue.OnDevices[dev.ID]), waiting...))
	a.mixes[dev.ID] = m

	q := parallelism.Question{Modes: modes, Waiting: make(map[string]int), Heavy: a.heavy(m)}
	place, others := host.GPUPlace(*dev), a.alike(host.GPUPlace(*dev))
	known := m.key

	if dev.Attempts == 0 && len(waiting) == 1 {
		known = cmp.Or(a.lastMix(m.own(waiting[0]), place), known)
	}

	for _, p := range a.queue.Paces {
		if p.Mix == known && p.Place == place {
			q.Paces = append(q.Paces, p.Pace)
		}
	}

	for _, w := range waiting {
		q.Waiting[m.own(w)]++
	}

	for shape := range q.Waiting { // other GPUs take their part of the queue
		q.Waiting[shape] = (q.Waiting[shape] + others - 1) / others
	}

	for sweep := range sweeps {
		q.Left += a.queue.Sweeps[sweep].Left / others
	}

	q.Most, q.Limits = a.most(dev, sweeps), a.limits(m, dev)

	if dev.Attempts > 0 {
		q.Now = dev.Mode
	}

	return parallelism.Advise(q)
}

// modes are those that a GPU can be advised: all that waits can be there in them, beside
// others. What insists on one mode, or would have the GPU alone in the other, is never
// made to wait for that.
func (a *adviser) modes(dev *berth.Device, stays bool) []berth.SharingMode {
	first := dev.Modes()[0]

	return slices.DeleteFunc(dev.Modes(), func(m berth.SharingMode) bool {
		if dev.ProblemBy(m) != "" || m == berth.SharingExclusive || stays && dev.Attempts > 0 && m != dev.Mode {
			return true
		}

		for i := range a.requests {
			d, can := a.requests[i].Demands[dev.ClassBy(m)]
			if a.counts(&a.requests[i], dev) && (!can || d.ExclusiveDevice && m != first) {
				return true
			}
		}

		return false
	})
}

// counts reports whether a request is one that may be on a GPU: not one of a sweep that
// takes no trials now.
func (a *adviser) counts(r *packing.Request, dev *berth.Device) bool {
	if state := a.queue.Sweeps[r.SweepID].State; state != berth.SweepRunning && state != berth.SweepPending {
		return false
	}

	return slices.ContainsFunc(dev.Modes(), func(m berth.SharingMode) bool {
		_, can := r.Demands[dev.ClassBy(m)]

		return can
	})
}

// limits are the seconds that attempts may take, by the shape of their paces.
func (a *adviser) limits(m mix, dev *berth.Device) map[string]float64 {
	limits := make(map[string]float64)

	for i := range a.requests {
		r := &a.requests[i]
		sweep := a.queue.Sweeps[r.SweepID]

		if limit := time.Duration(sweep.TrialLimit).Seconds(); limit > 0 && a.counts(r, dev) {
			own := m.own(berth.Loaded{ShapeKey: r.ShapeKey, Template: sweep.Template})
			if least, known := limits[own]; !known || limit < least {
				limits[own] = limit
			}
		}
	}

	return limits
}

// lastMix is the mix that a shape was in last, on a place: what an attempt that comes
// first and alone will most likely have for company, which decides how the GPU is shared.
func (a *adviser) lastMix(own, place string) (mix string) {
	var last time.Time

	for _, p := range a.queue.Paces {
		if p.ShapeKey == own && p.Place == place && p.At.After(last) {
			mix, last = p.Mix, p.At
		}
	}

	return mix
}

// alike is how many GPUs of a place take attempts; 1 at least.
func (a *adviser) alike(place string) (n int) {
	for _, h := range a.queue.Hosts {
		for _, dev := range h.Devices {
			if h.State == berth.HostReady && dev.Refusal() == "" && h.GPUPlace(dev) == place {
				n++
			}
		}
	}

	return max(n, 1)
}

// waitingFor is what waits that can be on a GPU, and the sweeps of it.
func (a *adviser) waitingFor(dev *berth.Device) (waiting []berth.Loaded, sweeps map[string]bool) {
	sweeps = make(map[string]bool)

	for i := range a.requests {
		if r := &a.requests[i]; a.counts(r, dev) {
			waiting = append(waiting, berth.Loaded{ShapeKey: r.ShapeKey, Template: a.queue.Sweeps[r.SweepID].Template})
			sweeps[r.SweepID] = true
		}
	}

	return waiting, sweeps
}

// most is how many attempts of what waits a GPU can have at once, whatever is advised:
// of the smallest, by its memory, its clients, and the limits of hosts and sweeps.
func (a *adviser) most(dev *berth.Device, sweeps map[string]bool) int {
	most := 0

	for i := range a.requests {
		for _, mode := range dev.Modes() {
			d, can := a.requests[i].Demands[dev.ClassBy(mode)]
			if !can {
				continue
			}

			fit := dev.ContextsBy(mode) / max(d.Contexts, 1)
			if d.DeviceBytes > 0 {
				fit = min(fit, int(dev.CapacityBytes()/d.DeviceBytes))
			}

			most = max(most, fit)
		}
	}

	if dev.Limit() > 0 {
		most = min(most, dev.Limit())
	}

	allowed := 0

	for id := range sweeps {
		if a.queue.Sweeps[id].MaxParallel == 0 {
			return most
		}

		allowed += a.queue.Sweeps[id].MaxParallel
	}

	return min(most, allowed)
}

// heavy reports whether a shape of the mix was measured to fill much of a GPU.
func (a *adviser) heavy(m mix) bool {
	return slices.ContainsFunc(m.shapes, func(l berth.Loaded) bool {
		for _, f := range a.queue.Footprints[l.ShapeKey] {
			if f.DeviceActivity.Busiest() >= parallelism.HeavyMilli {
				return true
			}
		}

		return false
	})
}

// mixOf is the mix of what runs and waits: its shapes, or their templates where there
// are many shapes.
func mixOf(loaded []berth.Loaded) mix {
	shapes, templates := make(map[string]bool), make(map[string]bool)
	for _, l := range loaded {
		shapes[l.ShapeKey], templates[l.Template] = true, true
	}

	m := mix{shapes: loaded, own: func(l berth.Loaded) string { return l.ShapeKey }}
	keys := slices.Sorted(maps.Keys(shapes))

	if len(shapes) > exactShapes {
		m.own = func(l berth.Loaded) string { return l.Template }
		keys = slices.Sorted(maps.Keys(templates))
	}

	sum := sha256.Sum256([]byte(strings.Join(keys, "\n")))
	m.key = hex.EncodeToString(sum[:])

	return m
}

// fill says of each placement on a GPU which mix it is in.
func (a *adviser) fill(decisions []packing.Decision) {
	shapes := make(map[string]berth.Loaded, len(a.requests))
	for _, r := range a.requests {
		shapes[r.AttemptID] = berth.Loaded{ShapeKey: r.ShapeKey, Template: a.queue.Sweeps[r.SweepID].Template}
	}

	for i := range decisions {
		d := &decisions[i]
		if m, ok := a.mixes[d.Placement.DeviceID]; ok && d.Placed {
			d.Placement.Mix = berth.Mix{Key: m.key, Own: m.own(shapes[d.AttemptID])}
		}
	}
}

// tellAdvice stores what people see, and what a sweep looks at before it asks.
func (p *Placer) tellAdvice(ctx context.Context, changed map[string]berth.Advice) error {
	if len(changed) == 0 {
		return nil
	}

	return p.ledger.StoreAdvice(ctx, changed)
}
