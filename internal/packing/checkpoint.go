package packing

import (
	"fmt"
	"slices"

	"github.com/berthml/berth"
)

// savesAfter is how often a trial may have failed on a host, through the host's fault, or how
// often the host's disk may have refused its checkpoint, before it starts again elsewhere
// without the checkpoint. It leaves some of the trial's free retries (berth.MaxFreeRetries).
const savesAfter = 3

// diskFor is the disk space for the request's checkpoint and others' checkpoints. A request
// without a checkpoint needs none: the free space already counts fetches in flight.
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

// losesCheckpoint reports whether a trial with a stored checkpoint would start again without it on
// the host: the host has no store, and no files of the trial.
func (s *site) losesCheckpoint(r *Request) bool {
	return r.stored() && !s.StoresCheckpoints && !slices.Contains(r.Fetched, s.ID)
}

// savedSomewhere reports whether a host that can use the trial's checkpoint could hold the request once
// others have ended and its disk has room. Hours of computation are worth that wait, unless it
// may never end.
func (l *ledger) savedSomewhere(r *Request) bool {
	return r.stored() && slices.ContainsFunc(l.hosts, func(s site) bool { return s.savesCheckpoint(r) })
}

// savesCheckpoint reports whether the host is worth the wait. It is not if a person drained it, or
// it is cordoned, gone, failing this trial, or has only closed GPUs.
func (s *site) savesCheckpoint(r *Request) bool {
	if s.losesCheckpoint(r) || !s.returns() || s.lacks(r) != fits || !s.diskHolds(r) || s.CordonedFor(r.SweepID) || s.avoided(r) || s.failures(r) >= savesAfter {
		return false
	}

	for at := range s.spotsFor(r) {
		if s.opensLater(s.demand(r, at.class), at) {
			return true
		}
	}

	return false
}

// shun returns the hosts whose disks lately did not take the checkpoint, though bytes may be free
// there, as long as another host takes attempts and could hold the request and its checkpoint.
func (l *ledger) shun(r *Request) []string {
	if len(r.Shunned) == 0 {
		return nil
	}

	for i := range l.hosts {
		if s := &l.hosts[i]; !slices.Contains(r.Shunned, s.ID) && s.State == berth.HostReady && s.savesCheckpoint(r) {
			return r.Shunned
		}
	}

	return nil
}

// avoided reports whether the request does not go to the host for a while.
func (s *site) avoided(r *Request) bool {
	return slices.Contains(r.avoid, s.ID) || slices.Contains(r.shun, s.ID)
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

// filesDisk returns the free and total bytes of the disk that checkpoints are fetched to; 0 =
// not known. Without a separate value it is the host's fuller disk.
func (s *site) filesDisk() (free, total int64) {
	if s.FilesDiskBytes > 0 {
		return s.FilesFreeBytes, s.FilesDiskBytes
	}

	return s.DiskFreeBytes, s.DiskBytes
}

// diskHolds reports whether the disk, when empty, has room for the checkpoint. Without a
// checkpoint it returns true, also for a full disk: a person makes room on it.
func (s *site) diskHolds(r *Request) bool {
	_, total := s.filesDisk()
	fetched := s.fetches(r)

	return fetched == 0 || total == 0 || total-s.DiskHeadroomBytes >= fetched
}

// failures is how often the trial failed on the host through no fault of its own, or did not
// start because the disk did not take its checkpoint.
func (s *site) failures(r *Request) (n int) {
	for _, hosts := range [][]string{r.FailedHosts, r.Refused} {
		for _, id := range hosts {
			if id == s.ID {
				n++
			}
		}
	}

	return n
}

// noRoomReason says why the disk, which has its headroom, has no room for the checkpoint.
func (s *site) noRoomReason(r *Request) string {
	others, next := "", "free space there"
	if s.FetchBytes > 0 {
		others, next = fmt.Sprintf(" beside %s that other attempts fetch there now", neededText(s.FetchBytes)), "the trial waits for them, or free space there"
	}

	there, _ := s.filesDisk()

	return fmt.Sprintf("host %s: the trial's checkpoint has %s%s, and of %s of disk that are free it keeps %s: %s",
		s.Name, neededText(r.Fetch), others, freeText(there), neededText(s.DiskHeadroomBytes), next)
}

// neverRoomReason says why the disk has no room for the checkpoint even when it is empty.
func (s *site) neverRoomReason(r *Request) string {
	_, total := s.filesDisk()

	return fmt.Sprintf("host %s: the trial's checkpoint has %s, and of the %s of its disk it keeps %s (--disk-headroom): it takes a host with a larger disk, "+
		"or one without a store (--artifacts), where the trial begins anew", s.Name, neededText(r.Fetch), freeText(total), neededText(s.DiskHeadroomBytes))
}
