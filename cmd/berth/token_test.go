package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// Who has the database gets in again when no token is valid any more.
func TestTokenCreate_WritesToTheDatabase(t *testing.T) {
	t.Parallel()

	url := pgtest.URL(t)
	create := func(args ...string) (string, error) {
		var out bytes.Buffer

		cmd := root()
		cmd.SetArgs(append([]string{"token", "create", "me", "--postgres-url", url}, args...))
		cmd.SetOut(&out)
		err := cmd.ExecuteContext(t.Context())

		return out.String(), err
	}

	_, err := create("--role", "owner")
	require.ErrorContains(t, err, "viewer, operator or admin")

	_, err = create()
	require.ErrorContains(t, err, "the first token must have the role admin")

	store, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	require.NoError(t, err)
	t.Cleanup(store.Close)

	made, err := store.CreateToken(t.Context(), berth.Token{Name: "lost", Role: "admin"}, 0, make([]byte, 32))
	require.NoError(t, err)
	require.NoError(t, store.RevokeToken(t.Context(), made.ID))

	text, err := create("--role", "admin")
	require.NoError(t, err)
	require.Regexp(t, `^berth_[A-Za-z0-9_-]{43}\n$`, text)

	count, err := store.CountTokens(t.Context())
	require.NoError(t, err)
	require.Equal(t, berth.TokenCount{Made: 2, Valid: 1}, count)
}
