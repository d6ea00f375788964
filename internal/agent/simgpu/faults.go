package simgpu

import (
	"time"

	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/simgpu/wire"
)

// Fault is a fault that a tester injects into a GPU. One of the fields is set.
type Fault struct {
	XID  int  `json:"xid,omitempty"`  // the driver reports this error; nothing else happens
	ECC  bool `json:"ecc,omitempty"`  // the memory loses data: programs there end
	Lose bool `json:"lose,omitempty"` // the GPU disappears, for good: XID 79
	Hang bool `json:"hang,omitempty"` // the driver answers no more questions about it
	Wake bool `json:"wake,omitempty"` // until it does again
}

// XIDs that the simulated GPU reports on its own.
const (
	xidIllegalAddress = 31
	xidDoubleBit      = 48
	xidOffTheBus      = 79
)

func lostText(uuid string) string {
	return "the simulated GPU " + uuid + " is lost: start the worker again"
}

// inject lets something go wrong.
func (c *card) inject(f Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()

	switch {
	case f.Lose:
		c.lost = true
		c.throwOut(wire.DeviceLost, func(*client) bool { return true })
		c.report(gpu.Event{XID: xidOffTheBus})
	case f.ECC:
		c.throwOut(wire.Uncorrectable, func(*client) bool { return true })
		c.report(gpu.Event{XID: xidDoubleBit, UncorrectedECC: true})
	case f.Hang && c.hung.IsZero():
		c.hung, c.unhung = time.Now(), make(chan struct{})
	case f.Wake && !c.hung.IsZero():
		c.hung = time.Time{}
		close(c.unhung)
	case f.XID != 0:
		c.report(gpu.Event{XID: f.XID})
	}
}

func (c *card) report(e gpu.Event) {
	e.UUID, e.At = c.uuid, time.Now()
	c.tell(e)
}

// crash is a program's access to a foreign address. By time slices it ends that
// program alone. By MPS it ends every client of the GPU, and the MPS server refuses
// clients until all of them have gone (NVIDIA's guide to MPS, Volta and newer).
func (c *card) crash(cl *client) wire.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.fault(cl)

	return c.refuse(cl, cl.why)
}

// fault ends the work of a program, and by MPS of all. Call it with mu held.
func (c *card) fault(cl *client) {
	c.throwOut(wire.IllegalAddress, func(one *client) bool { return one == cl || cl.mps && one.mps })
	c.faulty = c.faulty || cl.mps
	c.report(gpu.Event{XID: xidIllegalAddress})
}

// throwOut ends the work of clients: each call of theirs, the present one too, is
// answered with the error. They hold their memory until they are gone. Call it with
// mu held.
func (c *card) throwOut(why wire.Code, who func(*client) bool) {
	for _, cl := range c.clients {
		if cl.why == "" && who(cl) {
			cl.why = why
			close(cl.ended)
		}
	}
}
