package artifacts_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/artifacts"
)

// An attempt that was given up stores nothing any more, and an older attempt's
// checkpoint is not the newest.
func TestCheckpointer_OnlyTheNewestAttemptCounts(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "1"})
	x.looks()

	first := x.of
	require.NoError(t, x.db.AbandonAttempt(t.Context(), x.of.AttemptID, "its host is lost"))
	x.sql().Exec("UPDATE attempts SET refused = true") // its host does not get it back
	x.writes(map[string]string{"state": "zombie"})
	x.files.running = []berth.AttemptCheckpoint{first}
	x.looks()

	e := x.next()
	require.True(t, e.GivenUp)
	require.Equal(t, map[string]string{"state": "1"}, x.restored(*e.Stored))

	// The second attempt's takes its place.
	x.writes(map[string]string{"state": "2"})
	second := x.of
	x.files.running = []berth.AttemptCheckpoint{second}
	x.looks()

	e = x.next()
	require.Equal(t, 2, e.Number)
	require.Equal(t, map[string]string{"state": "2"}, x.restored(*e.Stored))
	require.Equal(t, "1", x.sql().Text("SELECT count(*)::text FROM checkpoints"))
}

// What an attempt left is stored late, when the next one, which did not wait for it, has
// one in the store: that one stays the newest.
func TestCheckpointer_AnOlderOneThatComesLateTakesNoNewersPlace(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "first"})
	x.fails()
	x.runs(x.second)

	there := &checkpoints{dir: t.TempDir(), running: []berth.AttemptCheckpoint{x.of}}
	second := x.newPointer(x.db)
	second.Files, second.HostID = there, x.second

	require.NoError(t, os.MkdirAll(filepath.Join(there.dir, x.trial), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(there.dir, x.trial, "state"), []byte("second"), 0o600))

	for range 2 {
		require.NoError(t, second.LookRunning(t.Context()))
	}

	require.NoError(t, x.pointer.LookEnded(t.Context()))
	require.Equal(t, map[string]string{"state": "second"}, x.restored(*x.next().Stored))
}

// Checkpoints are no files of the trial, their objects have names while the trial
// goes on, and go once it is over.
func TestCheckpointer_GoesWithTheTrial(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "1"})
	x.fails()
	x.looks()
	x.age()
	require.Zero(t, x.clean(), "the trial goes on")

	list, err := x.db.ListFiles(t.Context(), x.of.AttemptID, "", 10)
	require.NoError(t, err)
	require.Empty(t, list)

	x.sql().Exec("UPDATE trials SET state = 'failed', finished_at = now() WHERE id = $1", x.trial)

	x.retain()
	require.Zero(t, x.sql().Int("SELECT count(*) FROM checkpoints"))
	x.age()
	require.Equal(t, 1, x.clean())
	require.Empty(t, x.objects())
}

// waits is the trial's next attempt, as the placer sees it.
func (x *trials) waits() berth.WaitingRequest {
	x.t.Helper()

	request := x.request(x.trial, x.number+1)
	_, err := x.db.RequestPlacement(x.t.Context(), request)
	require.NoError(x.t, err)
	x.sql().Exec("UPDATE placement_requests SET not_before = now() WHERE attempt_id = $1", request.AttemptID)

	queue, err := x.db.Queue(x.t.Context(), 10)
	require.NoError(x.t, err)
	require.Len(x.t, queue.Waiting, 1)
	x.sql().Exec("DELETE FROM placement_requests WHERE attempt_id = $1", request.AttemptID)

	return queue.Waiting[0]
}

// The placer knows whether a trial's checkpoint is in the store, or is about to be, and
// which hosts have it. Until it is stored one host alone has it.
func TestCheckpointer_TellsThePlacerWhoHasIt(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "1"})
	x.fails()

	w := x.waits()
	require.False(t, w.Stored, "its host stores none")
	require.Equal(t, x.host, w.Checkpoint)

	require.NoError(t, x.db.SetHostCheckpoints(t.Context(), x.host, true))

	w = x.waits()
	require.True(t, w.Stored, "it is about to be")
	require.Equal(t, []string{x.host}, w.Holders)
	require.Equal(t, x.host, w.Checkpoint)

	x.looks()

	w = x.waits()
	require.True(t, w.Stored)
	require.Equal(t, []string{x.host}, w.Holders)
	require.Empty(t, w.Checkpoint, "every host can fetch it")

	x.runs(x.second) // which has no store
	x.fails()

	w = x.waits()
	require.True(t, w.Stored)
	require.ElementsMatch(t, []string{x.host, x.second}, w.Holders)
	require.Equal(t, x.second, w.Checkpoint)
}

// The store has a checkpoint of an attempt, and its later one could not be stored:
// only its host has the newest, until an attempt elsewhere has one stored.
func TestCheckpointer_TellsThePlacerThatTheNewestIsNotStored(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.pointer.Limits = artifacts.Limits{Bytes: 4}
	x.writes(map[string]string{"state": "1"})
	x.looks()
	x.writes(map[string]string{"state": "100 epochs later"})
	x.fails()
	x.looks()
	require.Contains(t, x.sql().Text("SELECT checkpoint_problem FROM attempts"), "--output-limit")
	require.Equal(t, x.host, x.waits().Checkpoint)

	x.pointer = x.newPointer(x.db)
	x.runs(x.host)
	x.fails()
	x.looks()
	require.Empty(t, x.waits().Checkpoint, "that of attempt 2 is newer than what attempt 1 left")
}

// Attempt 1 ran in full beside the probe of its shape, ran out of memory and left a checkpoint. The
// carrier ran too long, so the trial measures its shape by a short probe, which is attempt 2, on the
// same host, with a directory of its own. Attempt 1's checkpoint is still to be stored.
func TestCheckpointer_AShortProbeSettlesNothing(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "40 epochs"})
	x.fails()

	probe := x.request(x.trial, x.number+1)
	probe.Short = true
	require.NoError(t, x.db.AttemptRunning(t.Context(), probe.AttemptID, x.place(probe, x.host), "c2", time.Now()))

	list, err := x.db.CheckpointsToStore(t.Context(), x.host, 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, x.of.AttemptID, list[0].AttemptID)
}

// A host restarts, or its worker is upgraded, while it has a checkpoint to store; or PostgreSQL was
// away, so that all hosts were silent. The attempt waits as long as the attempts before it ran, but
// at least ten minutes (artifacts.md). It does not wait for a host that has gone.
func TestCheckpointer_WaitsForAHostThatIsSilentForAMoment(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		silent string
		comes  bool
	}{
		"it restarts":             {"UPDATE hosts SET last_seen_at = now() - interval '2 minutes' WHERE name = 'a'", true},
		"the database comes back": {"UPDATE hosts SET last_seen_at = now() - interval '30 minutes'", true},
		"it has gone":             {"UPDATE hosts SET last_seen_at = now() - interval '2 hours' WHERE name = 'a'", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := setupTrials(t)
			x.t = t
			x.looks()
			x.writes(map[string]string{"state": "ten hours"})
			x.fails()
			x.sql().Exec(tt.silent)

			require.Equal(t, tt.comes, x.next().Coming, "if not, the next attempt begins anew at once")
		})
	}
}
