package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/store/postgres"
)

// allowRecovery lets `token create` write to the database itself. That is how
// the administrator of the machine gets in when no token is valid any more and
// the server refuses every caller.
func allowRecovery(root *cobra.Command) {
	cmd, _, err := root.Find([]string{"token", "create"})
	if err != nil {
		panic(err) // there is no such command
	}

	var url string

	cmd.Flags().StringVar(&url, "postgres-url", "", "write to this database and ask no server: for when no token is valid any more")

	viaServer := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if url == "" {
			return viaServer(cmd, args)
		}

		role, err := cmd.Flags().GetString("role")
		if err != nil {
			return fmt.Errorf("reading --role: %w", err)
		}

		expires, err := cmd.Flags().GetDuration("expires-in")
		if err != nil {
			return fmt.Errorf("reading --expires-in: %w", err)
		}

		return createToken(cmd.Context(), url, berth.Token{Name: args[0], Role: role}, expires, cmd.OutOrStdout())
	}
}

// createToken stores a token and prints its text.
func createToken(ctx context.Context, url string, token berth.Token, expires time.Duration, out io.Writer) error {
	switch token.Role {
	case "viewer", "operator", "admin":
	default:
		return berth.Errorf(berth.KindInvalid, "--role %q must be viewer, operator or admin", token.Role)
	}

	if expires < 0 {
		return berth.Errorf(berth.KindInvalid, "--expires-in %s is in the past", expires)
	}

	store, err := postgres.Open(ctx, postgres.Config{URL: url})
	if err != nil {
		return err
	}
	defer store.Close()

	if err := store.CheckSchema(ctx); err != nil {
		return err
	}

	text, created, err := api.MakeToken(ctx, store, token, expires)
	if err != nil {
		return err
	}

	fmt.Fprintln(out, text)

	return store.Audit(ctx, berth.AuditEntry{Actor: "database", Action: "token create", Object: created.ID, Result: "201"})
}
