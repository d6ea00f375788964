package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/datadir"
	"github.com/berthml/berth/internal/control/backends"
)

// backendsFile says where `berth dev` has its database and its Temporal.
const backendsFile = "backends"

// ownBackend is its third line when `berth dev` runs that Temporal itself.
const ownBackend = "own"

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
				if err := ofDev(&b, dataDir); err != nil {
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

// ofDev reads where a running `berth dev` has its database and its Temporal.
func ofDev(b *backends.Backends, dataDir string) error {
	path := filepath.Join(dataDir, backendsFile)

	text, err := os.ReadFile(path) //nolint:gosec // G304: the user's own
	if err != nil {
		return berth.Errorf(berth.KindInvalid, "no database: give --postgres-url, or the --data-dir of a `berth dev` that runs: %w", err)
	}

	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) < 2 {
		return berth.Errorf(berth.KindInvalid, "%s must hold the addresses of PostgreSQL and Temporal: start `berth dev` again", path)
	}

	b.OwnTemporal = b.TemporalAddress == "" && len(lines) > 2 && lines[2] == ownBackend
	b.PostgresURL, b.TemporalAddress = lines[0], cmp.Or(b.TemporalAddress, lines[1])

	return nil
}
