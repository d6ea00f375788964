package apitest

import (
	"context"
	"time"

	"github.com/berthml/berth"
)

// session is a browser that logged in with a token.
type session struct {
	token   string // id
	expires time.Time
}

// CreateSession is api.Access.
func (s *Store) CreateSession(_ context.Context, tokenID string, hash []byte, life time.Duration) (time.Time, error) {
	token, err := find(s, s.Tokens, "token", func(t berth.Token) bool { return t.ID == tokenID && valid(t) })
	if err != nil {
		return time.Time{}, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if s.SessionErr != nil {
		return time.Time{}, s.SessionErr
	}

	expires := time.Now().UTC().Add(life)
	if token.ExpiresAt != nil && token.ExpiresAt.Before(expires) {
		expires = *token.ExpiresAt
	}

	if s.sessions == nil {
		s.sessions = make(map[string]session)
	}

	s.sessions[string(hash)] = session{token: tokenID, expires: expires}

	return expires, nil
}

// SessionByHash is api.Access.
func (s *Store) SessionByHash(_ context.Context, hash []byte) (berth.Session, error) {
	s.mu.Lock()
	found := s.sessions[string(hash)]
	s.mu.Unlock()

	token, err := find(s, s.Tokens, "session", func(t berth.Token) bool {
		return t.ID == found.token && valid(t) && found.expires.After(time.Now())
	})

	return berth.Session{Token: token, ExpiresAt: found.expires}, err
}

// DeleteSession is api.Access.
func (s *Store) DeleteSession(_ context.Context, hash []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.sessions, string(hash)) // and the answer is lost

	return s.SessionErr
}

// ExpireSessions ends the time of all sessions, and Sessions says how many there are.
func (s *Store) ExpireSessions() {
	s.Change(func() {
		for hash, one := range s.sessions {
			one.expires = time.Now().Add(-time.Second)
			s.sessions[hash] = one
		}
	})
}

// Sessions is how many sessions there are, expired ones included.
func (s *Store) Sessions() (n int) {
	s.Change(func() { n = len(s.sessions) })

	return n
}
