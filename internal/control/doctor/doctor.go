// Package doctor checks a machine and what its worker connects to, and says what to fix.
package doctor

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/cgroup"
	"github.com/berthml/berth/internal/agent/datadir"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/agent/gpushare"
	"github.com/berthml/berth/internal/control/backends"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/internal/store/artifacts"
	"github.com/berthml/berth/internal/store/postgres"
)

// Print writes findings, and returns how many are to be fixed. A warning is not among them.
func Print(out io.Writer, findings []health.Finding) (bad int) {
	for _, f := range findings {
		mark := "ok   "

		switch {
		case !f.OK:
			mark = "FIX  "
			bad++
		case f.Warn:
			mark = "SOON "
		}

		fmt.Fprintln(out, mark+f.Part+": "+f.What)

		if f.Next != "" {
			fmt.Fprintln(out, "     → "+f.Next)
		}
	}

	return bad
}

// Machine looks at this machine: memory, cgroups, Docker, GPUs and disk.
func Machine(ctx context.Context, dataDir string) []health.Finding {
	var findings []health.Finding

	memory, err := cgroup.FS{}.HostMemory()
	if err != nil {
		findings = append(findings, health.Broken("machine", "its memory cannot be read", err.Error()))
	} else {
		findings = append(findings, health.Fine("machine", fmt.Sprintf("%d cores, %s of memory, %s available",
			runtime.NumCPU(), berth.BytesText(memory.TotalBytes), berth.BytesText(memory.AvailableBytes))))
	}

	findings = append(findings, checkCgroups(cgroup.FS{}))

	d, err := docker.New(docker.Config{Instance: "doctor"})
	if err != nil {
		return append(findings, health.Broken("Docker", "cannot be asked", err.Error()))
	}
	defer d.Close() //nolint:errcheck // only idle connections

	info, err := d.Info(ctx)
	if err != nil {
		return append(findings, health.Broken("Docker", "does not answer", "install and start Docker: "+err.Error()))
	}

	findings = append(findings, health.Fine("Docker", fmt.Sprintf("%s, API %s, cgroup v%s (%s)",
		info.Version, info.APIVersion, info.CgroupVersion, info.CgroupDriver)))

	for _, warning := range info.Warnings {
		findings = append(findings, health.Broken("Docker", "a setting", warning))
	}

	findings = append(findings, gpushare.Findings(ctx, d, datadir.Default())...)

	disk, err := datadir.Fullest(nearestDir(dataDir), info.RootDir)

	return append(findings, checkDisk(disk, dataDir, err))
}

// checkCgroups looks whether the cgroups of containers can be read from here.
func checkCgroups(kernel cgroup.FS) health.Finding {
	if err := kernel.CheckNamespace(); err != nil {
		return health.Broken("cgroups", "containers cannot be measured, and a worker does not start here", err.Error())
	}

	return health.Fine("cgroups", "are those of the machine")
}

// nearestDir is the directory, or the nearest existing one above it: before the
// first worker runs, both have the same disk.
func nearestDir(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}

		dir = filepath.Dir(dir)
	}
}

// checkDisk is about the disk that a worker with default headroom looks at.
func checkDisk(disk health.Disk, dataDir string, err error) health.Finding {
	disk.Of, disk.HeadroomBytes = "this machine", datadir.DefaultDiskHeadroom

	switch warning := disk.Warning(); {
	case err != nil:
		return health.Broken("disk", "cannot be asked", err.Error())
	case disk.FreeBytes < datadir.DefaultDiskHeadroom:
		return health.Broken("disk", berth.BytesText(disk.FreeBytes)+" free, and a worker keeps "+berth.BytesText(datadir.DefaultDiskHeadroom),
			"Docker and "+dataDir+" are there; "+health.FreeDisk+"; or give the worker another --disk-headroom")
	case warning != "":
		return health.Finding{OK: true, Warn: true, Part: "disk", What: warning, Next: health.LessOutput}
	default:
		return health.Fine("disk", berth.BytesText(disk.FreeBytes)+" free")
	}
}

// Backends looks at the database, Temporal, the store of artifacts and the data directory; b
// without a database is what `berth dev` starts itself.
func Backends(ctx context.Context, b backends.Backends, where, dataDir string) []health.Finding {
	if b.PostgresURL == "" {
		return []health.Finding{installed("PostgreSQL", func() (string, error) { return findPostgres(ctx) }), installed("Temporal", devstack.FindTemporal)}
	}

	store, err := postgres.Open(ctx, postgres.Config{URL: b.PostgresURL})
	if berth.KindOf(err) == berth.KindInvalid {
		return []health.Finding{health.Broken("PostgreSQL", "cannot be used", err.Error())}
	}

	if err != nil {
		return []health.Finding{health.Broken("PostgreSQL", "does not answer", err.Error())}
	}
	defer store.Close()

	findings := []health.Finding{health.Fine("PostgreSQL", "answers")}

	if err := store.CheckSchema(ctx); err != nil {
		return append(findings, health.Broken("schema", "does not fit this berth", err.Error()))
	}

	findings = append(findings, checkTemporal(ctx, b, store), checkArtifacts(ctx, where, store))
	findings = append(findings, datadir.Findings(ctx, store, dataDir)...)

	state, err := store.Health(ctx)
	if err != nil {
		return append(findings, health.Broken("ledger", "cannot be read", err.Error()))
	}

	if state.Database.Dir != "" {
		state.DatabaseDisk = datadir.LocalDisk(health.DatabaseDisk, state.Database.Dir)
	}

	return append(findings, state.Findings()...)
}

// checkTemporal asks once, without waiting for it to come up.
func checkTemporal(ctx context.Context, b backends.Backends, store *postgres.Store) health.Finding {
	installation, err := store.Installation(ctx)
	if err != nil {
		return health.Broken("PostgreSQL", "cannot be read", err.Error())
	}

	raw, wrapped, err := b.DialTemporal(slog.New(slog.DiscardHandler), installation)
	if err != nil {
		return health.Broken("Temporal", "cannot be asked", err.Error())
	}
	defer raw.Close()

	ctx, cancel := context.WithTimeout(ctx, backends.TryTimeout)
	defer cancel()

	if err := wrapped.Ping(ctx); err != nil {
		return health.Broken("Temporal", "does not answer", "start it, or give --temporal-address, and --temporal-tls-ca where it speaks TLS: "+err.Error())
	}

	if err := wrapped.BelongsTo(ctx, installation); err != nil {
		return health.Broken("Temporal", "answers, and is not this installation's", err.Error())
	}

	return health.Fine("Temporal", "answers")
}

// installed looks for what `berth dev` starts itself, where that looks for it.
func installed(part string, find func() (string, error)) health.Finding {
	path, err := find()
	if err != nil {
		return health.Broken(part, "is not installed", err.Error())
	}

	return health.Fine(part, "is installed: "+path)
}

// findPostgres looks for what `berth dev` with default flags would run.
func findPostgres(ctx context.Context) (string, error) {
	return devstack.FindPostgres(ctx, filepath.Join(datadir.Default(), "postgres"))
}

// checkArtifacts is what doctor says of the store. It only looks: a store that is new
// may be another Berth's tomorrow.
func checkArtifacts(ctx context.Context, where string, ledger *postgres.Store) health.Finding {
	const part = "artifact store"

	if where == "" {
		return health.Finding{OK: true, Part: part, What: berth.NoArtifacts}
	}

	installation, err := ledger.Installation(ctx)
	if err != nil {
		return health.Broken("PostgreSQL", "cannot be read", err.Error())
	}

	if there, err := artifacts.There(where); err == nil && !there {
		return health.Fine(part, where+" is not there yet: the first server or worker that is given it makes it")
	}

	store, err := artifacts.Open(ctx, where, installation.ID, ledger)
	if err != nil {
		return health.Broken(part, "cannot be opened", err.Error())
	}
	defer store.Close() //nolint:errcheck // only asked

	fresh, err := store.Check(ctx)
	if err != nil {
		return health.Broken(part, "cannot be used", err.Error())
	}

	if fresh {
		return health.Fine(part, store.Where()+" answers, and is new: the first server or worker that is given it makes it its Berth's")
	}

	return health.Fine(part, store.Where()+" answers")
}
