package runtrial

import (
	"cmp"
	"context"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/sampling"
	"github.com/berthml/berth/internal/failure"
)

// lastWordFor is how long the end of an attempt waits for what is known of its GPU.
const lastWordFor = 2 * time.Second

// ReadDevice reads the GPU of a running container.
type ReadDevice func(ctx context.Context, c berth.Container, deviceID string) (sampling.DeviceReading, error)

// sampleDevice reads the GPU until the container has ended. That it cannot be
// read ends no attempt: its usage then says zero samples. It has a loop of its
// own, as a driver that hangs must not hold up the readings of host memory.
// It tells on lost when the attempt cannot go on there.
func (r *run) sampleDevice(ctx context.Context, exited <-chan struct{}, w *sampling.DeviceWatch, lost chan<- struct{}) error {
	id := r.who.Attempt.DeviceID
	if id == "" || r.config.Device == nil {
		return nil
	}

	who := sampling.Tenant{DeviceID: id, AttemptID: r.who.Attempt.ID, ContainerID: r.container.ID, Shape: r.who.Attempt.ShapeKey}
	r.activity.Watch(id, who.ContainerID)

	defer r.activity.Unwatch(who)

	ticker := time.NewTicker(r.config.SampleEvery)
	defer ticker.Stop()

	var unread, unshared doubt

	for {
		select { // of a container that is gone a reading says nothing, but for the GPU's own problem
		case <-exited:
			r.lastWord(ctx, w)

			return nil
		default:
		}

		reading, err := r.config.Device(ctx, r.container, id)
		if ctx.Err() != nil {
			return nil
		}

		if err == nil {
			at := cmp.Or(reading.At, time.Now())
			w.Add(reading, at)
			r.trace.AddDevice(reading.UsedBytes, at)
			r.apportion(who, reading, w)
		}

		if reading.Unnamed {
			at := cmp.Or(reading.At, time.Now())
			w.Unnamed(reading, at)

			if reading.UsedBytes > 0 { // a part of it, which the peak counts, too
				r.trace.AddDevice(reading.UsedBytes, at)
			}
		}

		if len(reading.Beside) > 0 || r.activity.Company(id, who.ContainerID) {
			w.Joined()
		}

		w.Out(reading.Problem)

		if reading.Lost {
			close(lost)

			return nil
		}

		now := time.Now()
		if unread.lasts(err != nil, now) {
			r.log.Warn("cannot measure the GPU of the attempt", "attempt", r.who.Attempt.ID, "device", id, "error", err)
		}

		if unshared.lasts(err == nil && reading.Unshared && r.who.Attempt.Class.Mode() == berth.SharingMPS, now) {
			r.log.Warn(unsharedNote, "attempt", r.who.Attempt.ID, "device", id)
			r.deviceNote = unsharedNote
		}

		select {
		case <-ticker.C:
		case <-exited:
			r.lastWord(ctx, w)

			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// lastWord asks whether the GPU is out of order after the container's end: a program
// that its GPU takes down ends within milliseconds of that.
func (r *run) lastWord(ctx context.Context, w *sampling.DeviceWatch) {
	ctx, cancel := context.WithTimeout(ctx, lastWordFor)
	defer cancel()

	reading, _ := r.config.Device(ctx, r.container, r.who.Attempt.DeviceID) // it has its problem beside an error
	w.Out(reading.Problem)
}

// apportion notes what the attempt causes of its GPU's activity, while it holds
// something there.
func (r *run) apportion(who sampling.Tenant, reading sampling.DeviceReading, w *sampling.DeviceWatch) {
	switch {
	case reading.UsedBytes == 0:
		r.activity.Leave(who)
	case !reading.Activity.At.IsZero():
		own := r.activity.Divide(who, reading.Activity, reading.Beside)
		w.AddActivity(own, reading.Activity.At)
		r.trace.AddActivity(own, reading.Activity.At)
	}
}

// deviceDoubt is how long something must be wrong with the readings of a GPU before
// it is logged: a process that starts or ends holds nothing that the driver can name,
// or is in one of its lists alone.
const deviceDoubt = 5 * time.Second

// unsharedNote says that the attempt does not share its GPU as it should.
const unsharedNote = "a process of the attempt did not share its GPU by MPS, as it should: it took turns with the others, and nothing bounded its memory; " +
	"let neither its image nor its program set CUDA_MPS_PIPE_DIRECTORY"

// doubt tells what lasts from what passes. Zero = nothing is wrong.
type doubt struct {
	since time.Time
	said  bool
}

// lasts reports, once, that something has been wrong for deviceDoubt.
func (d *doubt) lasts(wrong bool, now time.Time) bool {
	switch {
	case !wrong:
		d.since = time.Time{}
	case d.since.IsZero():
		d.since = now
	case !d.said && now.Sub(d.since) >= deviceDoubt:
		d.said = true

		return true
	}

	return false
}

// deviceEvidence is what is known of the attempt's GPU; zero without one.
func (r *run) deviceEvidence(seen observation) failure.DeviceEvidence {
	if r.who.Attempt.DeviceID == "" {
		return failure.DeviceEvidence{}
	}

	free, measured := seen.device.LeastFree()
	problem, company := seen.device.State()

	u, demand := seen.usage, r.who.Attempt.Demand
	byMPS := r.who.Attempt.Class.Mode() == berth.SharingMPS

	return failure.DeviceEvidence{
		Asked: true, Must: r.who.Spec.Resources.Device == berth.DeviceGPU,
		Measured: u.DevicePeakBytes > 0 || u.DeviceMeasured(), PeakBytes: u.DevicePeakBytes, LimitBytes: demand.DeviceBytes + demand.SpillBytes,
		MPS: byMPS, Shared: byMPS && !demand.ExclusiveDevice,
		Alone:        demand.ExclusiveDevice || u.DeviceMeasured() && !company,
		Problem:      problem,
		NoGPU:        seen.tail.noGPU,
		FreeMeasured: measured && demand.SpillBytes == 0, // unified memory fills a GPU, and is no sign of a neighbour
		FreeBytes:    free, Stepped: seen.metrics.Any(),
	}
}
