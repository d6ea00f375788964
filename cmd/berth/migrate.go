package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/config"
	"github.com/berthml/berth/internal/postgres"
)

// migration is what `berth migrate` is told.
type migration struct {
	url        string
	to         int // version; unset = the newest
	toSet      bool
	down, sure bool
	roles      postgres.Roles
	typed      bool // roles are on the command line, not in the environment or the configuration file
}

func migrateCommand() *cobra.Command {
	var m migration

	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema to this version, or back to an older one",
		Long: "Brings the schema to the newest version that this berth knows. A newer schema on which this\n" +
			"berth can work stays as it is. Each step is one transaction: one that fails or is interrupted\n" +
			"changes nothing, and the next `berth migrate` continues there.\n\n" +
			"Before an older berth runs its own `migrate` again, take the schema back with the newer one:\n" +
			"stop its servers and workers (containers go on), then `berth migrate --to VERSION --yes`.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m.toSet = cmd.Flags().Changed("to")
			m.typed = config.Typed(cmd.Flags(), "grant-server") || config.Typed(cmd.Flags(), "grant-worker")

			return m.run(cmd.Context(), cmd.ErrOrStderr())
		},
	}

	cmd.Flags().StringVar(&m.url, "postgres-url", "", "database, such as postgres://user:password@host/berth (required)")
	cmd.Flags().IntVar(&m.to, "to", 0, "version to bring the schema to, also back; 0 removes it with everything in it; default: the newest")
	cmd.Flags().BoolVar(&m.down, "down", false, "the same as --to 0")
	cmd.Flags().BoolVar(&m.sure, "yes", false, "confirm that going back loses what belongs to the newer steps")
	cmd.Flags().StringSliceVar(&m.roles.Server, "grant-server", nil,
		"database roles of servers, with commas between: they get what a server uses and nothing else; default: those that have it, whose grants are renewed")
	cmd.Flags().StringSliceVar(&m.roles.Worker, "grant-worker", nil, "the same for workers")

	return cmd
}

func (m migration) run(ctx context.Context, out io.Writer) error {
	if m.url == "" {
		return berth.Errorf(berth.KindInvalid, "no database: give --postgres-url or BERTH_POSTGRES_URL")
	}

	if m.down && m.toSet {
		return berth.Errorf(berth.KindInvalid, "give --to or --down, not both")
	}

	migrator, err := postgres.NewMigrator(m.url)
	if err != nil {
		return err
	}

	migrator.Report = func(text string) { fmt.Fprintln(out, text) }

	if m.toSet || m.down {
		older := m.to < migrator.Newest()
		if older && m.typed {
			return berth.Errorf(berth.KindInvalid, "--grant-server and --grant-worker are about the newest schema, %d: leave them out with --to %d; "+
				"what tables stay keep their grants", migrator.Newest(), m.to)
		}

		if older && len(m.roles.Server)+len(m.roles.Worker) > 0 {
			fmt.Fprintf(out, "BERTH_GRANT_SERVER and BERTH_GRANT_WORKER are about the newest schema, %d: not used with --to %d; what tables stay keep their grants\n",
				migrator.Newest(), m.to)
		}

		if err := m.move(ctx, migrator); err != nil || older {
			return err
		}

		return m.grant(ctx, migrator, out)
	}

	version, err := migrator.Up(ctx)
	if err != nil {
		return err
	}

	if newest := migrator.Newest(); version > newest {
		fmt.Fprintf(out, "the schema is version %d, newer than the %d of this berth, which can work on it: left as it is, with its grants\n", version, newest)

		return nil
	}

	fmt.Fprintf(out, "the schema is up to date, version %d\n", version)

	return m.grant(ctx, migrator, out)
}

// grant gives the roles what they need of the tables that there are now.
func (m migration) grant(ctx context.Context, migrator *postgres.Migrator, out io.Writer) error {
	roles, err := migrator.Grant(ctx, m.roles)
	if err != nil {
		return err
	}

	for _, of := range []struct {
		what  string
		names []string
	}{{"server", roles.Server}, {"worker", roles.Worker}} {
		for _, name := range of.names {
			fmt.Fprintf(out, "the role %q may do what a %s does, and nothing else\n", name, of.what)
		}
	}

	if len(roles.Server)+len(roles.Worker) > 0 {
		fmt.Fprintln(out, "other roles, such as a dashboard's, need GRANT CONNECT ON DATABASE … TO ROLE to connect; what they were granted on tables stays")
	}

	return nil
}

// move goes to a version, but back only when the person is sure.
func (m migration) move(ctx context.Context, migrator *postgres.Migrator) error {
	losses, err := migrator.Losses(ctx, m.to)
	if err != nil {
		return err
	}

	if len(losses) > 0 && !m.sure {
		return berth.Errorf(berth.KindInvalid, "going back to version %d loses:\n  %s\nStop every server and worker of this version first "+
			"(containers go on), back up the database, and add --yes if you mean it", m.to, strings.Join(losses, "\n  "))
	}

	return migrator.To(ctx, m.to)
}
