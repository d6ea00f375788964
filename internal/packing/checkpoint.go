package packing

import (
	"slices"

	"github.com/berthml/berth"
)

// savesAfter is how often a trial may have failed on a host, through the host's fault, before
// it begins anew elsewhere instead of waiting for it: of its free retries some are left
// (berth.MaxFreeRetries).
const savesAfter = 3

// diskFor is how much of the disk is for the request's checkpoint and those of others. What
// fetches none waits for none: a fetch that is under way counts in what is free, too.
func (s *site) diskFor(r *Request) int64 {
	if fetches := s.fetches(r); fetches > 0 {
		return s.FetchBytes + fetches
	}

	return 0
}

// fetches is how much of a checkpoint the host would fetch for the request: one without a
// store starts it without.
func (s *site) fetches(r *Request) int64 {
	if !s.StoresCheckpoints || slices.Contains(r.Fetched, s.ID) {
		return 0
	}

	return r.Fetch
}

// stored reports whether the trial has a checkpoint in the store, or will have it in a while.
func (r *Request) stored() bool { return r.Fetch > 0 || r.Coming }

// loses reports whether the trial, which has a checkpoint in the store, would begin anew on
// the host: it has no store, and nothing of the trial.
func (s *site) loses(r *Request) bool {
	return r.stored() && !s.StoresCheckpoints && !slices.Contains(r.Fetched, s.ID)
}

// saves reports whether a host could hold the request, once others have ended and its disk has
// room, that goes on from the trial's checkpoint. What was computed for hours is worth that
// wait. It is not worth one that may have no end: a host that is lost, drained, cordoned or has a
// problem is waited for only while its worker starts, and none on which the trial fails.
func (l *ledger) saves(r *Request) bool {
	return r.stored() && slices.ContainsFunc(l.hosts, func(s site) bool {
		return !s.loses(r) && (s.State == berth.HostReady || s.Passing()) && s.holds(r) && s.diskHolds(r) &&
			!s.CordonedFor(r.SweepID) && !slices.Contains(r.avoid, s.ID) && s.failures(r) < savesAfter
	})
}

// diskHolds reports whether the disk, when empty, has room for the checkpoint.
func (s *site) diskHolds(r *Request) bool {
	return s.DiskBytes == 0 || s.DiskBytes-s.DiskHeadroomBytes >= s.fetches(r)
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
