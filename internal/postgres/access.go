package postgres

import (
	"context"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/postgres/dbsqlc"
)

// CreateToken stores the SHA-256 of a token.
func (s *Store) CreateToken(ctx context.Context, t berth.Token, hash []byte) (berth.Token, error) {
	row, err := s.q.InsertToken(ctx, s.pool, &dbsqlc.InsertTokenParams{
		Name: t.Name, Prefix: t.Prefix, Hash: hash, Role: t.Role, ExpiresAt: t.ExpiresAt,
	})
	t.ID, t.CreatedAt, t.Valid = row.ID, row.CreatedAt.UTC(), true

	return t, translate(err, "storing token")
}

// TokenByHash finds a token by the SHA-256 of what the caller sent. Errors: not_found.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (berth.Token, error) {
	row, err := s.q.GetTokenByHash(ctx, s.pool, hash)

	return berth.Token{
		ID: row.ID, Name: row.Name, Prefix: row.Prefix, Role: row.Role, CreatedAt: row.CreatedAt.UTC(),
		ExpiresAt: row.ExpiresAt, RevokedAt: row.RevokedAt, Valid: row.Valid,
	}, translate(err, "reading token")
}

// ListTokens returns all tokens, oldest first.
func (s *Store) ListTokens(ctx context.Context) ([]berth.Token, error) {
	rows, err := s.q.ListTokens(ctx, s.pool)
	if err != nil {
		return nil, translate(err, "listing tokens")
	}

	return convertAll(rows, func(row dbsqlc.ApiToken) (berth.Token, error) {
		valid := row.RevokedAt == nil && (row.ExpiresAt == nil || row.ExpiresAt.After(time.Now()))

		return berth.Token{
			ID: row.ID, Name: row.Name, Prefix: row.Prefix, Role: row.Role, CreatedAt: row.CreatedAt.UTC(),
			ExpiresAt: row.ExpiresAt, RevokedAt: row.RevokedAt, Valid: valid,
		}, nil
	})
}

// RevokeToken ends a token at once. Errors: not_found.
func (s *Store) RevokeToken(ctx context.Context, id string) error {
	rows, err := s.q.RevokeToken(ctx, s.pool, id)

	return must(rows, err, "revoking token", "no valid token "+id)
}

// CountTokens returns how many tokens were ever made, and how many are valid.
func (s *Store) CountTokens(ctx context.Context) (berth.TokenCount, error) {
	row, err := s.q.CountTokens(ctx, s.pool)

	return berth.TokenCount{Made: int(row.Made), Valid: int(row.Valid)}, translate(err, "counting tokens")
}

// Audit appends to the audit log.
func (s *Store) Audit(ctx context.Context, e berth.AuditEntry) error {
	return translate(s.q.InsertAudit(ctx, s.pool, &dbsqlc.InsertAuditParams{
		Actor: e.Actor, Action: e.Action, Object: e.Object, Ip: e.IP, Result: e.Result,
	}), "writing the audit log")
}
