package postgres

import "github.com/jackc/pgx/v5/pgxpool"

// Granted are the names with a decision on the privileges of processes.
func Granted() []string {
	names := make([]string, len(grants))
	for i, one := range grants {
		names[i] = one.name
	}

	return names
}

// Pool is the store's pool.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }
