package artifacts_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
)

// counts is a ledger that calls back when a checkpoint or file is noted as
// stored.
type counts struct {
	*postgres.Store

	stored func()
}

func (c counts) FinishCheckpoint(ctx context.Context, of berth.AttemptCheckpoint, archive berth.Digest) ([]berth.Digest, error) {
	c.stored()

	return c.Store.FinishCheckpoint(ctx, of, archive)
}

func (c counts) FilesStored(ctx context.Context, attempt string, paths []string) error {
	c.stored()

	return c.Store.FilesStored(ctx, attempt, paths)
}

// The power fails after the database noted that a checkpoint, or files, are stored: the names of
// their objects are on the store's disk by then.
func TestStore_NamesAreOnDiskBeforeTheDatabaseIsTold(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)

	var (
		mu     sync.Mutex
		synced = make(map[string]bool)
		told   = 0
	)

	x.store.OnSync(func(dir string) {
		mu.Lock()
		defer mu.Unlock()

		synced[dir] = true
	})

	ledger := counts{x.db, func() {
		mu.Lock()
		defer mu.Unlock()

		told++

		objects := x.objects()
		require.NotEmpty(t, objects)
		require.True(t, synced[x.storeDir])
		require.True(t, synced[filepath.Join(x.storeDir, "sha256")])

		for _, name := range objects {
			require.True(t, synced[filepath.Join(x.storeDir, "sha256", name[:2])], name)
		}
	}}

	x.writes(map[string]string{"a": "one", "b": "two", "c": "three"})
	x.fails()
	x.pointer = x.newPointer(ledger)
	x.looks()
	require.Equal(t, 1, told)

	x.trials = 1
	x.ended(map[string]string{"d": "four", "e": "five"})
	x.uploader = x.newUploader(ledger)
	x.look(t.Context())
	require.Equal(t, 2, told)
}
