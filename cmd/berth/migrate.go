package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/postgres"
)

func migrateCommand() *cobra.Command {
	var (
		url        string
		down, sure bool
	)

	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema to this version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case url == "":
				return berth.Errorf(berth.KindInvalid, "no database: give --postgres-url or BERTH_POSTGRES_URL")
			case down && !sure:
				return berth.Errorf(berth.KindInvalid, "--down deletes every sweep, trial and result: add --yes if you mean it")
			case down:
				return postgres.MigrateDown(cmd.Context(), url)
			}

			if err := postgres.Migrate(cmd.Context(), url); err != nil {
				return err
			}

			fmt.Fprintln(cmd.ErrOrStderr(), "the schema is up to date")

			return nil
		},
	}

	cmd.Flags().StringVar(&url, "postgres-url", "", "database, such as postgres://user:password@host/berth (required)")
	cmd.Flags().BoolVar(&down, "down", false, "remove the schema with everything in it")
	cmd.Flags().BoolVar(&sure, "yes", false, "confirm --down")

	return cmd
}
