package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"os"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

func (o *options) setSecretCommand() *cobra.Command {
	var from string

	cmd := o.verb("set NAME", "Store a secret that sweeps mount by its name; its value comes from standard input", oneName,
		func(cmd *cobra.Command, to *remote, args []string) error {
			value, err := readSecret(cmd, args[0], from)
			if err != nil {
				return err
			}

			stored, err := answer[client.StoredSecret](to.PutSecret(cmd.Context(), args[0], client.SecretValue{
				Value: base64.StdEncoding.EncodeToString(value), Encoding: client.SecretBase64,
			}))
			if err != nil {
				return err
			}

			for _, warning := range stored.Warnings {
				say(cmd.ErrOrStderr(), "warning: %s: %s\n", warning.Code, warning.Detail)
			}

			return o.print(cmd.OutOrStdout(), stored.Secret, func() table { return o.secretTable([]client.Secret{stored.Secret}) })
		})
	cmd.Flags().StringVar(&from, "from-file", "", "take the value from this file, byte by byte; without it the line break at the end of standard input is left out")

	return cmd
}

// oneName takes a name and no value: other users of the machine see arguments, and
// the shell keeps them.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return errors.New("a secret's value is no argument, which other users could see: it comes from standard input or --from-file")
	}

	return cobra.ExactArgs(1)(cmd, args)
}

// readSecret reads a value. On a terminal it asks for it, and shows nothing of it.
func readSecret(cmd *cobra.Command, name, from string) (value []byte, err error) {
	in := cmd.InOrStdin()
	file, isFile := in.(*os.File)

	switch {
	case from != "":
		value, err = os.ReadFile(from) //nolint:gosec // G304: the user names a file of their own
	case isFile && isatty.IsTerminal(file.Fd()):
		say(cmd.ErrOrStderr(), "value of secret %s (not shown): ", name)

		value, err = readHidden(cmd.Context(), int(file.Fd()))

		say(cmd.ErrOrStderr(), "\n")
	default:
		// One byte more than a value with its line break: a longer one is refused, and never cut.
		if value, err = io.ReadAll(io.LimitReader(in, berth.MaxSecretBytes+int64(len("\r\n"))+1)); err == nil {
			value = bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))
		}
	}

	switch {
	case errors.Is(err, context.Canceled):
		return nil, exitf(ExitInterrupt, "interrupted")
	case err != nil:
		return nil, exitf(ExitUsage, "reading the value of secret %q: %w", name, err)
	case len(value) == 0:
		return nil, exitf(ExitUsage, "the value of secret %q is empty", name)
	case len(value) > berth.MaxSecretBytes:
		return nil, exitf(ExitUsage, "the value of secret %q has more than %s, the most that a secret has", name, berth.BytesText(berth.MaxSecretBytes))
	}

	return value, nil
}

// readHidden reads a line from a terminal without echo. It restores the echo
// when ctx ends, too.
func readHidden(ctx context.Context, terminal int) ([]byte, error) {
	before, err := term.GetState(terminal)
	if err != nil {
		return nil, err
	}

	type line struct {
		text []byte
		err  error
	}

	read := make(chan line, 1)

	go func() { // ends with the line, or with the program
		text, err := term.ReadPassword(terminal)
		read <- line{text, err}
	}()

	select {
	case l := <-read:
		return l.text, l.err
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), term.Restore(terminal, before))
	}
}

func (o *options) listSecretsCommand() *cobra.Command {
	return o.verb("list", "List the secrets, without their values", cobra.NoArgs, func(cmd *cobra.Command, to *remote, _ []string) error {
		return show(o, cmd, o.secretTable)(to.secrets(cmd.Context()))
	})
}

func (r *remote) secrets(ctx context.Context) ([]client.Secret, error) {
	list, err := answer[client.SecretList](r.ListSecrets(ctx))

	return list.Data, err
}

func (o *options) secretTable(list []client.Secret) table {
	t := table{header: []string{"name", "version", "stored", "by", "sealed to"}}
	for _, s := range list {
		t.add(s.Name, grouped(int64(s.Version)), o.ago(s.UpdatedAt), s.UpdatedBy, s.Key)
	}

	return t
}

func (o *options) deleteSecretCommand() *cobra.Command {
	var force bool

	cmd := o.verb("delete NAME", "Delete a secret that no sweep needs any more", cobra.ExactArgs(1), func(cmd *cobra.Command, to *remote, args []string) error {
		return confirm(cmd, "secret %s is deleted", args[0])(to.DeleteSecret(cmd.Context(), args[0], &client.DeleteSecretParams{Force: force}))
	})
	cmd.Flags().BoolVar(&force, "force", false, "also when sweeps mount it that have not ended: their trials that have not started fail")

	return cmd
}
