package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berthml/berth/internal/agent/datadir"
	"github.com/berthml/berth/internal/control/backends"
)

func restoreCommand() *cobra.Command {
	var (
		b       backends.Backends
		dataDir string
	)

	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Go on with a restored database, or with an empty Temporal after its store was lost",
		Long: "Run it after the database was restored from a backup, with every server and worker stopped, and when the store\n" +
			"of Temporal is lost for good: Berth ends no sweep because Temporal has forgotten it. It makes the namespace this\n" +
			"installation's and starts the workflows of all open sweeps from what the database knows. Containers that run are\n" +
			"adopted; trials that have ended are not repeated. Their limits.max_duration counts anew, as the database does not\n" +
			"know how long they were paused.\n" +
			"A restore drill, beside the installation in use, runs `berth migrate --new-installation` on its copy first: else\n" +
			"the copy takes machines, containers and files of the original for its own.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(cmd.Flags())
			if err != nil {
				return err
			}

			if b.PostgresURL == "" {
				if err := b.Load(dataDir); err != nil {
					return err
				}
			}

			return b.Open(cmd.Context(), log, func(c backends.Connections) error {
				if err := backends.Register(cmd.Context(), c.Temporal, backends.ConnectPatience, log); err != nil {
					return err
				}

				done, err := c.Identity.Restore(cmd.Context(), c.Store)
				if err != nil {
					return err
				}

				fmt.Fprintf(cmd.OutOrStdout(), "Namespace %q of Temporal belongs to installation %s. Started again: %d sweeps with %d open trials.\n",
					c.Temporal.Namespace(), c.Installation.ID, done.Sweeps, done.Trials)

				return nil
			})
		},
	}

	b.Bind(cmd.Flags())
	cmd.Flags().StringVar(&dataDir, "data-dir", datadir.Default(), "of the `berth dev` that runs, when no --postgres-url is given")

	return cmd
}
