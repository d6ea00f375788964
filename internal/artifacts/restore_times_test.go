package artifacts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// One file dated far ahead by a program takes no time from the others. Files with future
// times keep their order, behind past ones.
func TestComeAlready_MovesOnlyWhatIsToCome(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) berth.CheckpointEntry { return berth.CheckpointEntry{Changed: now.Add(d)} }
	entries := []berth.CheckpointEntry{at(-2 * time.Hour), at(-time.Minute), at(0), at(time.Hour), at(2 * time.Hour), at(100 * 365 * 24 * time.Hour), at(2 * time.Hour)}

	put := comeAlready(now, entries[:2])
	require.Empty(t, put)

	put = comeAlready(now, append(entries[:2:2], entries[3:]...))
	require.Equal(t, map[int64]time.Time{
		entries[3].Changed.UnixNano(): now.Add(-40 * time.Second), entries[4].Changed.UnixNano(): now.Add(-20 * time.Second), entries[5].Changed.UnixNano(): now,
	}, put)

	for _, one := range comeAlready(now, entries) { // past files keep their time
		require.Equal(t, now, one)
	}
}
