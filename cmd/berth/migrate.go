package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
)

// migration is the settings of `berth migrate`.
type migration struct {
	url   string
	roles postgres.Roles
	renew bool // the database is a copy that becomes an installation of its own
}

func migrateCommand() *cobra.Command {
	var m migration

	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema to this version",
		Long: "Brings the schema to the version of this berth. Each step is one transaction: a step that\n" +
			"fails or is interrupted changes nothing, and the next `berth migrate` continues there.\n" +
			"There is no way back but a backup: make one first.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return m.run(cmd.Context(), cmd.ErrOrStderr()) },
	}

	cmd.Flags().StringVar(&m.url, "postgres-url", "", "database, such as postgres://user:password@host/berth (required)")
	cmd.Flags().BoolVar(&m.renew, "new-installation", false,
		"give this copy of a database an id of its own, for a restore drill beside the original: it takes nothing that is the original's")
	cmd.Flags().StringSliceVar(&m.roles.Server, "grant-server", nil,
		"database roles of servers, with commas between: they get what a server uses and nothing else; default: those that have it, whose grants are renewed")
	cmd.Flags().StringSliceVar(&m.roles.Worker, "grant-worker", nil, "the same for workers")

	return cmd
}

func (m migration) run(ctx context.Context, out io.Writer) error {
	if m.url == "" {
		return berth.Errorf(berth.KindInvalid, "no database: give --postgres-url or BERTH_POSTGRES_URL")
	}

	migrator, err := postgres.NewMigrator(m.url)
	if err != nil {
		return err
	}

	migrator.Report = func(text string) { fmt.Fprintln(out, text) }

	if err := migrator.Up(ctx); err != nil {
		return err
	}

	fmt.Fprintf(out, "the schema is up to date, version %d\n", migrator.Newest())

	if m.renew {
		if err := m.renewInstallation(ctx, out); err != nil {
			return err
		}
	}

	return m.grant(ctx, migrator, out)
}

func (m migration) renewInstallation(ctx context.Context, out io.Writer) error {
	store, err := postgres.Open(ctx, postgres.Config{URL: m.url, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer store.Close()

	id, err := store.RenewInstallation(ctx)
	if err == nil {
		fmt.Fprintf(out, "the database is installation %s now\n", id)
	}

	return err
}

// grant gives the roles their privileges on the present tables.
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
