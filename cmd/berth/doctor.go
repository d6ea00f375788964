package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/cgroup"
	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/internal/docker"
	"github.com/berthml/berth/internal/gpushare"
	"github.com/berthml/berth/internal/health"
	"github.com/berthml/berth/internal/postgres"
)

func doctorCommand() *cobra.Command {
	var (
		b       backends
		where   string // the store of artifacts; empty = none
		dataDir string
	)

	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine and say what to fix",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 20*time.Second)
			defer cancel()

			if bad := printFindings(cmd.OutOrStdout(), append(checkMachine(ctx, dataDir), checkBackends(ctx, b, where, dataDir)...)); bad > 0 {
				return berth.Errorf(berth.KindUnavailable, "%d thing(s) to fix", bad)
			}

			return nil
		},
	}

	b.bind(cmd.Flags())
	cmd.Flags().StringVar(&dataDir, "data-dir", defaultDataDir(), "of this machine's worker, whose disk is looked at")
	bindArtifacts(cmd.Flags(), &where, "none is checked")

	return cmd
}

// printFindings returns how many are to be fixed. A warning is not among them.
func printFindings(out io.Writer, findings []health.Finding) (bad int) {
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

func checkMachine(ctx context.Context, dataDir string) []health.Finding {
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

	findings = append(findings, gpushare.Findings(ctx, d, defaultDataDir())...)

	disk, err := fullestOf(nearestDir(dataDir), info.RootDir)

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
	disk.Of, disk.HeadroomBytes = "this machine", defaultDiskHeadroom

	switch warning := disk.Warning(); {
	case err != nil:
		return health.Broken("disk", "cannot be asked", err.Error())
	case disk.FreeBytes < defaultDiskHeadroom:
		return health.Broken("disk", berth.BytesText(disk.FreeBytes)+" free, and a worker keeps "+berth.BytesText(defaultDiskHeadroom),
			"Docker and "+dataDir+" are there; "+health.FreeDisk+"; or give the worker another --disk-headroom")
	case warning != "":
		return health.Finding{OK: true, Warn: true, Part: "disk", What: warning, Next: health.LessOutput}
	default:
		return health.Fine("disk", berth.BytesText(disk.FreeBytes)+" free")
	}
}

func checkBackends(ctx context.Context, b backends, where, dataDir string) []health.Finding {
	if b.postgresURL == "" {
		return []health.Finding{installed("PostgreSQL", func() (string, error) { return findPostgres(ctx) }), installed("Temporal", devstack.FindTemporal)}
	}

	store, err := postgres.Open(ctx, postgres.Config{URL: b.postgresURL})
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
	findings = append(findings, checkOwner(ctx, store, dataDir)...)

	state, err := store.Health(ctx)
	if err != nil {
		return append(findings, health.Broken("ledger", "cannot be read", err.Error()))
	}

	if state.Database.Dir != "" {
		state.DatabaseDisk = localDisk(health.DatabaseDisk, state.Database.Dir)
	}

	return append(findings, state.Findings()...)
}

// checkTemporal asks once, without waiting for it to come up.
func checkTemporal(ctx context.Context, b backends, store *postgres.Store) health.Finding {
	installation, err := store.Installation(ctx)
	if err != nil {
		return health.Broken("PostgreSQL", "cannot be read", err.Error())
	}

	raw, wrapped, err := b.temporal(slog.New(slog.DiscardHandler), installation)
	if err != nil {
		return health.Broken("Temporal", "cannot be asked", err.Error())
	}
	defer raw.Close()

	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()

	if err := wrapped.Ping(ctx); err != nil {
		return health.Broken("Temporal", "does not answer", "start it, or give --temporal-address: "+err.Error())
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
	return devstack.FindPostgres(ctx, filepath.Join(defaultDataDir(), "postgres"))
}
