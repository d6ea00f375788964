package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Session is a test's own connection, for queries that no store has.
type Session struct {
	t    testing.TB
	conn *pgx.Conn
}

// Connect opens a session, which ends with the test.
func Connect(t testing.TB, url string) *Session {
	t.Helper()

	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })

	return &Session{t, conn}
}

// Exec runs a statement.
func (s *Session) Exec(statement string, args ...any) {
	s.t.Helper()

	_, err := s.conn.Exec(s.t.Context(), statement, args...)
	require.NoError(s.t, err)
}

// Int runs a query for one number.
func (s *Session) Int(query string, args ...any) (n int64) {
	s.t.Helper()
	require.NoError(s.t, s.conn.QueryRow(s.t.Context(), query, args...).Scan(&n))

	return n
}

// Text runs a query that returns one text.
func (s *Session) Text(query string, args ...any) (text string) {
	s.t.Helper()
	require.NoError(s.t, s.conn.QueryRow(s.t.Context(), query, args...).Scan(&text))

	return text
}
