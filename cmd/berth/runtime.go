package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/internal/agent/cgroup"
	"github.com/berthml/berth/internal/agent/datadir"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/agent/gpushare"
	"github.com/berthml/berth/internal/agent/reconcile"
	"github.com/berthml/berth/internal/agent/runtrial"
	"github.com/berthml/berth/internal/agent/simulate"
	"github.com/berthml/berth/internal/control/backends"
	"github.com/berthml/berth/internal/control/retention"
	"github.com/berthml/berth/internal/store/artifacts"
)

// containerRuntime runs this machine's attempts.
type containerRuntime struct {
	containers reconcile.Containers
	images     activities.Images
	executor   activities.Executor
	attempts   reconcile.Attempts         // the executor's attempts
	files      retention.Files            // of attempts on this machine; nil when simulated
	outputs    storable                   // the same, to be stored; nil when simulated
	waiting    func() []berth.SeenAttempt // attempts that wait for their image; nil when simulated
	devices    []berth.Device
	free       func(running []berth.Container) berth.HostFree // capacity left by programs outside Berth
	news       <-chan struct{}                                // free has something that cannot wait; nil = never
	watch      func(ctx context.Context) error                // runs until ctx ends
	close      func()
}

// storable is the part of this machine's files that goes to the store of
// artifacts.
type storable interface {
	artifacts.Files
	artifacts.CheckpointFiles
}

// runtime returns Docker, or its simulation.
func (m *machine) runtime(ctx context.Context, kernel cgroup.FS, host berth.Host, owner berth.Owner, c backends.Connections, store *artifacts.Store, log *slog.Logger) (containerRuntime, error) {
	if m.simulate > 0 {
		log.Warn("simulating: no container runs and every attempt succeeds", "each", m.simulate)

		return simulated(simulate.New(c.Store, m.simulate), host), nil
	}

	if err := kernel.CheckNamespace(); err != nil {
		return containerRuntime{}, err
	}

	config := docker.Config{Instance: m.instance, Owner: owner, BootID: host.BootID, CPUs: runtime.NumCPU()}

	// Docker's own word on out-of-memory is sometimes lost when a container
	// exits right after the kill; the kernel's log has it too.
	kills, err := kernel.OpenKillLog()
	if err != nil {
		log.Warn("cannot read the kernel's log: some out-of-memory kills may be taken for others", "error", err)
	} else {
		config.KernelKilled = kills.Cause
	}

	d, err := docker.New(config)
	if err != nil {
		return containerRuntime{}, err
	}

	info, err := askDocker(ctx, d, log)
	if err != nil {
		return containerRuntime{}, err
	}

	for _, warning := range info.Warnings {
		log.Warn(warning)
	}

	cards, err := gpushare.Open(ctx, m.gpus, host.ID, d, log)
	if err != nil {
		return containerRuntime{}, err
	}

	var ( // nil without a store
		restore runtrial.RestoreCheckpoint
		fetch   runtrial.FetchObject
	)

	if store != nil {
		restore, fetch = store.Restore, store.Fetch
	}

	containers := cards.Docker(d)
	images, pull := m.images(d, info.RootDir)
	memory := &cgroup.FreeMemory{Kernel: kernel, Inspect: d.Inspect, Log: log}
	executor := runtrial.New(containers, c.Store, func(c berth.Container) (runtrial.Meter, error) { return kernel.Open(c.ID, c.PID) },
		runtrial.Config{
			DataDir: filepath.Join(m.gpus.DataDir, "host"), Grace: m.grace, HostName: host.Name, BootID: host.BootID, Bounds: m.bounds, CPUIdle: kernel.CPUIdle,
			Available: func() (int64, error) {
				memory, err := kernel.HostMemory()

				return memory.AvailableBytes, err
			},
			Workdir:      d.ReadWorkdir,
			Pull:         pull,
			Restore:      restore,
			Fetch:        fetch,
			Entrypoint:   d.Entrypoint,
			Proxy:        m.trialProxy,
			Dataset:      m.sets.Find,
			Secret:       m.opener(c.Store),
			SecretsDir:   m.secretsDir,
			HostID:       host.ID,
			Device:       cards.Read,
			MPSPipe:      cards.Pipe,
			DiskHeadroom: host.DiskHeadroomBytes,
			DiskFree:     func() (files, logs int64, err error) { return datadir.FreeDisks(m.gpus.DataDir, info.RootDir) },
		}, log)

	return containerRuntime{
		containers: containers,
		images:     images,
		executor:   executor,
		attempts:   executor,
		files:      executor,
		outputs:    executor,
		waiting:    executor.Waiting,
		devices:    cards.Devices(),
		free: func(running []berth.Container) berth.HostFree {
			disk := datadir.FullestDisk(log, host, m.gpus.DataDir, info.RootDir)

			return berth.HostFree{
				MemoryBytes: memory.Read(ctx, host, running),
				DiskBytes:   disk.FreeBytes,
				DiskTotal:   disk.TotalBytes,
				OutputBytes: executor.OutputBytes(),
				Problem:     executor.DiskProblem(),
				Devices:     cards.FreeMemory(ctx, running),
				Datasets:    m.sets.IDs(),
			}
		},
		news: cards.News(),
		watch: func(ctx context.Context) error {
			group, ctx := errgroup.WithContext(ctx)
			group.Go(func() error { return d.WatchOOM(ctx, executor.NoteOOM) })
			group.Go(func() error { return cards.Watch(ctx) })
			group.Go(func() error { return m.sets.Watch(ctx, log) })
			group.Go(func() error { return tellImages(ctx, c.Store, host.ID, d, pull != nil, log) })

			return group.Wait()
		},
		close: func() {
			ctx := context.WithoutCancel(ctx)
			cards.Close(ctx, gpushare.RunsOnGPU(ctx, d, log))

			_ = d.Close() // only idle connections

			if kills != nil {
				_ = kills.Close() // only read
			}
		},
	}, nil
}

// simulated is a runtime that runs nothing.
func simulated(s *simulate.Machine, host berth.Host) containerRuntime {
	return containerRuntime{
		containers: s,
		images:     s,
		executor:   s,
		attempts:   s,
		free: func([]berth.Container) berth.HostFree {
			return berth.HostFree{MemoryBytes: host.MemoryBytes, DiskBytes: host.DiskHeadroomBytes}
		},
		watch: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		close: func() {},
	}
}

// askDocker asks Docker about itself, and waits for it: at boot it may start
// after us.
func askDocker(ctx context.Context, d *docker.Docker, log *slog.Logger) (info docker.Info, err error) {
	err = backends.Retry(ctx, log, "Docker", backends.ConnectPatience, func() error {
		if info, err = d.Info(ctx); berth.KindOf(err) == berth.KindUnavailable {
			err = fmt.Errorf("%w; start it: `sudo systemctl start docker`, and see with `docker version` whether you may use it", err)
		}

		return err
	})
	if err != nil {
		return info, fmt.Errorf("asking Docker, which a worker cannot do without: %w", err)
	}

	return info, nil
}

// machine is the id of this machine's Docker, which its workers share. It is
// empty, which equals no other, where no container runs.
func (m *machine) machine(ctx context.Context, log *slog.Logger) (string, error) {
	if m.gpus.MachineID != "" || m.simulate > 0 {
		return m.gpus.MachineID, nil
	}

	d, err := docker.New(docker.Config{Instance: m.instance})
	if err != nil {
		return "", err
	}
	defer d.Close() //nolint:errcheck // only idle connections

	info, err := askDocker(ctx, d, log)

	return info.ID, err
}
