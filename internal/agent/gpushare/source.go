package gpushare

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/agent/gpu"
	"github.com/berthml/berth/internal/agent/nvml"
	"github.com/berthml/berth/internal/agent/simgpu"
)

// source is where a worker's GPUs come from: NVIDIA's driver, or the simulator.
type source struct {
	driver gpu.Driver

	// give lets containers have cards; missing says by UUID why one cannot be had.
	give func(ctx context.Context, cards []gpu.Card) (missing map[string]string, err error)

	mps   func() (daemons, error)
	drain time.Duration // for which a frozen client's kernels may go on
	user  int           // the worker's user, for MPS: 0 may start it for containers of any user
}

// openSource opens the driver of the worker's configured GPUs.
func (c Config) openSource(ctx context.Context, hostID string, d *docker.Docker, log *slog.Logger) (source, error) {
	if c.Fake != "" {
		return c.openSimulator(hostID, d, log) //nolint:contextcheck // it lives until it is closed
	}

	driver, err := nvml.Open(ctx, nvml.Config{})
	if err != nil {
		return source{}, err
	}

	return source{
		driver: driver, give: d.AddGPUs, user: os.Geteuid(), drain: drainClient,
		mps: func() (daemons, error) { return OpenMPS(c.DataDir) },
	}, nil
}

// openSimulator invents the GPUs that --fake-gpus names.
func (c Config) openSimulator(hostID string, d *docker.Docker, log *slog.Logger) (source, error) {
	cards, err := simgpu.Parse(c.Fake)
	if err != nil {
		return source{}, err
	}

	dir, err := filepath.Abs(c.DataDir) // Docker mounts nothing else
	if err != nil {
		return source{}, berth.Errorf(berth.KindInternal, "finding the data directory: %w", err)
	}

	s, err := simgpu.Open(simgpu.Config{Dir: filepath.Join(dir, "gpus"), Machine: hostID, Cards: cards, Log: log})
	if err != nil {
		return source{}, err
	}

	log.Warn("the GPUs of this worker are simulated: only programs that are made for them see them (docs/gpus.md)", "cards", c.Fake)

	return source{
		driver: s,
		give: func(_ context.Context, cards []gpu.Card) (map[string]string, error) {
			d.AddSimulatedGPUs(cards, s.Mount)

			return map[string]string{}, nil
		},
		mps:   func() (daemons, error) { return s, nil }, // it starts no process
		drain: drainSimulated,
	}, nil
}

// Check looks at --fake-gpus. Errors: invalid.
func (c Config) Check() error {
	switch {
	case c.Fake == "":
		return nil
	case c.GPUs != "":
		return berth.Errorf(berth.KindInvalid, "--fake-gpus %q and --gpus %q: a worker has either simulated GPUs or real ones; leave one of the flags out", c.Fake, c.GPUs)
	case c.Simulate:
		return berth.Errorf(berth.KindInvalid, "--fake-gpus %q and --simulate: with --simulate no container runs that could use a GPU; leave one of the flags out", c.Fake)
	}

	if _, err := simgpu.Parse(c.Fake); err != nil {
		return berth.Errorf(berth.KindInvalid, "--fake-gpus %w", err)
	}

	return nil
}
