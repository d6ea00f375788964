package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/runtrial"
	"github.com/berthml/berth/internal/agent/secrets"
	"github.com/berthml/berth/internal/store/postgres"
)

// bindSecretsKey adds the flag of the key file.
func bindSecretsKey(flags *pflag.FlagSet, path *string, usage string) {
	flags.StringVar(path, "secrets-key", "", usage)
}

// openKeys reads a key file; nil = no file. Errors: invalid.
func openKeys(path string) (*secrets.Keys, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // none is no error
	}

	keys, err := secrets.Read(path)
	if err != nil {
		return nil, fmt.Errorf("--secrets-key: %w", err)
	}

	return keys, nil
}

// opener opens the secrets of the database. A worker without a private key asks, too:
// trials of a secret that was deleted need no key, and it is not the machine's fault
// that they cannot start.
func (m *machine) opener(store *postgres.Store) runtrial.OpenSecret {
	return func(ctx context.Context, name string) ([]byte, error) {
		sealed, err := store.GetSecret(ctx, name)
		if err != nil {
			return nil, err
		}

		return m.keys.Open(sealed)
	}
}

// allowKeys adds `secret key`, which makes a key file and asks no server.
func allowKeys(root *cobra.Command) {
	noun, _, err := root.Find([]string{"secret"})
	if err != nil {
		panic(err) // there is no such command
	}

	noun.AddCommand(&cobra.Command{
		Use:   "key FILE",
		Short: "Make a key for secrets, in a new file that only its owner may read; asks no server",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return berth.Errorf(berth.KindInvalid, "name one file, such as `%s secrets.key`", cmd.CommandPath())
			}

			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			public, err := secrets.Make(args[0])
			if err != nil {
				return err
			}

			fmt.Fprintf(cmd.ErrOrStderr(), "made %s; keep a copy where the database's backups are not: without it the secrets cannot be opened.\n"+
				"Workers need the file (--secrets-key). A server can have it, or a file with its public part only, which is:\n", args[0])
			fmt.Fprintln(cmd.OutOrStdout(), public)

			return nil
		},
	})
}
