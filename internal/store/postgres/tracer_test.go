package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Trace makes the store tell tracer of each statement, from now on.
func (s *Store) Trace(ctx context.Context, tracer pgx.QueryTracer) error {
	config := s.pool.Config()
	config.ConnConfig.Tracer = tracer

	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}

	s.pool.Close()
	s.pool = pool

	return nil
}
