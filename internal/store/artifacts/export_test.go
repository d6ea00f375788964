package artifacts

import "time"

// StallAfter ends uploads that make no progress for d.
func (s *Store) StallAfter(d time.Duration) { s.stall = d }

// ReadsStallAfter ends fetches that make no progress for d.
func (s *Store) ReadsStallAfter(d time.Duration) { s.readStall = d }

// OnSync is called before a directory of the store is synced.
func (s *Store) OnSync(on func(dir string)) {
	s.sync = func(dir string) error { on(dir); return syncDir(dir) }
}
