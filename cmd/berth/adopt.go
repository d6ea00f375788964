package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/artifacts"
)

// servedWithin is the time in which a worker that runs asks for work: its long poll.
const servedWithin = time.Minute

// backendsFile says where `berth dev` has its database and its Temporal.
const backendsFile = "backends"

// ownBackend is its third line when `berth dev` runs that Temporal itself.
const ownBackend = "own"

func adoptCommand() *cobra.Command {
	var (
		b       backends
		dataDir string
		where   string // the store of artifacts; empty = none
		take    bool
		replace bool
	)

	cmd := &cobra.Command{
		Use:   "adopt-temporal",
		Short: "Go on with an empty Temporal after its store was lost, or with a restored database",
		Long: "Berth ends no sweep because Temporal has forgotten it. When the store of Temporal is lost for good, this\n" +
			"command makes the namespace this installation's again and starts the workflows of all open sweeps from\n" +
			"what the database knows: containers that run are adopted, trials that have ended are not repeated. Their\n" +
			"limits.max_duration counts anew, as the database does not know how long they were paused.\n" +
			"A database that was restored from a backup needs it, too. With --replace-original it replaces the original for\n" +
			"good, and takes its namespace, its machines and their containers; with --take-artifacts the store of\n" +
			"--artifacts, too. A restore drill leaves both out, and has a --temporal-namespace of its own: else the servers\n" +
			"of the original end, and files that it has stored since the backup are removed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(cmd.Flags())
			if err != nil {
				return err
			}

			if b.postgresURL == "" {
				if err := b.ofDev(dataDir); err != nil {
					return err
				}

				where = cmp.Or(where, devArtifacts(dataDir))
			}

			if take && where == "" {
				return berth.Errorf(berth.KindInvalid, "--take-artifacts: which store? give --artifacts, as the server and the workers have it")
			}

			return b.open(cmd.Context(), log, func(c connections) error {
				if err := register(cmd.Context(), c.temporal, connectPatience, log); err != nil {
					return err
				}

				done, err := c.identity.Adopt(cmd.Context(), c.store, replace)
				if err != nil {
					return err
				}

				fmt.Fprintf(cmd.OutOrStdout(), "Namespace %q of Temporal belongs to installation %s. Started again: %d sweeps with %d open trials.\n",
					c.temporal.Namespace(), c.installation.ID, done.Sweeps, done.Trials)

				if ago := time.Since(done.PolledAt); ago < servedWithin {
					log.Warn("a worker asked this namespace for work; stop every worker and start it again: one on the replaced database would take work of this one and "+
						"write into its own, and one on this database does not know what it replaced", "ago", ago.Round(time.Second))
				}

				if done.Copied {
					fmt.Fprintln(cmd.OutOrStdout(), "This database may be a restored copy: its workers leave machines and containers of the original alone. "+
						"When the original is gone for good, stop server and workers, run this again with --replace-original, and start them.")
				}

				return adoptArtifacts(cmd.Context(), cmd.OutOrStdout(), where, take, c, log)
			})
		},
	}

	b.bind(cmd.Flags())
	cmd.Flags().StringVar(&dataDir, "data-dir", defaultDataDir(), "of the `berth dev` that runs, when no --postgres-url is given")
	bindArtifacts(cmd.Flags(), &where, "none is looked at")
	cmd.Flags().BoolVar(&replace, "replace-original", false,
		"this database, which was restored or upgraded, replaces the original for good: the original is gone, and no server or worker of it runs")
	cmd.Flags().BoolVar(&take, "take-artifacts", false,
		"this database replaces the one that the --artifacts store was of: the server removes files that it does not name, after --artifacts-grace")

	return cmd
}

// ofDev reads where a running `berth dev` has its database and its Temporal.
func (b *backends) ofDev(dataDir string) error {
	path := filepath.Join(dataDir, backendsFile)

	text, err := os.ReadFile(path) //nolint:gosec // G304: the user's own
	if err != nil {
		return berth.Errorf(berth.KindInvalid, "no database: give --postgres-url, or the --data-dir of a `berth dev` that runs: %w", err)
	}

	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) < 2 {
		return berth.Errorf(berth.KindInvalid, "%s must hold the addresses of PostgreSQL and Temporal: start `berth dev` again", path)
	}

	b.ownTemporal = b.temporalAddress == "" && len(lines) > 2 && lines[2] == ownBackend
	b.postgresURL, b.temporalAddress = lines[0], cmp.Or(b.temporalAddress, lines[1])

	return nil
}

// adoptArtifacts makes the store of artifacts this database's if a person says so,
// else it tells whether that remains to be said.
func adoptArtifacts(ctx context.Context, out io.Writer, where string, take bool, c connections, log *slog.Logger) error {
	if where == "" {
		return nil
	}

	if take {
		name, err := takeArtifacts(ctx, where, c)
		if err == nil {
			fmt.Fprintf(out, "The store %s belongs to this database: files that it does not name are removed after --artifacts-grace.\n", name)
		}

		return err
	}

	if f := checkArtifacts(ctx, where, c.store); !f.OK || f.Warn {
		log.Warn("looking at the store of artifacts", "finding", f.What, "next", f.Next)
	}

	return nil
}

// takeArtifacts makes the store of artifacts this database's, and returns its name.
func takeArtifacts(ctx context.Context, where string, c connections) (name string, err error) {
	store, err := artifacts.Open(ctx, where, c.installation.ID, c.store)
	if err != nil {
		return "", err
	}

	return store.Where(), errors.Join(store.Take(ctx), store.Close())
}
