package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Exec runs each statement alone, on a new connection.
func Exec(t testing.TB, url string, statements ...string) {
	t.Helper()

	for _, statement := range statements {
		require.NoError(t, Try(t.Context(), url, statement), statement)
	}
}

// Try runs a statement on a new connection.
func Try(ctx context.Context, url, statement string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // a test's

	_, err = conn.Exec(ctx, statement)

	return err
}

// Count asks for one number.
func Count(t testing.TB, url, sql string) (n int) {
	t.Helper()

	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)

	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a test's

	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&n), sql)

	return n
}
