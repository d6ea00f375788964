package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/berthml/berth/api/client"
)

func (o *options) createTokenCommand() *cobra.Command {
	var (
		role    string
		expires time.Duration
	)

	cmd := o.verb("create NAME", "Make an API token, which is shown this once", cobra.ExactArgs(1),
		func(cmd *cobra.Command, to *remote, args []string) error {
			created, err := answer[client.CreatedToken](to.CreateToken(cmd.Context(), client.NewToken{
				Name: args[0], Role: client.TokenRole(role), ExpiresInSeconds: int64(expires.Seconds()),
			}))
			if err != nil {
				return err
			}

			say(cmd.ErrOrStderr(), "token %s (%s); it cannot be shown again. From now on every call needs a token: "+
				"export BERTH_TOKEN=…\n", created.Token.Name, created.Token.Role)

			return o.print(cmd.OutOrStdout(), created, func() table { return table{rows: [][]string{{created.Secret}}} })
		})
	cmd.Flags().StringVar(&role, "role", "operator", "viewer (reads), operator (also runs sweeps) or admin (also removes machines and makes tokens)")
	cmd.Flags().DurationVar(&expires, "expires-in", 0, "such as 720h; default: never")

	return cmd
}

func (o *options) listTokensCommand() *cobra.Command {
	return o.verb("list", "List the API tokens", cobra.NoArgs, func(cmd *cobra.Command, to *remote, _ []string) error {
		list, err := answer[client.TokenList](to.ListTokens(cmd.Context()))

		return show(o, cmd, o.tokenTable)(list.Data, err)
	})
}

func (o *options) tokenTable(tokens []client.Token) table {
	t := table{header: []string{"id", "name", "role", "begins with", "state", "created"}}

	for _, token := range tokens {
		state := "valid"

		switch {
		case token.RevokedAt != nil:
			state = "revoked " + o.ago(*token.RevokedAt)
		case !token.Valid:
			state = "expired"
		case token.ExpiresAt != nil:
			state = "valid until " + token.ExpiresAt.Format(time.RFC3339)
		}

		t.add(short(token.ID), token.Name, string(token.Role), token.Prefix, state, o.ago(token.CreatedAt))
	}

	return t
}

func (o *options) revokeTokenCommand() *cobra.Command {
	return o.verb("revoke TOKEN", "End a token at once, by its id", cobra.ExactArgs(1), func(cmd *cobra.Command, to *remote, args []string) error {
		return confirm(cmd, "token %s is revoked", args[0])(to.RevokeToken(cmd.Context(), args[0]))
	})
}
