package artifacts_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Orbax with max_to_keep=1 renames a new directory into place each epoch, and removes the one before. Sending
// one takes longer than an epoch. A lost machine must cost no more than --checkpoint-every.
func TestCheckpointer_StoresThoughEpochsAreShorterThanTheUpload(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	dir := filepath.Join(x.files.dir, x.trial)
	epoch := 0
	saves := func() error {
		epoch++
		tmp := filepath.Join(dir, "tmp")

		for _, name := range []string{"model", "optimizer"} {
			if err := os.MkdirAll(tmp, 0o750); err != nil {
				return err
			}

			if err := os.WriteFile(filepath.Join(tmp, name), []byte(name+strconv.Itoa(epoch)), 0o600); err != nil {
				return err
			}
		}

		if err := os.Rename(tmp, filepath.Join(dir, strconv.Itoa(epoch))); err != nil {
			return err
		}

		return os.RemoveAll(filepath.Join(dir, strconv.Itoa(epoch-1)))
	}
	require.NoError(t, os.MkdirAll(dir, 0o750))
	require.NoError(t, saves())

	x.pointer = x.newPointer(halting{x.db, saves}) // an epoch ends while it is sent

	x.looks()
	x.looks()
	require.EqualValues(t, 1, x.sql().Int("SELECT count(*) FROM checkpoints WHERE stored_at IS NOT NULL"))

	at := strconv.Itoa(epoch - 1) // as it was when it was read
	require.Equal(t, map[string]string{at + "/model": "model" + at, at + "/optimizer": "optimizer" + at},
		x.restored(x.sql().Text("SELECT id::text FROM checkpoints WHERE stored_at IS NOT NULL")))
}

// Files that are rewritten in place while they are sent are never stored. The log says so once,
// with the next step.
func TestCheckpointer_TellsOfWhatIsNeverStored(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	n := 0
	writes := func() error { n++; x.writes(map[string]string{"state": strconv.Itoa(n)}); return nil }
	require.NoError(t, writes())

	var log strings.Builder

	x.pointer = x.newPointer(halting{x.db, writes})
	x.pointer.Log = slog.New(slog.NewTextHandler(&log, nil))

	for range 10 {
		x.looks()
	}

	require.Zero(t, x.sql().Int("SELECT count(*) FROM checkpoints WHERE stored_at IS NOT NULL"))
	require.Equal(t, 1, strings.Count(log.String(), "changes faster than it is read and sent"), log.String())
}

// A trial whose attempts are shorter than --checkpoint-every and follow each other on one machine (exit code 75,
// out of memory, a device that is busy) is stored no less often: a machine that is lost costs --checkpoint-every at most.
func TestCheckpointer_ShortAttemptsAreStoredAsOften(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.pointer.After = time.Second

	began := time.Now()

	for n := range 8 {
		x.writes(map[string]string{"state": strconv.Itoa(n)})

		for since := time.Now(); time.Since(since) < 600*time.Millisecond; time.Sleep(50 * time.Millisecond) {
			x.looks()
		}

		x.fails()
		x.runs(x.host) // its container exists before the next look
	}

	require.NotZero(t, x.sql().Int("SELECT count(*) FROM checkpoints WHERE stored_at IS NOT NULL"),
		"nothing is stored in %s, with --checkpoint-every 1 s", time.Since(began).Round(time.Second))
}

// A job always writes into one large file (np.memmap, a replay buffer): it changes while it is sent.
// Each try reads and sends all of it. Failed tries come no more often than --checkpoint-every, or
// they waste the machine's disk, a core and its uplink.
func TestCheckpointer_TriesInVainAreNoMoreOftenThanThePeriod(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	tries := 0
	writes := func() error { tries++; x.writes(map[string]string{"state": string(rune('a' + tries%26))}); return nil }
	x.writes(map[string]string{"state": "0"})
	x.pointer = x.newPointer(halting{x.db, writes})
	x.pointer.After = time.Second

	began := time.Now()
	for time.Since(began) < 6*time.Second {
		x.looks()
		time.Sleep(20 * time.Millisecond)
	}

	require.Less(t, tries, 12, "in 6 s with --checkpoint-every 1s")
}
