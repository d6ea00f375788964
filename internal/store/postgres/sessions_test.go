package postgres_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// sessions is a store with what its tests need.
type sessions struct {
	*bundle

	made uint64 // hashes
}

// hash is a unique one.
func (s *sessions) hash() []byte {
	s.made++

	return binary.BigEndian.AppendUint64(make([]byte, 24), s.made)
}

func (s *sessions) token(t *testing.T, role string, life time.Duration) berth.Token {
	t.Helper()

	token, err := s.store.CreateToken(t.Context(), berth.Token{Name: "ci", Prefix: "berth_x", Role: role}, life, s.hash())
	require.NoError(t, err)

	return token
}

// logIn makes a session of 30 days, if the token allows it.
func (s *sessions) logIn(t *testing.T, token berth.Token) (hash []byte, expires time.Time) {
	t.Helper()

	hash = s.hash()
	expires, err := s.store.CreateSession(t.Context(), token.ID, hash, 30*24*time.Hour)
	require.NoError(t, err)

	return hash, expires
}

// requireEnded checks that the session is no longer valid.
func (s *sessions) requireEnded(t *testing.T, hash []byte) {
	t.Helper()

	_, err := s.store.SessionByHash(t.Context(), hash)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
}

func TestSession_HasTheNameAndRoleOfItsToken(t *testing.T) {
	t.Parallel()

	s := &sessions{bundle: bare(t)}
	token := s.token(t, "operator", 0)
	hash, expires := s.logIn(t, token)
	require.WithinDuration(t, time.Now().Add(30*24*time.Hour), expires, time.Minute)

	found, err := s.store.SessionByHash(t.Context(), hash)
	require.NoError(t, err)
	require.Equal(t, berth.Session{Token: berth.Token{ID: token.ID, Name: "ci", Role: "operator", Valid: true}, ExpiresAt: expires}, found)

	s.requireEnded(t, s.hash()) // another one

	require.NoError(t, s.store.DeleteSession(t.Context(), hash))
	require.NoError(t, s.store.DeleteSession(t.Context(), hash), "it is there no more, which is what was asked for")
	s.requireEnded(t, hash)
}

// A session ends with its token, or by its own time. Retention deletes what has ended.
func TestSession_EndsWithItsToken(t *testing.T) {
	t.Parallel()

	s := &sessions{bundle: bare(t)}
	short, revoked := s.token(t, "operator", time.Hour), s.token(t, "operator", 0)

	hash, expires := s.logIn(t, short)
	require.Equal(t, short.ExpiresAt.UTC(), expires)
	s.exec(t, "UPDATE api_tokens SET expires_at = now() - interval '1 second' WHERE id = $1", short.ID)
	s.requireEnded(t, hash)

	hash, _ = s.logIn(t, revoked)
	require.NoError(t, s.store.RevokeToken(t.Context(), revoked.ID))
	s.requireEnded(t, hash)

	for _, token := range []berth.Token{short, revoked} {
		_, err := s.store.CreateSession(t.Context(), token.ID, s.hash(), time.Hour)
		require.Equal(t, berth.KindNotFound, berth.KindOf(err))
	}

	lasting := s.token(t, "operator", 0)
	expired, _ := s.logIn(t, lasting)
	s.exec(t, "UPDATE sessions SET created_at = now() - interval '30 days', expires_at = now() - interval '1 second' WHERE hash = $1", expired)
	s.requireEnded(t, expired)

	valid, _ := s.logIn(t, lasting)
	s.exec(t, "DELETE FROM api_tokens WHERE id = $1", short.ID)
	require.Equal(t, 3, s.rows(t, "sessions"), "the row goes with its token")
	retainAll(t, s.store)
	require.Equal(t, 1, s.rows(t, "sessions"))

	_, err := s.store.SessionByHash(t.Context(), valid)
	require.NoError(t, err)
}

// TestSession_OldestMakeRoom: a user who logs in again and again fills no
// table, and ends no session of another token.
func TestSession_OldestMakeRoom(t *testing.T) {
	t.Parallel()

	s := &sessions{bundle: bare(t)}
	token := s.token(t, "operator", 0)
	other, _ := s.logIn(t, s.token(t, "operator", 0))
	first, _ := s.logIn(t, token)
	second, _ := s.logIn(t, token)

	for range 99 {
		s.logIn(t, token)
	}

	require.Equal(t, 101, s.rows(t, "sessions"), "100 of the one, 1 of the other")
	s.requireEnded(t, first)

	for _, hash := range [][]byte{other, second} {
		_, err := s.store.SessionByHash(t.Context(), hash)
		require.NoError(t, err)
	}
}
