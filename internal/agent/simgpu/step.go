package simgpu

import (
	"time"

	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/simgpu/wire"
)

const (
	// idleAfter is how long after its last step a program no longer counts as running.
	idleAfter = 250 * time.Millisecond

	// thinkWeight is how much the newest pause counts in the mean of a program's pauses.
	thinkWeight = 0.3
)

// stepper is how a client gets on.
type stepper struct {
	load    wire.Step // its newest step
	running bool      // a step
	ends    time.Time
	think   time.Duration // the mean pause between its steps
}

// active reports whether the client runs steps. Call it with mu held.
func (cl *client) active(now time.Time) bool {
	return cl.running || !cl.ends.IsZero() && now.Sub(cl.ends) < idleAfter+2*cl.think
}

// onGPU is the share of its time that a client would spend on a GPU of its own.
func (s *stepper) onGPU() float64 {
	if s.load.GPU <= 0 {
		return 0
	}

	return float64(s.load.GPU) / float64(s.load.GPU+s.think)
}

// step runs a step of a client, and returns when it is done, or the client has been
// thrown out or gone.
func (c *card) step(cl *client, s wire.Step, gone <-chan struct{}) wire.Answer {
	timer := time.NewTimer(c.begin(cl, s))
	defer timer.Stop()

	left := false

	select {
	case <-timer.C:
	case <-cl.ended:
	case <-gone:
		left = true
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	cl.running, cl.ends = false, time.Now()

	if left && cl.mps && cl.why == "" {
		c.fault(cl) // its memory goes while kernels use it (docs/measurements, one H200)
	}

	if cl.why != "" {
		return c.refuse(cl, cl.why)
	}

	return c.answer(cl)
}

// valid reports whether a GPU can run a step.
func valid(s wire.Step) bool {
	share := func(f float64) bool { return f >= 0 && f <= 1 } // false for NaN

	return s.GPU >= 0 && s.GPU <= time.Hour && share(s.SM) && share(s.Bus)
}

// begin begins a step and returns how long it takes beside the clients of this moment.
func (c *card) begin(cl *client, s wire.Step) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()

	now := time.Now()

	if !cl.ends.IsZero() {
		pause := now.Sub(cl.ends)
		if cl.think == 0 {
			cl.think = pause
		}

		cl.think += time.Duration(thinkWeight * float64(pause-cl.think))
	}

	cl.running, cl.load = true, s
	stretch := 1.0

	if wanted, own := c.demand(now).most(), cl.onGPU(); wanted > 1 && own > 0 {
		stretch = 1 + (wanted-1)/own
	}

	return time.Duration(float64(s.GPU) * stretch)
}

// demand is what the running clients want of a card, as shares of it. When they want no more
// than it has, none waits; else each gets an equal part of what it wants.
type demand struct {
	time, sm, bus float64
	mps           bool // all are clients of MPS: they use the SMs and the bandwidth at once; else each has the whole card in turns
}

func (d demand) most() float64 {
	if d.mps {
		return max(d.sm, d.bus)
	}

	return d.time
}

// demand is the card's at this moment. Call it with mu held.
func (c *card) demand(now time.Time) demand {
	d := demand{mps: true}

	for _, cl := range c.clients {
		if cl.active(now) {
			onGPU := cl.onGPU()
			d = demand{d.time + onGPU, d.sm + onGPU*cl.load.SM, d.bus + onGPU*cl.load.Bus, d.mps && cl.mps}
		}
	}

	return d
}

// Times of gpu.Driver's Activity.
const (
	shortestGauge = 100 * time.Millisecond
	longestGauge  = 10 * time.Second
)

// measure is how busy the GPU is, by what its clients want at this moment.
func (c *card) measure() gpu.Activity {
	c.mu.Lock()
	defer c.mu.Unlock()

	now := time.Now()
	since := now.Sub(c.measured.To)

	if since <= shortestGauge {
		return c.measured
	}

	from := c.measured.To
	if since > longestGauge {
		from = now.Add(-shortestGauge - time.Millisecond)
	}

	d := c.demand(now)
	full := max(d.most(), 1)
	c.measured = gpu.Activity{From: from, To: now, SMActivity: d.sm / full, DRAMBandwidth: d.bus / full}

	return c.measured
}
