package postgres_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/postgres"
)

// sessionStore is a store with what its tests need.
type sessionStore struct {
	*postgres.Store

	t    *testing.T
	pool *pgxpool.Pool
	made uint64 // hashes
}

func sessionSetup(t *testing.T) *sessionStore {
	t.Helper()

	url := pgtest.URL(t)

	return &sessionStore{Store: open(t, url), t: t, pool: openPool(t, url)}
}

// hash is a unique one.
func (s *sessionStore) hash() []byte {
	s.made++

	return binary.BigEndian.AppendUint64(make([]byte, 24), s.made)
}

func (s *sessionStore) token(name string, life time.Duration) berth.Token {
	s.t.Helper()

	token, err := s.CreateToken(s.t.Context(), berth.Token{Name: name, Prefix: "berth_x", Role: "operator"}, life, s.hash())
	require.NoError(s.t, err)

	return token
}

// logIn makes a session of 30 days, if the token allows it.
func (s *sessionStore) logIn(token berth.Token) (hash []byte, expires time.Time) {
	s.t.Helper()

	hash = s.hash()
	expires, err := s.CreateSession(s.t.Context(), token.ID, hash, 30*24*time.Hour)
	require.NoError(s.t, err)

	return hash, expires
}

// requireEnded checks that the session is no longer valid.
func (s *sessionStore) requireEnded(hash []byte) {
	s.t.Helper()

	_, err := s.SessionByHash(s.t.Context(), hash)
	require.Equal(s.t, berth.KindNotFound, berth.KindOf(err))
}

func (s *sessionStore) exec(query string, args ...any) {
	s.t.Helper()

	_, err := s.pool.Exec(s.t.Context(), query, args...)
	require.NoError(s.t, err)
}

// rows is how many sessions there are, ended ones included.
func (s *sessionStore) rows() (n int) {
	s.t.Helper()

	require.NoError(s.t, s.pool.QueryRow(s.t.Context(), "SELECT count(*) FROM sessions").Scan(&n))

	return n
}

func TestSession_HasTheNameAndRoleOfItsToken(t *testing.T) {
	t.Parallel()

	s := sessionSetup(t)
	token := s.token("ci", 0)
	hash, expires := s.logIn(token)
	require.WithinDuration(t, time.Now().Add(30*24*time.Hour), expires, time.Minute)

	found, err := s.SessionByHash(t.Context(), hash)
	require.NoError(t, err)
	require.Equal(t, berth.Session{Token: berth.Token{ID: token.ID, Name: "ci", Role: "operator", Valid: true}, ExpiresAt: expires}, found)

	s.requireEnded(s.hash()) // another one

	require.NoError(t, s.DeleteSession(t.Context(), hash))
	require.NoError(t, s.DeleteSession(t.Context(), hash), "it is there no more, which is what was asked for")
	s.requireEnded(hash)
}

func TestSession_EndsWithItsToken(t *testing.T) {
	t.Parallel()

	s := sessionSetup(t)
	short := s.token("short", time.Hour)

	hash, expires := s.logIn(short)
	require.Equal(t, short.ExpiresAt.UTC(), expires)
	s.exec("UPDATE api_tokens SET expires_at = now() - interval '1 second' WHERE id = $1", short.ID)
	s.requireEnded(hash)

	revoked := s.token("revoked", 0)
	hash, _ = s.logIn(revoked)
	require.NoError(t, s.RevokeToken(t.Context(), revoked.ID))
	s.requireEnded(hash)

	for _, token := range []berth.Token{short, revoked} {
		_, err := s.CreateSession(t.Context(), token.ID, s.hash(), time.Hour)
		require.Equal(t, berth.KindNotFound, berth.KindOf(err), token.Name)
	}

	s.exec("DELETE FROM api_tokens WHERE id = $1", revoked.ID)
	require.Equal(t, 1, s.rows(), "the row goes with its token")
}

func TestSession_EndsWithItsTime(t *testing.T) {
	t.Parallel()

	s := sessionSetup(t)
	hash, _ := s.logIn(s.token("ci", 0))
	s.exec("UPDATE sessions SET created_at = now() - interval '30 days', expires_at = now() - interval '1 second'")
	s.requireEnded(hash)
}

// TestSession_OldestMakeRoom: a user who logs in again and again fills no
// table, and ends no session of another token.
func TestSession_OldestMakeRoom(t *testing.T) {
	t.Parallel()

	s := sessionSetup(t)
	token := s.token("script", 0)
	other, _ := s.logIn(s.token("person", 0))
	first, _ := s.logIn(token)
	second, _ := s.logIn(token)

	for range 99 {
		s.logIn(token)
	}

	require.Equal(t, 101, s.rows(), "100 of the one, 1 of the other")
	s.requireEnded(first)

	for _, hash := range [][]byte{other, second} {
		_, err := s.SessionByHash(t.Context(), hash)
		require.NoError(t, err)
	}
}

func TestSession_RetentionDeletesWhatHasEnded(t *testing.T) {
	t.Parallel()

	s := sessionSetup(t)
	token, revoked := s.token("ci", 0), s.token("revoked", 0)
	expired, _ := s.logIn(token)
	s.exec("UPDATE sessions SET created_at = now() - interval '30 days', expires_at = now() - interval '1 second' WHERE hash = $1", expired)
	s.logIn(revoked)
	require.NoError(t, s.RevokeToken(t.Context(), revoked.ID))

	valid, _ := s.logIn(token)
	require.Equal(t, 3, s.rows())

	failed := make(map[string]error)
	require.False(t, s.Retain(t.Context(), berth.Retention{}, failed))
	require.Empty(t, failed)
	require.Equal(t, 1, s.rows())

	_, err := s.SessionByHash(t.Context(), valid)
	require.NoError(t, err)
}
