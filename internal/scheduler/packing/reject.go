package packing

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
)

// Rejections says for each candidate host why the request is not there: first the former host or the
// class of GPU that it waits for, then the hosts that could hold it, then the others, each by id,
// and of a host each GPU that refuses by itself; the first limit of them (0 = all); nil when it is
// placed. A limit of the sweep is a single rejection. Free is the free capacity after the whole
// round, which is never more than the request saw.
func (d Decision) Rejections(limit int) []berth.Rejection {
	switch {
	case d.Placed:
		return nil
	case d.Limited():
		return []berth.Rejection{d.sweep}
	case len(d.ledger.hosts) == 0:
		return []berth.Rejection{{
			Dimension: berth.DimensionState,
			Reason:    "no machine is connected; start `berth worker` on one",
		}}
	}

	if limit <= 0 {
		limit = math.MaxInt
	}

	var rejections []berth.Rejection

	if d.former != nil {
		rejections = append(rejections, d.former.formerRejection())
	}

	if !d.request.hasClass() {
		rejections = append(rejections, berth.Rejection{
			Dimension: berth.DimensionDevice, Needed: 1,
			Reason: "no host is known that has a GPU which the sweep can use (resources.device, gpu_sharing); the trial waits for one",
		})
	}

	for _, could := range []bool{true, false} {
		for i := 0; i < len(d.ledger.hosts) && len(rejections) < limit; i++ {
			if s := d.ledger.hosts[i]; s.holds(d.request) == could {
				if d.Kept.HostID == s.ID {
					s = s.withoutKept(d)
				}

				rejections = append(rejections, s.rejections(d.request)...)
			}
		}
	}

	return rejections[:min(len(rejections), limit)]
}

// withoutKept is the host without the capacity that the round kept for the request
// itself.
func (s *site) withoutKept(d Decision) site {
	open := *s
	open.keeping = slices.Clone(s.keeping)

	if d.Kept.DeviceID == "" {
		open.kept = 0

		return open
	}

	for i := range open.spots {
		at := &open.spots[i]
		if at.device < 0 || s.Devices[at.device].ID != d.Kept.DeviceID || !s.inWantedMode(d.request, at) {
			continue
		}

		own := open.demand(d.request, at.class)
		open.keeping[at.device].kept = 0
		open.CPUMilliReserved -= own.CPUMilli
		open.MemoryReservedBytes -= own.MemoryBytes
		open.Attempts--
		open.Exclusive = open.Exclusive && !own.Exclusive
	}

	return open
}

// formerRejection says what happened to a former host, and how long the trial waits for
// another.
func (s *site) formerRejection() berth.Rejection {
	return berth.Rejection{
		HostID: s.ID, HostName: s.Name, Dimension: berth.DimensionState,
		Reason: fmt.Sprintf("host %s: %s, and no other host could hold the attempt; the trial waits until %s for one that does, and ends then",
			s.Name, s.Problem, s.FormerUntil.UTC().Format("2006-01-02 15:04 MST")),
	}
}

// cordonReason says why the host takes only test attempts of a sweep, or none of the trial.
func (s *site) cordonReason(r *Request) string {
	switch {
	case slices.Contains(r.avoid, s.ID):
		return "host " + s.Name + ": the image was missing there; another host may have it, and Berth tries this one again later. " +
			"The last failure: " + s.Missing(r.SweepID).Reason
	case s.FailsStartsOf(r.SweepID):
		return "host " + s.Name + ": cordoned, as it failed to start several trials in a row; Berth tests it now and then. The last failure: " + s.CordonReason
	}

	return "host " + s.Name + ": cordoned for this sweep, as its image was missing there several times in a row; " +
		"Berth tests it now and then. The last failure: " + s.Missing(r.SweepID).Reason
}

// stateReason says why the host takes no attempts, and how to change that.
func (s *site) stateReason() string {
	if s.Problem != "" {
		return "host " + s.Name + ": " + s.Problem
	}

	if s.State == berth.HostLost {
		return "host " + s.Name + ": its worker does not answer; the trial waits for it to come back"
	}

	return "host " + s.Name + ": drained; `berth host ready " + s.Name + "` lets it take attempts"
}

// sweepRejection says why the sweep keeps a request from a place. The count of
// running trials leaves out a lost host's for the sake of their retries:
// siblings in their places would run beside them once the host is back.
func sweepRejection(limit SweepLimit, away bool) berth.Rejection {
	taken := limit.Running + limit.waiting
	if !away {
		taken += limit.Away
	}

	switch {
	case limit.Paused:
		return berth.Rejection{Dimension: berth.DimensionSweep, Reason: "the sweep takes no new trials now"}
	case limit.MaxParallel > 0 && taken >= limit.MaxParallel:
		return berth.Rejection{
			Dimension: berth.DimensionSweep,
			Needed:    int64(taken) + 1,
			Free:      int64(limit.MaxParallel),
			Reason:    limit.reason(),
		}
	default:
		return berth.Rejection{}
	}
}

// reason names the holders of the sweep's places.
func (l SweepLimit) reason() string {
	if l.Running >= l.MaxParallel {
		return "the sweep's max_parallel is reached"
	}

	text := fmt.Sprintf("the sweep's max_parallel is %d: %d running", l.MaxParallel, l.Running)
	if l.waiting > 0 {
		text += fmt.Sprintf(", %d waiting for a host that is kept free", l.waiting)
	}

	if l.Away > 0 {
		text += fmt.Sprintf(", %d kept for attempts of a lost or unready host, "+
			"which go on there or on another one; `berth host remove` frees the places of a host that is gone for good", l.Away)
	}

	return text
}

// rejections gives for each spot that the request can use why it is not there:
// one for the host, when the host itself refuses, else one for each GPU.
func (s *site) rejections(request *Request) (all []berth.Rejection) {
	for at := range s.spotsFor(request) {
		if !s.inWantedMode(request, at) {
			continue
		}

		if r := s.reject(request, at); !slices.Contains(all, r) {
			all = append(all, r)
		}
	}

	if len(all) == 0 {
		all = append(all, berth.Rejection{HostID: s.ID, HostName: s.Name, Dimension: berth.DimensionDevice, Needed: 1, Never: true})
	}

	return all
}

// reject says which constraint check found broken, and by how much.
func (s *site) reject(request *Request, at *spot) berth.Rejection {
	d := s.demand(request, at.class)
	r := berth.Rejection{HostID: s.ID, HostName: s.Name, Never: s.never(d, at) != fits}
	reserved := *s

	if r.Never {
		reserved.MemoryReservedBytes, reserved.CPUMilliReserved = 0, 0
	}

	switch broken := s.checkSpot(request, at); broken {
	case breaksState:
		r.Dimension, r.Reason = berth.DimensionState, s.stateReason()
	case breaksDataset:
		r.Dimension, r.Needed = berth.DimensionDataset, 1
		r.Reason = s.datasetReason(missingDataset(request.Datasets, s.Datasets))
	case breaksSecret:
		r.Dimension, r.Needed = berth.DimensionSecret, 1
		r.Reason = fmt.Sprintf("host %s: cannot open the sweep's secrets; start its worker with --secrets-key and a file that holds the private key of %s",
			s.Name, missing(request.SecretKeys, s.SecretKeys))
	case breaksInputs:
		r.Dimension, r.Needed = berth.DimensionStage, 1
		r.Reason = fmt.Sprintf("host %s: has not the outputs of earlier stages that the trial reads; it goes where they were made", s.Name)
	case breaksCordon:
		r.Dimension, r.Reason = berth.DimensionState, s.cordonReason(request)
	case breaksKept:
		r.Dimension, r.Reason = berth.DimensionState, "host "+s.Name+": "+keptReason(s.kept)
	case breaksDisk:
		r.Dimension, r.Needed, r.Free = berth.DimensionDisk, s.DiskHeadroomBytes, s.DiskFreeBytes
	case breaksExclusive:
		r.Dimension, r.Needed = berth.DimensionExclusive, 1
	case breaksMemory:
		r.Dimension, r.Needed, r.Free = berth.DimensionMemory, d.MemoryBytes, s.capacity-reserved.MemoryReservedBytes
	case breaksFreeMemory:
		r.Dimension, r.Needed, r.Free = berth.DimensionFreeMemory, d.MemoryBytes, s.MemoryFreeBytes-s.MemoryReservedBytes
	case breaksCPU:
		r.Dimension, r.Needed, r.Free = berth.DimensionCPU, d.CPUMilli, s.CPUMilli-reserved.CPUMilliReserved
	case breaksAttempts:
		r.Dimension, r.Needed = berth.DimensionAttempts, 1
	case fits: // only a placement makes less room in a round
		r.Dimension, r.Reason = berth.DimensionState, "host "+s.Name+": has room now; the next round decides"
	default:
		s.rejectDevice(d, at, broken, &r)
	}

	r.Free = max(r.Free, 0)

	return r
}

// rejectDevice says which constraint of a GPU is broken, and by how much.
func (s *site) rejectDevice(d *berth.Demand, at *spot, broken rule, r *berth.Rejection) {
	dev := s.Devices[at.device]
	r.DeviceID = dev.ID

	if r.Never {
		dev.ReservedBytes, dev.ContextsReserved = 0, 0
	}

	switch broken {
	case breaksDeviceState:
		r.Dimension, r.Reason = berth.DimensionState, "host "+s.Name+", GPU "+dev.ID+": "+dev.ProblemBy(at.mode)
	case breaksDeviceKept:
		r.Dimension, r.Reason = berth.DimensionState, "host "+s.Name+", GPU "+dev.ID+": "+keptReason(s.keeping[at.device].kept)
	case breaksDeviceMode:
		r.Dimension, r.Reason = berth.DimensionState, fmt.Sprintf("host %s, GPU %s: %d attempt(s) share it by %s now, and this one is to share it by %s: "+
			"it waits for their end", s.Name, dev.ID, dev.Attempts, modeText(dev.Mode), modeText(at.mode))
	case breaksDeviceExclusive:
		r.Dimension, r.Needed = berth.DimensionExclusive, 1
	case breaksDeviceAttempts:
		r.Dimension, r.Needed = berth.DimensionAttempts, 1
	case breaksDeviceBytes:
		r.Dimension, r.Needed, r.Free = berth.DimensionDeviceBytes, d.DeviceBytes, dev.CapacityBytes()-dev.ReservedBytes
	case breaksDeviceFree:
		r.Dimension, r.Needed, r.Free = berth.DimensionFreeMemory, d.DeviceBytes, dev.FreeBytes-dev.ReservedBytes
	case breaksAdvice:
		r.Dimension, r.Needed = berth.DimensionAttempts, 1
		r.Reason = fmt.Sprintf("host %s, GPU %s: %d attempts share it, as many as it is to have now: %s", s.Name, dev.ID, dev.Attempts, dev.Advice.Why)
	case breaksAdvisedMode:
		r.Dimension, r.Reason = berth.DimensionState, fmt.Sprintf("host %s, GPU %s: %d attempt(s) share it by %s, and it is to be shared by %s once they have ended: %s",
			s.Name, dev.ID, dev.Attempts, modeText(dev.Mode), modeText(dev.Advice.Mode), dev.Advice.Why)
	case breaksActivity:
		r.Dimension, r.Needed, r.Free = berth.DimensionActivity, d.DeviceActivity, activityLimit(&dev, d)-dev.ActivityReserved
	default:
		r.Dimension, r.Needed, r.Free = berth.DimensionContexts, int64(contextCount(d)), int64(dev.ContextsBy(at.mode)-dev.ContextsReserved)
	}
}

// datasetReason says why the host lacks a data set, given as NAME or NAME@VERSION.
func (s *site) datasetReason(wanted string) string {
	name, version, _ := strings.Cut(wanted, "@")

	switch {
	case !berth.HasDataset(s.Datasets, name):
		return fmt.Sprintf("host %s: has no data set %q; start its worker with --dataset %s=PATH", s.Name, name, name)
	case len(berth.DatasetVersions(s.Datasets, name)) == 0:
		return fmt.Sprintf("host %s: is reading which version of data set %q it has", s.Name, name)
	default:
		return fmt.Sprintf("host %s: has data set %q in version %s, and the sweep reads version %s: copy the files with their times, as rsync -a does",
			s.Name, name, berth.DatasetVersions(s.Datasets, name)[0], version)
	}
}

// modeText is a mode as people say it.
func modeText(mode berth.SharingMode) string {
	if mode == berth.SharingMPS {
		return "MPS"
	}

	return "time slices"
}

func keptReason(turn time.Duration) string {
	return fmt.Sprintf("kept free for an attempt that is overdue, for %d h at most; then it is open for as long", int(turn.Hours()))
}
