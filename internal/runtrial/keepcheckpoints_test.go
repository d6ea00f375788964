package runtrial

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func TestCheckpointKind(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{
		"events.out.tfevents.1790000000.h.v2": "",
		"epoch-01.keras":                      "epoch-#.keras",
		"weights.12-0.4321.h5":                "weights.#-#.#.h#",
		"checkpoint-500":                      "checkpoint-#",
		"ckpt-7.data-00000-of-00001":          "ckpt-#.data-00000-of-00001",
		"step200-model-00002-of-00003.tensor": "step#-model-00002-of-00003.tensor",
		"model-00002-of-00003.safetensors":    "",
		"checkpoint":                          "",
		"last.pt":                             "",
	} {
		kind, _ := checkpointKind(name)
		require.Equal(t, want, kind, name)
	}
}

// The newest of each kind stay, with what may not be whole yet, what has no number, and what
// is not the job's to name: a link is removed, and not what it leads to.
func TestThinCheckpoints(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.Limits.KeepCheckpoints = 2 })

	run := r.newRun(t)
	require.NoError(t, run.dirs.make(nil))

	run.startedAt = time.Now().Add(-2 * time.Minute)
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.Mkdir(outside, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "precious"), nil, 0o600))

	at := func(name string) string { return filepath.Join(run.dirs.checkpoint, name) }
	write := func(name string, ago time.Duration) {
		require.NoError(t, os.MkdirAll(filepath.Dir(at(name)), 0o750))
		require.NoError(t, os.WriteFile(at(name), []byte("x"), 0o600))
		require.NoError(t, os.Chtimes(at(name), time.Time{}, time.Now().Add(-ago)))
	}

	write("epoch-1.keras", 60*time.Second)
	write("epoch-2.keras", 50*time.Second)
	write("epoch-3.keras", 40*time.Second)
	write("epoch-4.keras", 0) // is being written
	write("checkpoint-30/model", 30*time.Second)
	write("checkpoint-20/model", 10*time.Second) // written last, whatever its number
	write("checkpoint-10/model", 60*time.Second)
	write("checkpoint-5/model", 90*time.Second)
	write("last.keras", 90*time.Second)
	write("best/epoch-1", 90*time.Second)
	write("best/epoch-2", 80*time.Second)
	write("best/epoch-3", 70*time.Second)
	require.NoError(t, os.Symlink(outside, at("epoch-0.keras")))

	for dir, ago := range map[string]time.Duration{"checkpoint-5": 90 * time.Second, "checkpoint-10": time.Minute, "checkpoint-20": time.Minute, "checkpoint-30": time.Minute / 2} {
		require.NoError(t, os.Chtimes(at(dir), time.Time{}, time.Now().Add(-ago)))
	}

	left := func() (names []string) {
		entries, err := os.ReadDir(run.dirs.checkpoint)
		require.NoError(t, err)

		for _, e := range entries {
			names = append(names, e.Name())
		}

		return names
	}

	run.thinCheckpoints()
	// The link is as new as epoch-4: nobody knows what it leads to. More may come into checkpoint-20.
	require.Equal(t, []string{"best", "checkpoint-10", "checkpoint-20", "checkpoint-30", "epoch-0.keras", "epoch-2.keras", "epoch-3.keras", "epoch-4.keras", "last.keras"}, left())

	write("epoch-5.keras", -time.Second)
	write("epoch-6.keras", -2*time.Second)
	run.checkpointsEnd()
	require.Equal(t, []string{"best", "checkpoint-20", "checkpoint-30", "epoch-5.keras", "epoch-6.keras", "last.keras"}, left())
	require.FileExists(t, filepath.Join(outside, "precious"))
	require.FileExists(t, at("best/epoch-1"))
}

func TestOutputLimit(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		sweep berth.Size
		want  int64
		own   bool
	}{
		"the worker's":              {0, 10 << 30, false},
		"the sweep's":               {1 << 20, 1 << 20, true},
		"the worker bounds a sweep": {20 << 30, 10 << 30, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			r.books.says(func(who *berth.Assignee) { who.Spec.Limits.MaxOutput = c.sweep })

			run := r.newRun(t)
			limit, own := run.outputLimit()
			require.Equal(t, c.want, limit)
			require.Equal(t, c.own, own)
			require.Equal(t, c.want, run.limits().OutputBytes)
			require.Equal(t, c.own, run.limits().OutputOwn)
		})
	}
}
