package packing

import (
	"slices"

	"github.com/berthml/berth"
)

// savesAfter is how often a trial may have failed on a host, through the host's fault,
// before it starts again elsewhere without the checkpoint. It leaves some of the trial's
// free retries (berth.MaxFreeRetries).
const savesAfter = 3

// losesCheckpoint reports whether a trial with a stored checkpoint would start again without it on
// the host: the host has no store, and no files of the trial.
func (s *site) losesCheckpoint(r *Request) bool {
	return r.Stored && !s.StoresCheckpoints && !slices.Contains(r.Holders, s.ID)
}

// savedSomewhere reports whether a host that can use the trial's checkpoint could hold the request once
// others have ended. Hours of computation are worth that wait, unless it may never end.
func (l *ledger) savedSomewhere(r *Request) bool {
	return r.Stored && slices.ContainsFunc(l.hosts, func(s site) bool { return s.savesCheckpoint(r) })
}

// savesCheckpoint reports whether the host is worth the wait. It is not if a person drained it, or
// it is cordoned, gone, failing this trial, or has only closed GPUs.
func (s *site) savesCheckpoint(r *Request) bool {
	if s.losesCheckpoint(r) || !s.returns() || s.lacks(r) != fits || s.CordonedFor(r.SweepID) || slices.Contains(r.avoid, s.ID) || s.failures(r) >= savesAfter {
		return false
	}

	for at := range s.spotsFor(r) {
		if s.opensLater(s.demand(r, at.class), at) {
			return true
		}
	}

	return false
}

// returns reports whether the host takes attempts, or may do so again in a while: it restarts,
// its Docker does, or all hosts were silent as the database was away.
func (s *site) returns() bool {
	switch s.State {
	case berth.HostReady:
		return true
	case berth.HostLost, berth.HostUnready:
		return !s.Drained && s.AbsentFor < berth.HostGrace
	default:
		return false
	}
}

// opensLater reports whether the spot takes the demand once the attempts of the host have ended, as
// far as is known: the use of programs outside Berth is not known on a host or GPU with a
// problem.
func (s *site) opensLater(d *berth.Demand, at *spot) bool {
	switch {
	case s.never(d, at) != fits:
		return false
	case s.Problem != "":
		return true
	case at.device < 0:
		return d.MemoryBytes <= s.MemoryFreeBytes
	}

	switch dev := &s.Devices[at.device]; {
	case d.MemoryBytes > s.MemoryFreeBytes, dev.CordonedAt != nil:
		return false
	case dev.Problem != "":
		return dev.Passing() || dev.Problem == berth.NotHandedOut // which has an end
	default:
		return dev.ProblemBy(at.mode) == "" && d.DeviceBytes <= dev.FreeBytes
	}
}

// failures is how often the trial failed on the host through no fault of its own.
func (s *site) failures(r *Request) (n int) {
	for _, id := range r.FailedHosts {
		if id == s.ID {
			n++
		}
	}

	return n
}
