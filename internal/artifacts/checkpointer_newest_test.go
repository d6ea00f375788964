package artifacts_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/artifacts"
	"github.com/berthml/berth/internal/postgres"
)

// unfinished fails once all is sent.
type unfinished struct{ *postgres.Store }

func (unfinished) FinishCheckpoint(context.Context, string, berth.AttemptCheckpoint) ([]berth.Digest, error) {
	return nil, errors.New("killed")
}

// If the upload of a newer checkpoint fails in any way, also for good, the one before
// can be fetched until the newer one is whole.
func TestCheckpointer_TheNewestWholeOneIsAlwaysThere(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		limits artifacts.Limits
		ledger func(x *trials) artifacts.CheckpointLedger
		fails  bool
	}{
		"killed when it is named": {ledger: func(x *trials) artifacts.CheckpointLedger {
			return halting{x.db, func() error { return errors.New("killed") }}
		}, fails: true},
		"killed when it is sent": {ledger: func(x *trials) artifacts.CheckpointLedger { return unfinished{x.db} }, fails: true},
		"it changes": {ledger: func(x *trials) artifacts.CheckpointLedger {
			n := 32

			return halting{x.db, func() error { n++; x.writes(map[string]string{"state": strconv.Itoa(n)}); return nil }}
		}},
		"too large for good": {ledger: func(x *trials) artifacts.CheckpointLedger { return x.db }, limits: artifacts.Limits{Bytes: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := setupTrials(t)
			x.t = t
			x.writes(map[string]string{"state": "1"})
			x.looks()
			x.writes(map[string]string{"state": "22", "more": "of it"})
			x.fails()

			x.pointer = x.newPointer(c.ledger(x))
			x.pointer.Limits = c.limits

			for range 3 {
				require.Equal(t, c.fails, x.pointer.Look(t.Context()) != nil)

				id := x.sql().Text("SELECT id::text FROM checkpoints WHERE stored_at IS NOT NULL")
				require.Equal(t, map[string]string{"state": "1"}, x.restored(id))
			}

			require.Equal(t, map[string]string{"state": "1"}, x.restored(x.next().Stored.ID), "that is what the next attempt would fetch")
		})
	}
}

// What an attempt left is stored late, when the next one, which did not wait for it, has
// one in the store: that one stays.
func TestCheckpointer_AnOlderOneThatComesLateTakesNoNewersPlace(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "first"})
	x.fails()

	first := x.pointer
	x.runs(x.second)

	there := &checkpoints{dir: t.TempDir(), running: []berth.AttemptCheckpoint{x.of}}
	second := x.newPointer(x.db)
	second.Files, second.HostID = there, x.second

	require.NoError(t, os.MkdirAll(filepath.Join(there.dir, x.trial), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(there.dir, x.trial, "state"), []byte("second"), 0o600))

	for range 2 { // the first look knows it, the next finds it due
		require.NoError(t, second.Look(t.Context()))
	}

	require.NoError(t, first.Look(t.Context()))
	require.Equal(t, "second", x.storedState())
}

// A job that keeps its last three checkpoints has these three on the next host, and none
// that it removed.
func TestCheckpointer_BringsNothingBackThatTheJobRemoved(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	dir := filepath.Join(x.files.dir, x.trial)

	for _, epoch := range []string{"1", "2", "3", "4", "5"} {
		x.writes(map[string]string{"epoch-" + epoch: "of " + epoch})

		if epoch > "3" {
			require.NoError(t, os.Remove(filepath.Join(dir, "epoch-"+string(epoch[0]-3))))
		}

		x.looks()
	}

	three := map[string]string{"epoch-3": "of 3", "epoch-4": "of 4", "epoch-5": "of 5"}
	require.Equal(t, three, x.restored(x.sql().Text("SELECT id::text FROM checkpoints WHERE stored_at IS NOT NULL")), "while it runs")

	require.NoError(t, os.Remove(filepath.Join(dir, "epoch-3")))
	delete(three, "epoch-3")
	x.fails()
	x.looks()
	require.Equal(t, three, x.restored(x.next().Stored.ID), "at its end")
}

// The worker has another data directory than the container that ran: the opened directory is empty. Or the
// job's files disappeared between its end and the look. The checkpoint must not be settled as stored.
func TestCheckpointer_NothingThereIsNotStored(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	require.NoError(t, os.MkdirAll(filepath.Join(x.files.dir, x.trial), 0o755)) //nolint:gosec // G301: as jobs do
	x.fails()                                                                   // it left one, says its result
	x.looks()
	require.Equal(t, "its files are not in the data directory of its host any more",
		x.sql().Text("SELECT checkpoint_problem FROM attempts WHERE checkpoint_settled_at IS NOT NULL"))
}
