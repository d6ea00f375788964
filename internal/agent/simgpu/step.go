package simgpu

import (
	"time"

	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/simgpu/wire"
)

const (
	// chunk is how long a step goes on before it checks its neighbours again.
	chunk = 50 * time.Millisecond

	// idleAfter is how long after its last step a program no longer counts as running.
	idleAfter = 250 * time.Millisecond

	// mostAhead bounds how much time a step that took too long, because timers and
	// machines are late, takes off the next ones.
	mostAhead = 20 * time.Millisecond

	// thinkWeight is how much the newest pause counts in the mean of a program's pauses.
	thinkWeight = 0.3
)

// stepper is how a client gets on.
type stepper struct {
	load    wire.Step // its newest step
	running bool      // a step
	ends    time.Time
	think   time.Duration // the mean pause between its steps
	ahead   time.Duration // that steps took longer than they should have
}

// active reports whether the client runs steps. Call it with mu held.
func (cl *client) active(now time.Time) bool {
	return cl.running || !cl.ends.IsZero() && now.Sub(cl.ends) < idleAfter+2*cl.think
}

// step runs a step of a client, and returns when it is done, or the client has been
// thrown out or gone.
func (c *card) step(cl *client, s wire.Step, gone <-chan struct{}) wire.Answer {
	if !valid(s) {
		c.mu.Lock()
		defer c.mu.Unlock()

		return c.refuse(cl, wire.InvalidValue)
	}

	c.begin(cl, s)
	defer c.end(cl)

	for left := 1.0; left > 1e-9; {
		stretched, why := c.stepTime(cl)
		if why != "" {
			break
		}

		// The overrun of earlier steps is taken off.
		wanted := min(time.Duration(left*float64(stretched)), chunk)
		before := time.Now()

		if pause := wanted - cl.ahead; pause > 0 {
			timer := time.NewTimer(pause)

			select {
			case <-timer.C:
			case <-cl.ended:
			case <-gone:
				c.vanish(cl)

				left = 0
			}

			timer.Stop()
		}

		cl.ahead = min(max(cl.ahead+time.Since(before)-wanted, 0), mostAhead)

		done := 1.0
		if stretched > 0 {
			done = min(float64(wanted)/float64(stretched), left)
		}

		c.addActivity(cl, done)
		left -= max(done, 1e-9)
	}

	c.mu.Lock()
	defer c.mu.Unlock()

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

func (c *card) begin(cl *client, s wire.Step) {
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

	cl.running = true
	cl.load = s
}

func (c *card) end(cl *client) {
	c.mu.Lock()
	defer c.mu.Unlock()

	cl.running, cl.ends = false, time.Now()
}

// stepTime is how long the client's step takes beside the running ones.
func (c *card) stepTime(cl *client) (time.Duration, wire.Code) {
	c.mu.Lock()
	defer c.mu.Unlock()

	return time.Duration(float64(cl.load.GPU) * c.stretch(cl, time.Now())), cl.why
}

// stretch is how many times longer a step takes beside the other clients: none while they
// want no more than the card has, else each gets an equal part of what it wants. Clients of
// MPS want shares of the SMs and of the bandwidth at once; when one is no client of MPS, each
// wants the whole card in turns. Call it with mu held.
func (c *card) stretch(cl *client, now time.Time) float64 {
	var turns, sm, bus float64

	mps := true

	for _, one := range c.clients {
		if one == cl || one.active(now) {
			onGPU := one.onGPU()
			turns, sm, bus, mps = turns+onGPU, sm+onGPU*one.load.SM, bus+onGPU*one.load.Bus, mps && one.mps
		}
	}

	wanted := turns
	if mps {
		wanted = max(sm, bus)
	}

	if own := cl.onGPU(); wanted > 1 && own > 0 {
		return 1 + (wanted-1)/own
	}

	return 1
}

// onGPU is the share of its time that a client would spend on a GPU of its own.
func (s *stepper) onGPU() float64 {
	if s.load.GPU <= 0 {
		return 0
	}

	return float64(s.load.GPU) / float64(s.load.GPU+s.think)
}

// activity is the GPU's total work, and the time of the last query.
type activity struct {
	sm, bus, busy float64 // seconds of the whole card
	last          gauge
	answer        gpu.Activity
}

type gauge struct {
	at            time.Time
	sm, bus, busy float64
}

// addActivity adds a share of a client's step to the GPU's activity.
func (c *card) addActivity(cl *client, done float64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	seconds := done * cl.load.GPU.Seconds()
	c.activity.sm += seconds * cl.load.SM
	c.activity.bus += seconds * cl.load.Bus
	c.activity.busy += seconds
}

// restartActivity restarts the account of activity.
func (c *card) restartActivity(now time.Time) {
	a := &c.activity
	a.last = gauge{at: now, sm: a.sm, bus: a.bus, busy: a.busy}
}

// restart begins a measurement of activity.
func (c *card) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.restartActivity(time.Now())
}

// Times of gpu.Driver's Activity.
const (
	shortestGauge = 100 * time.Millisecond
	longestGauge  = 10 * time.Second
)

// measured is how busy the GPU was since the measurement began. ok is false when it
// began too recently, or too long ago to describe the present: then it begins again,
// and there is an answer after wait.
func (c *card) measured(again bool) (a gpu.Activity, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	now := time.Now()
	since := now.Sub(c.activity.last.at)

	switch {
	case since <= shortestGauge && !c.activity.answer.To.IsZero() && c.activity.answer.To.Equal(c.activity.last.at):
		return c.activity.answer, 0
	case since > longestGauge && !again:
		c.restartActivity(now)

		return a, shortestGauge + time.Millisecond
	case since <= shortestGauge:
		return a, shortestGauge + time.Millisecond - since
	}

	from, s := c.activity.last, since.Seconds()
	c.restartActivity(now)

	to := c.activity.last
	c.activity.answer = gpu.Activity{
		From: from.at, To: to.at,
		SMActivity:    gpu.Of((to.sm - from.sm) / s),
		DRAMBandwidth: gpu.Of((to.bus - from.bus) / s),
		Utilisation:   gpu.Of((to.busy - from.busy) / s),
	}

	return c.activity.answer, 0
}
