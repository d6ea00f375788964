package postgres

import "context"

// Setting is a setting of the server as the store's connections have it.
func (s *Store) Setting(ctx context.Context, name string) (value string, err error) {
	err = s.pool.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value)

	return value, err
}
