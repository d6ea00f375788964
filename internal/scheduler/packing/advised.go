package packing

import (
	"slices"

	"github.com/berthml/berth"
)

// The effects of an advice for GPUs (berth.Advice): how many share one, in which mode,
// and the cores that each of them books.

// gpuCPU is an even part of the host's cores for each attempt, at the advised number of attempts
// on the GPUs that take any. That number was measured to be best, cores included.
func gpuCPU(h berth.Host) int64 {
	total := 0

	for _, dev := range h.Devices {
		if dev.Advice.AtOnce == 0 && dev.Refusal() == "" {
			return 0
		}

		total += dev.Advice.AtOnce
	}

	if total == 0 {
		return 0
	}

	return h.CPUMilli / int64(total)
}

// demand is the request's demand on the host for a class. The user's number of
// cores stands.
func (s *site) demand(r *Request, class int) *berth.Demand {
	d := r.on[class]
	if d == nil || class == 0 || s.gpuCPU == 0 || r.CPUsGiven || d.CPUMilli <= s.gpuCPU {
		return d
	}

	less := *d
	less.CPUMilli = s.gpuCPU

	return &less
}

// modesOf are the modes of a GPU, the advised one first.
func modesOf(dev berth.Device) []berth.SharingMode {
	modes := dev.Modes()
	if i := slices.Index(modes, dev.Advice.Mode); i > 0 {
		modes[0], modes[i] = modes[i], modes[0]
	}

	return modes
}

// hasAdvised reports whether the GPU of a spot has as many attempts as it is advised to
// take in the spot's mode.
func (s *site) hasAdvised(at *spot) bool {
	dev := &s.Devices[at.device]

	return dev.Advice.Capped && dev.Attempts >= dev.Advice.AtOnce && at.mode == dev.Advice.Mode
}

// drains reports whether the GPU of a spot runs empty, so that its attempts share it
// in another mode: it is advised to, and the request can be there in that mode.
func (s *site) drains(r *Request, at *spot) bool {
	dev := &s.Devices[at.device]
	if dev.Attempts == 0 || dev.Advice.Mode == "" || dev.Advice.Mode == dev.Mode || at.mode != dev.Mode {
		return false
	}

	for i := at.first; i < len(s.spots) && s.spots[i].device == at.device; i++ {
		if other := &s.spots[i]; other.mode == dev.Advice.Mode && dev.ProblemBy(other.mode) == "" {
			d := s.demand(r, other.class)

			return d != nil && s.never(d, other) == fits
		}
	}

	return false
}
