package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/datadir"
	"github.com/berthml/berth/internal/control/backends"
	"github.com/berthml/berth/internal/control/doctor"
)

func doctorCommand() *cobra.Command {
	var (
		b       backends.Backends
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

			if bad := doctor.Print(cmd.OutOrStdout(), append(doctor.Machine(ctx, dataDir), doctor.Backends(ctx, b, where, dataDir)...)); bad > 0 {
				return berth.Errorf(berth.KindUnavailable, "%d thing(s) to fix", bad)
			}

			return nil
		},
	}

	b.Bind(cmd.Flags())
	cmd.Flags().StringVar(&dataDir, "data-dir", datadir.Default(), "of this machine's worker, whose disk is looked at")
	bindArtifacts(cmd.Flags(), &where, "none is checked")

	return cmd
}
