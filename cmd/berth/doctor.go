package main

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/cgroup"
	"github.com/berthml/berth/internal/docker"
	"github.com/berthml/berth/internal/postgres"
)

// finding is one line of the doctor's report.
type finding struct {
	ok   bool
	what string
	fix  string // what a person should do; empty when ok
}

func doctorCommand() *cobra.Command {
	var b backends

	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine and say what to fix",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 20*time.Second)
			defer cancel()

			findings := append(checkMachine(ctx), checkBackends(ctx, b)...)
			bad := 0

			for _, f := range findings {
				mark := "ok   "
				if !f.ok {
					mark = "FIX  "
					bad++
				}

				fmt.Fprintln(cmd.OutOrStdout(), mark+f.what)

				if f.fix != "" {
					fmt.Fprintln(cmd.OutOrStdout(), "     → "+f.fix)
				}
			}

			if bad > 0 {
				return berth.Errorf(berth.KindUnavailable, "%d thing(s) to fix", bad)
			}

			return nil
		},
	}

	b.bind(cmd.Flags())

	return cmd
}

func checkMachine(ctx context.Context) []finding {
	var findings []finding

	memory, err := cgroup.FS{}.HostMemory()
	if err != nil {
		findings = append(findings, finding{what: "memory of the machine", fix: err.Error()})
	} else {
		findings = append(findings, finding{ok: true, what: fmt.Sprintf("machine: %d cores, %d MiB of memory, %d MiB available",
			runtime.NumCPU(), memory.TotalBytes>>20, memory.AvailableBytes>>20)})
	}

	d, err := docker.New(docker.Config{Instance: "doctor"})
	if err != nil {
		return append(findings, finding{what: "Docker", fix: err.Error()})
	}
	defer d.Close() //nolint:errcheck // only idle connections

	info, err := d.Info(ctx)
	if err != nil {
		return append(findings, finding{what: "Docker does not answer", fix: "install and start Docker: " + err.Error()})
	}

	findings = append(findings, finding{ok: true, what: fmt.Sprintf("Docker %s, API %s, cgroup v%s (%s)",
		info.Version, info.APIVersion, info.CgroupVersion, info.CgroupDriver)})

	for _, warning := range info.Warnings {
		findings = append(findings, finding{what: "Docker setting", fix: warning})
	}

	return findings
}

func checkBackends(ctx context.Context, b backends) []finding {
	if b.postgresURL == "" {
		return checkInstalled()
	}

	store, err := postgres.Open(ctx, postgres.Config{URL: b.postgresURL})
	if err != nil {
		return []finding{{what: "PostgreSQL", fix: err.Error()}}
	}
	defer store.Close()

	findings := append([]finding{{ok: true, what: "PostgreSQL answers"}}, checkTemporal(ctx, b)...)

	if err := store.CheckSchema(ctx); err != nil {
		return append(findings, finding{what: "schema", fix: err.Error()})
	}

	health, err := store.Health(ctx)
	if err != nil {
		return append(findings, finding{what: "the ledger cannot be read", fix: err.Error()})
	}

	for _, f := range health.Findings() {
		findings = append(findings, finding{ok: f.OK, what: f.Part + ": " + f.What, fix: f.Next})
	}

	return findings
}

// checkTemporal asks once, without waiting for it to come up.
func checkTemporal(ctx context.Context, b backends) []finding {
	raw, wrapped, err := b.temporal(slog.New(slog.DiscardHandler))
	if err != nil {
		return []finding{{what: "Temporal", fix: err.Error()}}
	}
	defer raw.Close()

	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()

	if err := wrapped.Ping(ctx); err != nil {
		return []finding{{what: "Temporal does not answer", fix: "start it, or give --temporal-address: " + err.Error()}}
	}

	return []finding{{ok: true, what: "Temporal answers"}}
}

// checkInstalled looks for what `berth dev` starts itself.
func checkInstalled() []finding {
	var findings []finding

	for _, need := range []struct{ program, fix string }{
		{"initdb", "install PostgreSQL (apt-get install postgresql), or give --postgres-url"},
		{"temporal", "run `make build`, which builds it beside berth, or go install github.com/temporalio/cli/cmd/temporal@v1.5.1"},
	} {
		if path, err := exec.LookPath(need.program); err == nil {
			findings = append(findings, finding{ok: true, what: need.program + " is installed: " + path})
		} else {
			findings = append(findings, finding{what: need.program + " is not on PATH", fix: need.fix})
		}
	}

	return findings
}
