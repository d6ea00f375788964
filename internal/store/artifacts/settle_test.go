package artifacts_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/store/postgres"
)

// counts is a ledger that calls back when files are noted as stored.
type counts struct {
	*postgres.Store

	stored func()
}

func (c counts) FilesStored(ctx context.Context, attempt string, paths []string) error {
	c.stored()

	return c.Store.FilesStored(ctx, attempt, paths)
}

// The power fails after the database noted that files are stored: the names of their objects
// are on the store's disk by then. Checkpoints are sent by the same storeAll.
func TestStore_NamesAreOnDiskBeforeTheDatabaseIsTold(t *testing.T) {
	t.Parallel()

	b := setup(t)

	var synced sync.Map

	b.store.OnSync(func(dir string) { synced.Store(dir, true) })

	told := 0
	b.uploader = b.newUploader(counts{b.db, func() {
		told++
		dirs := []string{b.storeDir, filepath.Join(b.storeDir, "sha256")}

		for _, name := range b.objects() {
			dirs = append(dirs, filepath.Join(b.storeDir, "sha256", name[:2]))
		}

		for _, dir := range dirs {
			_, ok := synced.Load(dir)
			require.True(t, ok, dir)
		}

		require.Len(t, dirs, 4)
	}})

	b.ended(map[string]string{"d": "four", "e": "five"})
	b.look(t.Context())
	require.Equal(t, 1, told)
}
