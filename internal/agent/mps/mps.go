// Package mps runs NVIDIA's Multi-Process Service (MPS): one control daemon for
// each GPU, so that kernels of several users' containers run on the GPU at once
// instead of in turns. The worker starts the daemons;
// they outlive the worker, and the next worker takes them over.
//
//	absent ── Start ──▶ answering ── first client ──▶ with a server ── Stop, no client left ──▶ absent
//	  ▲                    │ ▲ Start of the next worker: taken over
//	  └── its files ───────┘ dies: the next Start removes its files
//
// Sizes are bytes, PIDs are the machine's. Commands, options and file names come from
// NVIDIA's guide (docs.nvidia.com/deploy/mps). We tried -d and get_client_list by hand
// with driver 580.159.04 on one H200, 2026-11-21, and not yet -multiuser-server.
// terminate_client is not used: it does not keep neighbours of a busy client alive
// (2026-11-26).
//
// The files: mps.go (opening), place.go (a GPU's directories), daemon.go (starting
// and stopping), process.go (the programs that are run), ask.go (questions and
// answers), clients.go.
package mps

import (
	"errors"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/berthml/berth"
)

// ErrNotInstalled says that a machine lacks the MPS control program. Its GPUs are
// then shared by time slices.
var ErrNotInstalled = errors.New("NVIDIA's MPS is not installed")

// program is NVIDIA's name of the control program. It is part of the driver.
const program = "nvidia-cuda-mps-control"

// Config says which program to run, where its daemons keep their files, and how
// patient to be.
type Config struct {
	// Dir has a directory for each GPU, with the daemon's sockets (pipe) and logs
	// (log). At most 74 bytes, or Start fails. Only one MPS uses it at a time.
	Dir string

	// Binary is the control program. Empty = nvidia-cuda-mps-control of PATH.
	Binary string

	// Timeout is how long a daemon may take to answer one question; default 5 s:
	// answers took 0.01 s (one H200, 4 clients that trained, 2026-11-21).
	Timeout time.Duration
}

// MPS runs the control daemons of a machine. It is safe for concurrent use: calls
// for one GPU wait for each other, calls for different GPUs do not.
type MPS struct {
	dir     string
	binary  string
	timeout time.Duration

	mu   sync.Mutex
	gpus map[string]*gpu // by UUID
}

// Open finds the control program. It starts nothing.
// Errors: ErrNotInstalled; invalid when the directory is missing from c.
func Open(c Config) (*MPS, error) {
	if c.Dir == "" {
		return nil, berth.Errorf(berth.KindInvalid, "opening MPS: no directory is set for its sockets and logs")
	}

	if c.Binary == "" {
		c.Binary = program
	}

	if c.Timeout <= 0 {
		c.Timeout = 5 * time.Second
	}

	binary, err := exec.LookPath(c.Binary)
	if err != nil {
		return nil, berth.Errorf(berth.KindNotFound, "finding %q: %w (%w): install the driver's compute utilities, which have it", c.Binary, ErrNotInstalled, err)
	}

	// The programs run in another directory than we do.
	if binary, err = filepath.Abs(binary); err != nil {
		return nil, berth.Errorf(berth.KindInternal, "finding %q: %w", c.Binary, err)
	}

	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, berth.Errorf(berth.KindInternal, "finding %q: %w", c.Dir, err)
	}

	return &MPS{dir: dir, binary: binary, timeout: c.Timeout, gpus: make(map[string]*gpu)}, nil
}

// Pipe is the directory to mount into the GPU's containers, which find it by
// CUDA_MPS_PIPE_DIRECTORY. It is the same before and after Start, and for the next
// worker; only Start makes it.
func (m *MPS) Pipe(uuid string) string { return m.gpu(uuid).pipe }
