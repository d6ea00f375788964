package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/internal/agent/cgroup"
	"github.com/berthml/berth/internal/agent/datadir"
	"github.com/berthml/berth/internal/agent/dataset"
	"github.com/berthml/berth/internal/agent/gpushare"
	"github.com/berthml/berth/internal/agent/reconcile"
	"github.com/berthml/berth/internal/agent/runtrial"
	"github.com/berthml/berth/internal/agent/secrets"
	"github.com/berthml/berth/internal/config"
	"github.com/berthml/berth/internal/control/backends"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/control/retention"
	"github.com/berthml/berth/internal/store/artifacts"
	"github.com/berthml/berth/worker"
)

// machine is a worker's settings of its machine.
type machine struct {
	gpus        gpushare.Config // with the data directory, and the name of a share of the machine
	instance    string
	name        string
	memory      string
	disk        int64 // bytes kept free on the disks
	keepOutputs int64 // most bytes that attempts' files take; 0 = without limit
	cpus        float64
	maxAttempts int
	datasets    []string      // NAME=PATH
	sets        *dataset.Sets // made of datasets, by describe
	secretsKey  string        // file with the keys of secrets; empty = it opens none
	secretsDir  string        // where files of secrets are while trials run; empty = in the data directory
	keys        *secrets.Keys // made of secretsKey, by describe
	grace       time.Duration
	bounds      runtrial.Bounds   // zero values are runtrial's defaults
	artifacts   string            // where files are stored; empty = they are not
	checkpoints time.Duration     // of running attempts are stored so often; 0 = only once they have ended
	pull        string            // images that are missing: pullMissing or pullNever
	trialProxy  string            // URL that trials with a network are told of; empty = none
	waits       map[string]string // of Berth's own tests, by name; setWaits takes them over
	patience    activities.Patience
	every       time.Duration // of the reconciler; 0 = its default
	settle      time.Duration // before the reconciler takes anything away; 0 = its default
	simulate    time.Duration // attempts last so long and nothing runs; 0 = they are real
}

func (m *machine) bind(flags *pflag.FlagSet) {
	flags.StringVar(&m.instance, "instance", "main", "name of this Berth among several that share the machine's Docker")
	flags.StringVar(&m.name, "host-name", "", "how people call this machine; default: its host name")
	flags.StringVar(&m.gpus.MachineID, "machine-id", "", "for a worker that has a share of a machine, beside other workers: a name of the share; needs --cpus and --memory")
	flags.StringVar(&m.memory, "memory", "", "memory to hand out, such as 16GiB; default: 85 % of the machine's")
	m.disk = datadir.DefaultDiskHeadroom
	flags.Var((*config.Size)(&m.disk), "disk-headroom", "with less free on the disk of the data directory or of Docker, nothing new starts here")
	flags.Var(config.KeptSize{Size: (*config.Size)(&m.keepOutputs)}, "keep-outputs-size",
		"most that files of attempts take on this machine, such as 200GiB, at least 1GiB; the oldest of ended sweeps go first; default: without limit")
	flags.StringVar(&m.pull, "pull", pullMissing, "images that this machine lacks: missing = pull them by digest from their registry, or never")
	flags.StringVar(&m.trialProxy, "trial-proxy", "",
		"URL of the proxy that trials with a network are told of (HTTP_PROXY, HTTPS_PROXY), such as http://10.0.0.1:3128; it keeps no trial from going past it")
	flags.Float64Var(&m.cpus, "cpus", 0, "cores to hand out; default: all of the machine's")
	flags.IntVar(&m.maxAttempts, "max-attempts", 0, "attempts at once; 0 = as many as fit")
	gpushare.Bind(flags, &m.gpus)
	flags.StringArrayVar(&m.datasets, "dataset", nil,
		"a data set that trials of this machine may mount, as NAME=PATH, such as flowers=/data/flowers; again for each, and in BERTH_DATASET one a line or with commas between (docs/production.md)")
	config.Directory(flags, &m.secretsDir, "secrets-dir", "",
		"where secrets are files while trials that mount them run, such as a tmpfs; Docker must see it; default: in the data directory")
	flags.DurationVar(&m.grace, "grace", 30*time.Second, "between SIGTERM and SIGKILL when an attempt must stop")
	flags.Var((*config.Size)(&m.bounds.LogLimit), "log-limit", "log kept per attempt; default 16MiB")
	flags.Var((*config.Size)(&m.bounds.LogRate), "log-rate", "log a second at which an attempt is a flood, a short line counted as 1 KiB; default 5MiB")
	flags.Var((*config.Size)(&m.bounds.OutputLimit), "output-limit", "files that an attempt may keep in /trial/out, /trial/checkpoint and its working directory, and that are stored of it; default 10GiB")
	flags.DurationVar(&m.checkpoints, "checkpoint-every", 5*time.Minute,
		"with --artifacts, checkpoints of running trials are stored so often, when they have changed; 0 = only once an attempt has ended")
	flags.DurationVar(&m.simulate, "simulate", 0, "run no containers: every attempt lasts so long and succeeds; to measure Berth itself")
	flags.StringToStringVar(&m.waits, "waits", nil, "for Berth's own tests: shorter waits than the constants, such as heartbeat=5s,host=8s,reconcile=1s,grace=4s")

	for _, name := range []string{"simulate", "waits"} {
		if err := flags.MarkHidden(name); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// setWaits takes --waits over. Errors: invalid.
func (m *machine) setWaits() error {
	waits := map[string]*time.Duration{"heartbeat": &m.patience.Heartbeat, "host": &m.patience.Host, "reconcile": &m.every, "grace": &m.settle}

	for name, text := range m.waits {
		wait, err := time.ParseDuration(text)
		if err != nil || waits[name] == nil {
			return berth.Errorf(berth.KindInvalid, "--waits %s=%s is no wait such as reconcile=1s", name, text)
		}

		*waits[name] = wait
	}

	return nil
}

func workerCommand() *cobra.Command {
	var (
		b = backends.Backends{MaxConnections: health.WorkerPool}
		m machine
	)

	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run trials on this machine: needs Docker, the database and Temporal",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(cmd.Flags())
			if err = errors.Join(err, m.check()); err != nil {
				return err
			}

			return endedInOrder(cmd.Context(), b.Connected(cmd.Context(), log, func(c backends.Connections) error {
				return runWorker(cmd.Context(), m, c, log)
			}))
		},
	}

	b.Bind(cmd.Flags())
	m.bind(cmd.Flags())
	config.Directory(cmd.Flags(), &m.gpus.DataDir, "data-dir", datadir.Default(), "for the attempts' directories and this machine's id")
	bindArtifacts(cmd.Flags(), &m.artifacts, "files stay on this machine only")
	bindSecretsKey(cmd.Flags(), &m.secretsKey,
		"file with the private keys that open secrets, which only its owner may read; without it no trials run here that mount secrets (docs/production.md)")

	return cmd
}

// endedInOrder turns the errors of an orderly end into none.
func endedInOrder(ctx context.Context, err error) error {
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}

	return err
}

// runWorker serves this machine until ctx ends. It owns its data directory on
// this machine, and the machine's name in the ledger: a second worker of either
// is refused.
func runWorker(ctx context.Context, m machine, c backends.Connections, log *slog.Logger) error {
	kernel := cgroup.FS{}

	unlock, err := datadir.Lock(m.gpus.DataDir, datadir.WorkerLock, "berth worker")
	if err != nil {
		return err
	}
	defer unlock()

	if err := datadir.Claim(m.gpus.DataDir, c.Installation.ID, m.instance); err != nil {
		return err
	}

	host, err := m.describe(kernel)
	if err != nil {
		return err
	}

	if host.MachineID, err = m.machine(ctx, log); err != nil {
		return err
	}

	if err := datadir.Identify(ctx, c.Store, m.gpus.DataDir, &host, log); err != nil {
		return err
	}

	owner := berth.Owner{HostID: host.ID, Installation: c.Installation.ID}

	store, err := artifacts.OpenReady(ctx, m.artifacts, c.Installation.ID, c.Store, log)
	if err != nil {
		return err
	}

	if store != nil {
		defer store.Close() //nolint:errcheck // only idle connections
	}

	machinery, err := m.runtime(ctx, kernel, host, owner, c, store, log)
	if err != nil {
		return err
	}
	defer machinery.close()

	host.Devices = machinery.devices

	serve := &worker.Worker{
		Client: c.Raw, InstallationID: c.Installation.ID, HostID: host.ID, Log: log,
		Database: c.Store.Ping,
		Activities: &activities.Activities{
			Patience: m.patience, Sweeps: c.Store, Trials: c.Store, Placements: c.Store, Workflows: c.Temporal,
			Images: machinery.images, Executor: machinery.executor,
		},
	}

	remover := &retention.Remover{
		Removals: c.Store, Files: machinery.files, HostID: host.ID, Limit: m.keepOutputs, Every: cmp.Or(m.every, berth.LeaseRenewEvery), Log: log,
	}

	free := func(running []berth.Container) berth.HostFree {
		free := machinery.free(running)
		free.OutputsProblem = remover.Problem()

		return free
	}

	reconciler := reconcile.New(machinery.containers, c.Store, reconcile.Config{
		Host: host, Version: version(), Free: free, News: machinery.news, Attempts: machinery.attempts, Waiting: machinery.waiting, Every: m.every, Grace: m.settle,
		Check: func(ctx context.Context) error { return c.Store.Holds(ctx, c.Installation.ID) }, Problem: serve.Trouble, Workflows: &worker.Settler{Runs: c.Temporal, Ledger: c.Store, Log: log},
	}, log)

	return c.Store.Own(ctx, "host "+host.ID, ownPatience, func(ctx context.Context) error {
		// Either may go away again at this moment, and without a supervisor no program restarts the
		// worker.
		if err := backends.Retry(ctx, log, "PostgreSQL", backends.ConnectPatience, func() error { return reconciler.Register(ctx) }); err != nil {
			return err
		}

		stores := store != nil && machinery.outputs != nil
		if err := errors.Join(c.Store.SetHostStores(ctx, host.ID, stores), c.Store.SetHostCheckpoints(ctx, host.ID, stores)); err != nil {
			log.Warn("saying whether this machine stores files", "error", err)
		}

		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error {
			return backends.Retry(ctx, log, "Temporal", backends.ConnectPatience, func() error { return serve.Run(ctx) })
		})
		group.Go(func() error { return reconciler.Run(ctx) })
		group.Go(func() error { return machinery.watch(ctx) })

		if machinery.files != nil {
			group.Go(func() error { return remover.Run(ctx) })
		}

		if stores {
			group.Go(func() error { return m.storeFiles(ctx, store, machinery.outputs, c.Store, host.ID, log) })
		}

		return group.Wait()
	})
}

// leastCheckpoints leaves the store and the disk to others.
const leastCheckpoints = 5 * time.Second

// ownPatience is how long a starting worker waits for the lock of a
// predecessor that was killed: PostgreSQL notices a dead peer at once, a lost
// one by its keep-alives.
const ownPatience = 30 * time.Second

// memoryShare is the part of a machine's memory that trials may have; the rest
// is for the system, its page cache, Docker and Berth.
const memoryShare = 0.85

// check looks at the flags before anything starts. Errors: invalid.
func (m *machine) check() error {
	if m.gpus.MachineID != "" && (m.cpus == 0 || m.memory == "") {
		return berth.Errorf(berth.KindInvalid, "--machine-id %q names a share of this machine: say by --cpus and --memory how much that is", m.gpus.MachineID)
	}

	if m.checkpoints < 0 || m.checkpoints > 0 && m.checkpoints < leastCheckpoints {
		return berth.Errorf(berth.KindInvalid, "--checkpoint-every %s must be at least %s, or 0 to store a checkpoint only once its attempt has ended", m.checkpoints, leastCheckpoints)
	}

	if err := m.setWaits(); err != nil {
		return err
	}

	if m.pull != "" && m.pull != pullMissing && m.pull != pullNever {
		return berth.Errorf(berth.KindInvalid, "--pull %q must be %s or %s", m.pull, pullMissing, pullNever)
	}

	if err := runtrial.CheckProxy(m.trialProxy); err != nil {
		return err
	}

	if _, err := m.describe(cgroup.FS{}); err != nil {
		return err
	}

	m.gpus.Simulate = m.simulate > 0

	return m.gpus.Check()
}

// describe returns the machine's properties, without its id and its identity.
func (m *machine) describe(kernel cgroup.FS) (berth.Host, error) {
	memory, err := kernel.HostMemory()
	if err != nil {
		return berth.Host{}, err
	}

	boot, err := kernel.BootID()
	if err != nil {
		return berth.Host{}, err
	}

	dir, err := filepath.Abs(m.gpus.DataDir)
	if err != nil {
		return berth.Host{}, fmt.Errorf("finding data directory: %w", err)
	}

	if m.sets, err = dataset.Parse(m.datasets); err != nil {
		return berth.Host{}, err
	}

	if m.keys, err = openKeys(cmp.Or(m.secretsKey, secrets.Beside(m.gpus.DataDir))); err != nil {
		return berth.Host{}, err
	}

	host := berth.Host{
		Datasets: m.sets.IDs(), SecretKeys: m.keys.Opens(),
		Name: m.name, DataDir: dir, BootID: boot, State: berth.HostReady, MaxAttempts: m.maxAttempts,
		CPUMilli: int64(runtime.NumCPU()) * 1000, MemoryBytes: memory.TotalBytes, MemoryFreeBytes: memory.AvailableBytes,
		DiskHeadroomBytes: m.disk,
	}
	host.MemoryHeadroomBytes = memory.TotalBytes - int64(float64(memory.TotalBytes)*memoryShare)

	if m.cpus > 0 {
		host.CPUMilli = int64(m.cpus * 1000)
	}

	if m.memory != "" {
		bytes, err := units.RAMInBytes(m.memory)
		if err != nil || bytes <= 0 || bytes > memory.TotalBytes {
			return host, berth.Errorf(berth.KindInvalid, "--memory %q must be a size of at most the machine's %s, such as 16GiB",
				m.memory, berth.BytesText(memory.TotalBytes))
		}

		host.MemoryHeadroomBytes = memory.TotalBytes - bytes
	}

	if host.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			return host, fmt.Errorf("reading host name: %w", err)
		}

		host.Name = name
	}

	return host, nil
}
