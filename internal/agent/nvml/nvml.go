// Package nvml reads NVIDIA's GPUs through NVIDIA's management library (NVML).
// Only this package uses go-nvml and cgo: NVML's return codes become berth errors
// here and nowhere else. A berth built without cgo has no GPUs, and Open reports
// that.
//
// Three things about the library shape this package:
//
//   - go-nvml binds the library's functions when they are first called. One that
//     the loaded library lacks ends the process: exit status 127, nothing to
//     catch. So every function is called through call or do, which look first
//     (library.go). After a failed Init nothing is called at all.
//     The linker must leave binding to that first call as well: where the C compiler
//     passes -z now by default, as Ubuntu's may, such a berth does not even start,
//     and is to be built with -ldflags=-extldflags=-Wl,-z,lazy.
//   - A driver in trouble does not answer: a call then stays in the kernel for
//     minutes or for ever. So the library is called in goroutines of this package
//     only, and callers wait a bounded time (lane.go).
//   - Each question asks for the GPU's handle again: a lost GPU, or a removed MIG
//     device, must not be read through an old one.
//
// The files: library.go (loading, guards, errors), lane.go (who calls and who
// waits), driver.go (opening, closing), inventory.go, read.go, activity.go,
// events.go, and stub.go for a build without cgo.
package nvml

import (
	"cmp"
	"time"
)

// Config says which library to read, and how patient to be.
type Config struct {
	// LibraryPath is NVIDIA's library. Empty = libnvidia-ml.so.1, where the system
	// looks for libraries.
	LibraryPath string

	// Patience is how long a caller waits for an answer of the driver; default
	// 10 s. The driver itself gives a GPU's system processor 6 s to answer before
	// it reports XID 119: within 10 s the caller sees the driver's own error.
	Patience time.Duration
}

func (c Config) patience() time.Duration { return cmp.Or(c.Patience, 10*time.Second) }

// startPatience is the same for Open and Inventory. Without persistence mode the driver starts
// each GPU when it is first asked about: 1 s to 3 s each, and machines have up to 16.
func (c Config) startPatience() time.Duration { return 6 * c.patience() }
