package placer

import (
	"maps"
	"slices"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
	"github.com/berthml/berth/internal/scheduler/packing"
)

// gatherShapes is how long the first attempt of a shape waits while others are being
// measured. The shapes of sweeps submitted together come one by one, within 0.5 s. Seen
// together, they get even parts of a GPU; otherwise each gets half of the rest.
const gatherShapes = time.Second

// requests returns the requests of a queue that may be placed, and the same
// grouped.
func (p *Placer) requests(queue berth.Queue) (out []packing.Request, groups []*group) {
	out = make([]packing.Request, 0, len(queue.Waiting))
	sizes := sizer{queue: queue, fleet: memory.NewFleet(queue.Hosts), known: make(map[sizeKey]*group)}

	gathers := slices.Contains(slices.Collect(maps.Values(queue.OnGPUs)), true)

	for _, w := range queue.Waiting {
		if w.Blocked != "" {
			continue
		}

		g := sizes.of(w)
		makes, waits := measures(queue, w, gathers)
		out = append(out, packing.Request{
			AttemptID: w.AttemptID, SweepID: w.SweepID, Number: w.TrialNumber, ShapeKey: w.ShapeKey, Datasets: w.Datasets, SecretKeys: w.SecretKeys, CPUsGiven: w.Resources.CPUs > 0,
			Demands: g.demands, Measures: g.guessed && makes, Unmeasured: g.guessed && waits, Expected: queue.Footprints[w.ShapeKey].Expected(),
			Waited: p.clock(w, queue.Sweeps[w.SweepID]).wait(w.Waited), Kept: p.kept[w.AttemptID], FailedHosts: w.FailedHosts, Away: w.Away,
			Lacking: w.Lacking, Unable: w.Unable, Checkpoint: w.Checkpoint, Stored: w.Stored, Holders: w.Holders,
			Inputs: w.Inputs, InputHosts: w.InputHosts, Shared: w.Shared,
		})
	}

	return out, sizes.groups
}

// sizer computes the demands of a round's requests, by the current footprints of
// their shapes and the current hosts, so that no part of a request outlives its
// reason.
type sizer struct {
	queue  berth.Queue
	fleet  *memory.Fleet // of its hosts
	known  map[sizeKey]*group
	groups []*group // the same, in the order of the queue
}

// sizeKey is everything that decides the size of a request in one round.
type sizeKey struct {
	sweepID, shapeKey string
	resources         berth.Resources
	last              berth.LastOOM // zero = none
	apart             bool
}

// measures returns a request's part in the measurement of its shape on a GPU: it makes it,
// because no attempt of the shape is on one, or it waits for the measuring attempt: for
// that one's first minute, or until it has measured, where the request's trial ran out of
// the GPU's memory. After that minute others run beside it at a guess. A shape that comes
// while others are in their first minute waits for gatherShapes.
func measures(queue berth.Queue, w berth.WaitingRequest, gathers bool) (makes, waits bool) {
	if young, runs := queue.OnGPUs[w.ShapeKey]; runs {
		return false, young || w.Last != nil && w.Last.Device
	}

	return true, gathers && w.Waited < gatherShapes
}

// of is the group of a request, which it counts there.
func (s *sizer) of(w berth.WaitingRequest) *group {
	key := sizeKey{sweepID: w.SweepID, shapeKey: w.ShapeKey, resources: w.Resources, apart: w.Apart}
	if w.Last != nil {
		key.last = *w.Last
	}

	g, ok := s.known[key]
	if !ok {
		g = &group{
			sweep: w.SweepID, loaded: loadOf(w.ShapeKey, s.queue.Sweeps[w.SweepID].Template, s.queue.Footprints),
			heavy: fills(s.queue.Footprints[w.ShapeKey]), cpusGiven: w.Resources.CPUs > 0,
		}
		g.demands, g.guessed = s.size(w)
		s.known[key], s.groups = g, append(s.groups, g)
	}

	g.waiting++

	return g
}

// size leaves a request unchanged that can be no larger: packing finds it
// impossible, with its reason.
func (s *sizer) size(w berth.WaitingRequest) (demands berth.Demands, guessed bool) {
	ask, known := memory.Ask{SweepID: w.SweepID, Resources: w.Resources, Last: w.Last, Apart: w.Apart}, s.queue.Footprints[w.ShapeKey]
	demands, _ = s.fleet.Sizes(ask, known)

	return demands, memory.Guesses(ask, known, demands)
}
