package simgpu

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/simgpu/wire"
)

// Memory as one H200 with driver 580.159.04 had it (TensorFlow 2.21, 2026-11-21).
const (
	// contextBytes is a program's memory before its first allocation.
	contextBytes = 524 << 20

	// serverBytes is the memory of a GPU's MPS server once it has a client.
	serverBytes = 66 << 20

	// reservedPart: the driver keeps 1/reservedPart of the memory for itself, 616 of
	// 143,771 MiB.
	reservedPart = 233

	// maxClients is how many clients an MPS server takes before CUDA 13.1.
	maxClients = 48
)

// card is one simulated GPU. It is safe for concurrent use.
type card struct {
	uuid  string
	dir   string // with its sockets
	model string
	total int64 // bytes

	mu       sync.Mutex
	clients  []*client
	served   bool      // its MPS server runs: it had a client since the daemon started
	faulty   bool      // its MPS server refuses clients until its clients have gone
	lost     bool      // it does not work any more
	hung     time.Time // its driver does not answer since then; zero = it does
	unhung   chan struct{}
	measured gpu.Activity    // the newest
	tell     func(gpu.Event) // does not block
}

// client is one program's connection.
type client struct {
	stepper

	pid   int
	mps   bool
	limit int64 // 0 = none
	bytes int64 // context and all

	ended chan struct{} // closed when the card has thrown it out
	why   wire.Code     // valid once ended is closed
}

func newCard(uuid string, bytes int64, tell func(gpu.Event)) *card {
	return &card{uuid: uuid, model: berth.SimulatedModel + " " + sizeText(bytes), total: bytes, tell: tell}
}

// describe is the card as a driver lists it. MPS needs Volta or newer (7.0).
func (c *card) describe() gpu.Card {
	c.mu.Lock()
	defer c.mu.Unlock()

	d := gpu.Card{UUID: c.uuid, Model: c.model, MemoryBytes: c.total, Major: 9}
	if c.lost {
		d.Problem = lostText(c.uuid)
	}

	return d
}

func (c *card) reserved() int64 { return c.total / reservedPart >> 20 << 20 }

// used is the memory of programs and the MPS server. Call it with mu held.
func (c *card) used() (bytes int64) {
	for _, cl := range c.clients {
		bytes += cl.bytes
	}

	if c.served {
		bytes += serverBytes
	}

	return bytes
}

// free is the memory that a client may still take. Call it with mu held.
func (c *card) free(cl *client) int64 {
	free := c.total - c.reserved() - c.used()
	if cl.limit > 0 {
		free = min(free, cl.limit-cl.bytes)
	}

	return max(free, 0)
}

// read is the GPU's present use.
func (c *card) read() gpu.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()

	used := c.used()
	r := gpu.Reading{
		At: time.Now(), TotalBytes: c.total, ReservedBytes: c.reserved(), UsedBytes: used, FreeBytes: c.total - c.reserved() - used, ProcessesKnown: true,
	}

	for _, cl := range c.clients {
		i, found := slices.BinarySearchFunc(r.Processes, cl.pid, func(p gpu.Process, pid int) int { return cmp.Compare(p.PID, pid) })
		if !found {
			r.Processes = slices.Insert(r.Processes, i, gpu.Process{PID: cl.pid, MPS: cl.mps})
		}

		r.Processes[i].Bytes += cl.bytes
	}

	return r
}

// join makes a context for a program. held is its memory on the GPU before its
// worker was restarted.
func (c *card) join(pid int, mps bool, limit, held int64) (*client, wire.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()

	cl := &client{pid: pid, mps: mps, limit: limit, ended: make(chan struct{})}
	need := max(held, contextBytes)

	if mps && !c.served {
		need += serverBytes
	}

	switch {
	case c.lost:
		return nil, c.refuse(cl, wire.DeviceLost)
	case mps && c.faulty:
		return nil, c.refuse(cl, wire.ServerNotReady)
	case mps && c.mpsClients() >= maxClients:
		return nil, c.refuse(cl, wire.MaxClients)
	case need > c.free(cl):
		return nil, c.refuse(cl, wire.OutOfMemory)
	}

	c.served = c.served || mps
	cl.bytes = max(held, contextBytes)
	c.clients = append(c.clients, cl)

	return cl, c.answer(cl)
}

// mpsClients is how many clients the MPS server has. Call it with mu held.
func (c *card) mpsClients() (n int) {
	for _, cl := range c.clients {
		if cl.mps {
			n++
		}
	}

	return n
}

// leave gives back all that a client held.
func (c *card) leave(cl *client) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.clients = slices.DeleteFunc(c.clients, func(one *client) bool { return one == cl })

	if cl.mps && c.mpsClients() == 0 {
		c.faulty = false // the MPS server starts again
	}
}

// take adds bytes to a client's memory; negative ones give back.
func (c *card) take(cl *client, bytes int64) wire.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()

	switch {
	case cl.why != "":
		return c.refuse(cl, cl.why)
	case bytes > c.free(cl):
		return c.refuse(cl, wire.OutOfMemory)
	case cl.bytes+bytes < contextBytes:
		return c.refuse(cl, wire.InvalidValue)
	}

	cl.bytes += bytes

	return c.answer(cl)
}

// answer is a good answer. Call it with mu held.
func (c *card) answer(cl *client) wire.Answer {
	return wire.Answer{Model: c.model, HeldBytes: cl.bytes, FreeBytes: c.free(cl), TotalBytes: c.total}
}

// refuse is an answer of the driver's words. Call it with mu held.
func (c *card) refuse(cl *client, code wire.Code) wire.Answer {
	a := c.answer(cl)
	a.Error, a.Text = code, texts[code]

	return a
}

// texts are CUDA's, as cuGetErrorString has them.
var texts = map[wire.Code]string{
	wire.OutOfMemory:    "out of memory",
	wire.IllegalAddress: "an illegal memory access was encountered",
	wire.InvalidValue:   "invalid argument",
	wire.Uncorrectable:  "uncorrectable ECC error encountered",
	wire.DeviceLost:     "CUDA-capable device(s) is/are busy or unavailable",
	wire.ServerNotReady: "MPS server is not ready to accept new MPS client requests",
	wire.MaxClients:     "maximum number of MPS clients supported by the MPS server has been reached",
}
