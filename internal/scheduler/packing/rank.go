package packing

import (
	"slices"

	"github.com/berthml/berth"
)

// candidate is a spot that fits, with its values for the choice between
// several.
type candidate struct {
	host, spot int
	trust      trust   // the most wins, at any load: a host that fails at once is always the emptiest
	load       float64 // dominant share in use afterwards; the least wins: spread first, pack when needed
	slack      int64   // memory left afterwards; the least wins: best fit
}

func (c candidate) better(than candidate) bool {
	if c.trust != than.trust {
		return c.trust > than.trust
	}

	return c.load < than.load || c.load == than.load && c.slack < than.slack
}

// trust says how likely a host is to start a container.
type trust int8

const (
	late     trust = iota // its worker is silent: if it is gone, its trials wait for minutes
	failedIt              // an earlier attempt of the trial failed there
	failing               // the last containers, or the sweep's, did not start there
	healthy
	tested // a cordoned host whose test attempt is due: a test that never comes never ends the cordon
)

func (s *site) trust(r *Request) trust {
	switch {
	case s.Late:
		return late
	case slices.Contains(r.FailedHosts, s.ID):
		return failedIt
	case s.CordonedFor(r.SweepID):
		return tested
	case s.FailedStarts > 0, s.Missing(r.SweepID) != nil, slices.Contains(r.Unable, s.ID):
		return failing
	default:
		return healthy
	}
}

// pullLoad is the load added to a host that must first pull the request's image, or fetch
// its inputs: half of a host. Hosts that have all are filled to the half before another
// one pulls or fetches, once for all later trials.
func (s *site) pullLoad(r *Request) float64 {
	if slices.Contains(r.Lacking, s.ID) {
		return 0.5
	}

	return 0
}

// restartLoad is the load added to a host where the trial would start again, while
// another one has its checkpoint, or could fetch it from the store: a whole host. So the
// trial goes to a host that can use its checkpoint when it fits there and the host is
// trusted as much, and waits for none. A host that would fetch the checkpoint
// is a quarter of a host more loaded: a fetch takes less than a pull.
func (s *site) restartLoad(r *Request) float64 {
	holds := slices.Contains(r.Holders, s.ID)

	switch {
	case r.Checkpoint != "" && r.Checkpoint != s.ID, r.Stored && !s.StoresCheckpoints && !holds:
		return 1.5 // more than a pull and any load that fits
	case r.Stored && !holds:
		return 0.25
	default:
		return 0
	}
}

// candidate is how the spot looks with the demand on it.
func (s *site) candidate(d *berth.Demand, at *spot) candidate {
	if at.device >= 0 {
		dev := &s.Devices[at.device]
		reserved, total := dev.ReservedBytes+d.DeviceBytes, dev.CapacityBytes()

		load := max(share(reserved, total), share(dev.ActivityReserved+d.DeviceActivity, berth.FullActivity))

		return candidate{load: load, slack: total - reserved}
	}

	memory := s.MemoryReservedBytes + d.MemoryBytes
	load := max(share(memory, s.capacity), share(s.CPUMilliReserved+d.CPUMilli, s.CPUMilli))

	return candidate{load: load, slack: s.capacity - memory}
}
