package artifacts_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// storedState is the content of the file "state" in the newest stored checkpoint.
func (x *trials) storedState() string {
	x.t.Helper()

	return x.restored(x.sql().Text("SELECT id::text FROM checkpoints WHERE stored_at IS NOT NULL"))["state"]
}

// A copy tool writes new content and puts the old time back. Another host must not go on
// from the old content, which has the same size.
func TestCheckpointer_StoresWhatIsRewrittenUnderItsOldTime(t *testing.T) {
	t.Parallel()

	for name, ends := range map[string]bool{"while it runs": false, "at its end": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := setupTrials(t)
			x.t = t
			x.writes(map[string]string{"state": "epoch 5"})
			x.looks()
			require.Equal(t, "epoch 5", x.storedState())

			path := filepath.Join(x.files.dir, x.trial, "state")
			info, err := os.Stat(path)
			require.NoError(t, err)

			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			require.NoError(t, err)

			_, err = file.WriteString("epoch 6")
			require.NoError(t, err)
			require.NoError(t, file.Close())
			require.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))

			if ends {
				x.fails()
			}

			x.looks()
			require.Equal(t, "epoch 6", x.storedState())
		})
	}
}

// mapped maps a file as np.memmap does. After the first write to a page the
// kernel notes no more of them until it has written the page to the disk.
func mapped(t *testing.T, path string) []byte {
	t.Helper()

	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)

	info, err := file.Stat()
	require.NoError(t, err)

	data, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(data)) })

	return data
}

// np.memmap writes to pages: the kernel notes the time of the first write alone. At
// the attempt's end its files are read again, so another host has all of them.
func TestCheckpointer_ReadsAllAnewAtTheEnd(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "epoch 5", "other": "o"})
	data := mapped(t, filepath.Join(x.files.dir, x.trial, "state"))
	data[6] = '6'
	x.looks()
	require.Equal(t, "epoch 6", x.storedState())

	data[6] = '7'
	x.fails()
	x.looks()
	require.Equal(t, "epoch 7", x.storedState())
	require.False(t, x.next().Coming, "it is settled")
}

// An attempt that could not be started wrote nothing: the earlier attempt's checkpoint on
// the same host is stored all the same.
func TestCheckpointer_StoresWhatWasLeftBeforeAFailedStart(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "1"})
	x.fails()
	x.places(x.host)
	require.NoError(t, x.db.FinishAttempt(t.Context(), berth.Result{
		AttemptID: x.of.AttemptID, TrialID: x.trial, SweepID: x.sweep, ShapeKey: "s", Token: x.of.Token, Source: berth.FootprintFull, Proof: "never started",
		Outcome: berth.Outcome{Kind: berth.FailureInfra, Message: "no room", StartedAt: time.Now(), FinishedAt: time.Now()},
	}))
	x.looks()
	require.Equal(t, "1", x.storedState())
}

// An attempt that ends as it was stored last is read, and stored no second time.
func TestCheckpointer_StoresNothingTwiceAtTheEnd(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "1"})
	x.looks()

	before := x.sql().Text("SELECT id::text FROM checkpoints")

	x.fails()
	x.looks()
	require.Equal(t, before, x.sql().Text("SELECT id::text FROM checkpoints"))
	require.False(t, x.next().Coming, "it is settled")
}

// Pages of a file change between the reading and the sending, and its times do not. What
// was read of it is forgotten: else no look ever could store it.
func TestCheckpointer_ForgetsWhatChangedWhileItWasSent(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "epoch 5"})
	data := mapped(t, filepath.Join(x.files.dir, x.trial, "state"))
	data[6] = '6'
	x.fails()

	// One checkpointer for all looks, because the test is about its memory.
	changes := true
	x.pointer = x.newPointer(halting{x.db, func() error {
		if changes {
			data[6]++
		}

		return nil
	}})
	x.looks()
	require.Zero(t, x.sql().Int("SELECT count(*) FROM checkpoints WHERE stored_at IS NOT NULL"))

	changes = false

	for began := time.Now(); x.sql().Int("SELECT count(*) FROM checkpoints WHERE stored_at IS NOT NULL") == 0; x.looks() {
		require.Less(t, time.Since(began), 10*time.Second, "it is never stored")
	}

	require.Equal(t, "epoch 7", x.storedState())
}
