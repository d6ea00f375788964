package runtrial

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/sampling"
	"github.com/berthml/berth/internal/failure"
)

const (
	// flushEvery is how often metrics and log pieces are written.
	flushEvery = 500 * time.Millisecond
	// lastWriteFor is how long a worker that leaves an attempt may take to store what waits.
	lastWriteFor = time.Second
	// keepUsageEvery is how often what was measured is written to disk: what a
	// killed worker measured since is lost, and counts as not measured.
	keepUsageEvery = 10 * time.Second
	// drainTimeout bounds how long the rest of the log is waited for once the
	// container has exited: that no piece of it comes, for all of it may take
	// longer (750,000 short lines, of which Docker passes on 20,000 a second).
	drainTimeout = 10 * time.Second
)

// observation is what was seen of a container from start or adoption to exit.
type observation struct {
	*output

	exit    berth.Container
	usage   berth.Usage
	host    failure.HostEvidence
	disk    failure.DiskEvidence
	device  *sampling.DeviceWatch
	said    shimReport
	left    pending  // of what the output holds
	omitted []string // what a person must know of it
}

// errLogStuck is when Docker has not given the rest of a log in time. The
// container stays, so the next Run reads it from the start.
var errLogStuck = berth.Errorf(berth.KindUnavailable, "Docker has given no more of the log for %s, nor its end", drainTimeout)

// watch follows a container to its exit. It stops the container when it runs
// too long or when ctx ends with berth.ErrStop; any other end of ctx
// detaches.
func (r *run) watch(ctx context.Context) (observation, error) {
	// Followers outlive ctx when the container is being stopped.
	followCtx, detach := context.WithCancel(context.WithoutCancel(ctx))
	defer detach()

	r.kept = r.dirs.record(r.container.ID)
	known := most(r.order.Progress.Usage, r.kept.Usage)
	sampler := &sampler{usage: known, before: known, Coverage: r.coverage(), device: sampling.NewDeviceWatch(r.coverage(), known)}
	r.trace = sampling.NewTrace(r.startedAt)
	r.intent, r.askedAt, r.disk, r.diskKept = r.kept.Intent, r.kept.AskedAt, r.kept.Disk, r.kept.Disk
	r.missed = r.container.Adopted && r.container.State == berth.ContainerExited
	before := r.cpuIdle()
	output := newOutput(r)
	excess := make(chan failure.Intent, 4) // one place for each that may send
	lost := make(chan struct{})
	output.flood, output.judge = excess, newJudge(r, output, excess)

	group, followCtx := errgroup.WithContext(followCtx)
	exited := make(chan struct{})

	logCtx, endLog := context.WithCancelCause(followCtx)
	defer endLog(nil)

	var exit berth.Container

	group.Go(func() error { // the wait decides when all others end
		var err error
		exit, err = r.containers.Wait(followCtx, r.container.ID)

		close(exited)
		output.endWhenStuck(func() { endLog(errLogStuck) }) // harmless when the log has ended

		return err
	})
	group.Go(func() error { return r.sample(followCtx, exited, sampler, excess) })
	group.Go(func() error { return r.sampleDevice(followCtx, exited, sampler.device, lost) })
	group.Go(func() error { return output.follow(logCtx, exited) })
	group.Go(func() error { return output.flush(followCtx, exited, sampler.device) })
	group.Go(func() error { return r.watchSize(followCtx, exited, excess) })
	group.Go(func() error { return r.supervise(ctx, followCtx, exited, excess, lost) })

	if err := group.Wait(); err != nil {
		return observation{}, err
	}

	sampler.device.Into(&sampler.usage, sampler.before)
	sampler.usage.CPUContended = contended(before, r.cpuIdle())
	r.settleExcess(excess)

	left := output.finish()
	left.Memory = r.trace.Rest()

	return observation{
		output: output, exit: exit, usage: sampler.usage, host: sampler.host, disk: r.diskEvidence(ctx, exit.FinishedAt), device: sampler.device,
		said: output.shim.report(), left: left, omitted: append(output.notes(), r.deviceNote),
	}, nil
}

// announce writes down that the container runs; the result says it, too. Errors: fenced.
func (r *run) announce(ctx context.Context) (done bool, err error) {
	err = r.records.AttemptRunning(ctx, r.who.Attempt.ID, r.order.Token, r.container.ID, r.startedAt)

	switch {
	case err == nil, berth.KindOf(err) == berth.KindFenced:
		return true, err
	case ctx.Err() == nil:
		r.log.Warn("noting that the attempt runs; trying again", "attempt", r.who.Attempt.ID, "error", err)
	}

	return false, nil
}

// supervise stops the container for a reason of ours, or ends the followers
// with ErrDetached when it has to go on without us.
func (r *run) supervise(ctx, followCtx context.Context, exited <-chan struct{}, excess <-chan failure.Intent, lost <-chan struct{}) error {
	if r.intent != failure.IntentNone { // an earlier Run was about to stop it
		return r.end(followCtx, r.intent)
	}

	limit, why := r.allowed()
	tooLong := time.NewTimer(time.Until(r.startedAt.Add(limit)))

	defer tooLong.Stop()

	if limit == 0 {
		tooLong.Stop()
	}

	select {
	case <-exited:
		return nil
	case <-followCtx.Done():
		return nil
	case why := <-excess:
		return r.stopExcess(followCtx, why)
	case <-lost:
		r.log.Warn("the GPU of an attempt is lost; stopping it", "attempt", r.who.Attempt.ID, "device", r.who.Attempt.DeviceID)

		return r.end(followCtx, failure.IntentDevice)
	case <-tooLong.C:
		return r.end(followCtx, why)
	case <-ctx.Done():
		if !stopped(ctx) {
			return fmt.Errorf("%w (%w)", ErrDetached, context.Cause(ctx))
		}

		return r.end(followCtx, failure.IntentCancel)
	}
}

// sampler keeps the largest of what was measured.
type sampler struct {
	sampling.Coverage

	usage  berth.Usage
	before berth.Usage          // what earlier Runs measured
	host   failure.HostEvidence // as read last
	device *sampling.DeviceWatch
}

func (r *run) coverage() sampling.Coverage {
	return sampling.Coverage{StartedAt: r.startedAt, Every: r.config.SampleEvery}
}

// sample reads the container's cgroup until it is gone; about once a second it looks at what
// the host has left, and reports progress. Not being able to measure does not end an attempt: its
// usage then says zero samples. It tells excess once when a client of MPS holds more than is
// reserved for it.
func (r *run) sample(ctx context.Context, exited <-chan struct{}, s *sampler, excess chan<- failure.Intent) error {
	meter, err := r.meter(r.container)
	if err != nil {
		if r.container.State == berth.ContainerRunning {
			r.log.Warn("cannot measure the container", "attempt", r.who.Attempt.ID, "error", err)
		}

		meter = nil
	}

	r.look(s)
	r.beat(s.usage)
	defer r.keepUsage(s) // for whoever adopts the container

	told := false

	for n := 1; ; n++ {
		if meter != nil {
			if m, err := meter.Read(); err == nil {
				now := time.Now()
				s.add(m, now)

				if r.holdsTooMuch(m) && !told {
					told = true
					excess <- failure.IntentMemory
				}

				r.trace.AddHost(m.WorkingSetBytes, now)
			}
		}

		if n%max(int(time.Second/s.Every), 1) == 0 {
			r.look(s)
			s.device.Into(&s.usage, s.before)
			r.beat(s.usage)
		}

		if n%max(int(keepUsageEvery/s.Every), 1) == 0 {
			r.keepUsage(s)
		}

		select {
		case <-time.After(untilNext(s.Every)):
		case <-exited:
			r.lookAtDisk()

			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// untilNext is the time to the next multiple of every. Attempts that look at the same moments
// wake an idle machine together: 100 silent ones take 4 % of a core, one by one 7 %.
func untilNext(every time.Duration) time.Duration {
	return every - time.Duration(time.Now().UnixNano())%every
}

// holdsTooMuch reports whether a client of MPS holds what the kernel would kill others for.
func (r *run) holdsTooMuch(m berth.MemorySample) bool {
	a := r.who.Attempt

	return a.DeviceID != "" && a.Class.Mode() == berth.SharingMPS && m.WorkingSetBytes >= a.Demand.MemoryBytes
}

// keepUsage writes down what was measured: Temporal's heartbeat, which says it
// too, is lost with an attempt of the activity that ended without one.
func (r *run) keepUsage(s *sampler) {
	if err := r.keep(func(k *record) { k.Usage = s.usage }); err != nil {
		r.log.Warn("writing usage down", "attempt", r.who.Attempt.ID, "error", err)
	}
}

func (s *sampler) add(m berth.MemorySample, at time.Time) {
	s.Seen(&s.usage, at)
	s.usage.Samples++
	s.usage.MemoryPeakBytes = max(s.usage.MemoryPeakBytes, m.WorkingSetBytes)
	s.usage.CPU = max(s.usage.CPU, berth.Duration(m.CPU))
	s.usage.CPUPeriods = max(s.usage.CPUPeriods, m.Periods)
	s.usage.CPUThrottled = max(s.usage.CPUThrottled, m.Throttled)
	s.usage.OOMKills = max(s.usage.OOMKills, m.OOMKills)
	s.usage.BelowLimit = m.BelowLimit
	sampling.CloseGaps(&s.usage, m.HighWaterBytes)
}

// look reads what memory and disk the host has left.
func (r *run) look(s *sampler) {
	r.lookAtDisk()

	s.host = failure.HostEvidence{}
	if r.config.Available == nil {
		return
	}

	bytes, err := r.left.read(r.config.Available)
	if err != nil {
		r.log.Warn("reading the host's available memory", "error", err)

		return
	}

	s.host = failure.HostEvidence{Measured: true, AvailableBytes: bytes}
}

// hostMemory is what the host has left, which all attempts read. The kernel adds up its
// counters at each reading.
type hostMemory struct {
	mu    sync.Mutex
	at    time.Time
	bytes int64
	err   error
}

// hostMemoryEvery is how old a reading of it may be; each attempt looks once a second.
const hostMemoryEvery = 500 * time.Millisecond

func (h *hostMemory) read(available func() (int64, error)) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if time.Since(h.at) >= hostMemoryEvery {
		h.bytes, h.err = available()
		h.at = time.Now()
	}

	return h.bytes, h.err
}

// idleTime is a reading of the host's processor time.
type idleTime struct {
	idle, total int64
	known       bool
}

func (r *run) cpuIdle() idleTime {
	if r.config.CPUIdle == nil {
		return idleTime{}
	}

	idle, total, err := r.config.CPUIdle()
	if err != nil {
		r.log.Warn("reading the host's processor time", "error", err)
	}

	return idleTime{idle: idle, total: total, known: err == nil}
}

// spare is the part of a host's processor time that must have been idle for a
// job to have got all the CPU it wanted.
const spare = 0.10

func contended(before, after idleTime) bool {
	total := after.total - before.total

	return !before.known || !after.known || total <= 0 || float64(after.idle-before.idle) < spare*float64(total)
}

func (r *run) beat(u berth.Usage) {
	if r.order.Beat != nil {
		r.order.Beat(berth.Progress{ContainerID: r.container.ID, StartedAt: r.startedAt, Usage: u})
	}
}
