package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/health"
	"github.com/berthml/berth/internal/store/postgres/dbsqlc"
)

// CreateToken stores the SHA-256 of a token that is valid for life, 0 = for ever, by the
// database's clock, which also decides when it has expired.
func (s *Store) CreateToken(ctx context.Context, t berth.Token, life time.Duration, hash []byte) (berth.Token, error) {
	row, err := s.q.InsertToken(ctx, s.pool, &dbsqlc.InsertTokenParams{
		Name: t.Name, Prefix: t.Prefix, Hash: hash, Role: t.Role, Life: life,
	})
	t.ID, t.CreatedAt, t.ExpiresAt, t.Valid = row.ID, row.CreatedAt, row.ExpiresAt, life >= 0

	return t, translate(err, "storing token")
}

// TokenByHash finds a token by the SHA-256 of its text. Errors: not_found.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (berth.Token, error) {
	row, err := s.q.GetTokenByHash(ctx, s.pool, hash)

	return berth.Token(row), translate(err, "reading token")
}

// ListTokens returns all tokens, oldest first.
func (s *Store) ListTokens(ctx context.Context) ([]berth.Token, error) {
	rows, err := s.q.ListTokens(ctx, s.pool)

	return collect(rows, err, "listing tokens", func(row dbsqlc.ListTokensRow) berth.Token { return berth.Token(row) })
}

// RevokeToken ends a token at once. Errors: not_found; conflict for the last valid token
// of an admin while others are valid: their holders could never be given new ones.
func (s *Store) RevokeToken(ctx context.Context, id string) error {
	return s.inTx(ctx, "revoking token", func(tx pgx.Tx) error {
		admins, err := s.q.LockAdminTokens(ctx, tx)
		if err != nil {
			return err
		}

		tokens, err := s.q.CountTokens(ctx, tx)
		if err != nil {
			return err
		}

		if len(admins) == 1 && admins[0] == id && tokens.Valid > 1 {
			return berth.Errorf(berth.KindConflict, "token %s is the last valid one of an admin, and %d other tokens are valid: "+
				"make another first, by `berth token create NAME --role admin`", id, tokens.Valid-1)
		}

		rows, err := s.q.RevokeToken(ctx, tx, id)

		return must(rows, err, "revoking token", "no valid token "+id)
	})
}

// CountTokens returns how many tokens were ever made, and how many are valid.
func (s *Store) CountTokens(ctx context.Context) (berth.TokenCount, error) {
	row, err := s.q.CountTokens(ctx, s.pool)

	return berth.TokenCount(row), translate(err, "counting tokens")
}

// adminTokens is not known to a worker's role, which may not read tokens.
func (s *Store) adminTokens(ctx context.Context) health.AdminTokens {
	row, err := s.q.GetAdminTokens(ctx, s.pool)
	if err != nil {
		return health.AdminTokens{}
	}

	return health.AdminTokens(row)
}

// sessionsKept is how many sessions a token has at most: more than a person has
// browsers, and few enough that no caller fills the table.
const sessionsKept = 100

// CreateSession stores the SHA-256 of a session, which ends after life or with its
// token. The oldest of a token make room. Errors: not_found for a token that is not
// valid.
func (s *Store) CreateSession(ctx context.Context, tokenID string, hash []byte, life time.Duration) (expires time.Time, err error) {
	if err := s.q.DeleteExcessSessions(ctx, s.pool, tokenID, sessionsKept-1); err != nil {
		return expires, translate(err, "deleting the oldest sessions of token "+tokenID)
	}

	expires, err = s.q.InsertSession(ctx, s.pool, &dbsqlc.InsertSessionParams{Hash: hash, TokenID: tokenID, Life: life})

	return expires, translate(err, "storing session of token "+tokenID)
}

// SessionByHash finds a session by the SHA-256 of the browser's cookie. Errors:
// not_found, also when the session or its token is no longer valid.
func (s *Store) SessionByHash(ctx context.Context, hash []byte) (berth.Session, error) {
	row, err := s.q.GetSession(ctx, s.pool, hash)

	return berth.Session{
		Token: berth.Token{ID: row.ID, Name: row.Name, Role: row.Role, Valid: true}, ExpiresAt: row.ExpiresAt,
	}, translate(err, "reading session")
}

// DeleteSession ends a session. An unknown session is no error.
func (s *Store) DeleteSession(ctx context.Context, hash []byte) error {
	return translate(s.q.DeleteSession(ctx, s.pool, hash), "deleting session")
}

// Audit appends to the audit log.
func (s *Store) Audit(ctx context.Context, e berth.AuditEntry) error {
	return translate(s.q.InsertAudit(ctx, s.pool, &dbsqlc.InsertAuditParams{
		Actor: e.Actor, Action: e.Action, Object: e.Object, IP: e.IP, Result: e.Result,
	}), "writing the audit log")
}
