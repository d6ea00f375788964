package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

// syncEvery is how often Temporal's journal is synced: a power cut may lose this
// much of it, beside unacknowledged requests.
const syncEvery = time.Second

// Sync waits until all that Temporal has committed outlives a power cut.
//
// SQLite writes each commit to its journal, where it outlives the end of any
// process. With synchronous=NORMAL it leaves it to the system when that gets to
// the disk (https://www.sqlite.org/wal.html, "Performance Considerations"); with
// FULL it waits for the disk at each of the some 25 commits of a trial, one after
// the other. A Sync makes all durable that came before it. A power cut takes the
// end of the journal since then, nothing in its middle.
func (t *Temporal) Sync() error {
	if t.database == "" {
		return nil
	}

	for _, path := range []string{t.database + "-wal", filepath.Dir(t.database)} { // the journal may be a new file
		if err := syncFile(path); err != nil {
			return fmt.Errorf("syncing Temporal's journal: %w", err)
		}
	}

	return nil
}

// KeepSynced calls Sync every second until ctx ends.
func (t *Temporal) KeepSynced(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(syncEvery)
	defer ticker.Stop()

	for said := false; ; {
		err := t.Sync()
		if err != nil && !said {
			log.Error("a power cut may take what Temporal has committed since", "error", err)
		}

		said = err != nil

		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// syncFile syncs a file that another process writes; a missing file needs no
// sync.
func syncFile(path string) error {
	file, err := os.Open(filepath.Clean(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	if err != nil {
		return err
	}

	return errors.Join(file.Sync(), file.Close())
}
