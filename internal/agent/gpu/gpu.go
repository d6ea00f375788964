// Package gpu is a worker's view of the GPUs of its machine: its GPUs, their
// use, their activity and their faults. internal/agent/nvml is the Driver of real
// GPUs.
//
//	gpu.go        the Driver and its errors
//	card.go       cards, readings, activity
//	event.go      events, and what an XID means
//	container.go  which container a process belongs to
package gpu

import (
	"context"
	"errors"
)

// Driver reads the GPUs of one machine. It changes nothing on them. It is safe
// for concurrent use.
//
// Each method ends when its context does, and then returns the context's cause.
// A driver that hangs blocks no caller: a method waits a bounded time and returns
// unavailable, with the time since when the driver does not answer. Until the
// driver answers again, further calls fail at once.
//
// Errors: not_found for a UUID that no card has; ErrLost; ErrUnsupported;
// unavailable when the driver does not answer.
type Driver interface {
	// Inventory lists the GPUs and the missing parts. Errors: not_found when the
	// machine has no GPU that can be named.
	Inventory(ctx context.Context) (Inventory, error)

	// Read returns a GPU's present use.
	Read(ctx context.Context, uuid string) (Reading, error)

	// Activity returns how busy a card was since the last call of Activity for it,
	// by any caller. When that is longer ago than 10 s, or there was no call, Activity
	// measures about 0.1 s itself. Within 0.1 s of the last measurement it returns that
	// one again.
	Activity(ctx context.Context, uuid string) (Activity, error)

	// WaitEvent returns the next event of any GPU. It blocks until one comes. It
	// does not return events from before the first call. An error can come back
	// at once each time: pause before the next call. Errors: ErrUnsupported when
	// this driver reports no events of any GPU.
	WaitEvent(ctx context.Context) (Event, error)

	// Close gives the driver back. It waits until the calls that run have ended,
	// for a bounded time.
	Close() error
}

// What a caller may want to tell apart. The text of the error around it says
// which card, and what to do.
var (
	// ErrNoDriver: the machine has no NVIDIA driver. A worker then runs trials on
	// the machine's cores alone.
	ErrNoDriver = errors.New("this machine has no NVIDIA driver")

	// ErrLost: the GPU worked before and does not work any more. No attempt on it
	// can go on.
	ErrLost = errors.New("the GPU is lost")

	// ErrUnsupported: this GPU, or this version of the driver, cannot do it.
	ErrUnsupported = errors.New("not supported")
)
