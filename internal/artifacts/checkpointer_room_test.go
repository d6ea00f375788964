package artifacts_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// asks is the placer's view of a request for the trial's next attempt.
func (x *trials) asks() berth.WaitingRequest {
	x.t.Helper()

	request := berth.PlacementRequest{
		AttemptID: uuid.NewString(), SweepID: x.sweep, TrialID: x.trial, WorkflowID: "w", Number: x.number + 1, Stage: berth.StageMain,
		Purpose: berth.PurposeRun, ShapeKey: "s", Demand: berth.Demand{MemoryBytes: gib, CPUMilli: 1000},
	}
	_, err := x.db.RequestPlacement(x.t.Context(), request)
	require.NoError(x.t, err)
	x.sql().Exec("UPDATE placement_requests SET not_before = now() WHERE attempt_id = $1", request.AttemptID)

	queue, err := x.db.Queue(x.t.Context(), 10)
	require.NoError(x.t, err)
	require.Len(x.t, queue.Waiting, 1)
	x.sql().Exec("DELETE FROM placement_requests WHERE attempt_id = $1", request.AttemptID)

	return queue.Waiting[0]
}

// ends ends the attempt with a result about its container and checkpoint.
func (x *trials) ends(kind berth.FailureKind, result berth.Result) {
	x.t.Helper()

	x.files.running = nil
	result.AttemptID, result.TrialID, result.SweepID, result.ShapeKey, result.Token = x.of.AttemptID, x.trial, x.sweep, "s", x.of.Token
	result.Source, result.Proof = berth.FootprintFull, "a test's"
	result.Outcome = berth.Outcome{Kind: kind, Message: "ended", FinishedAt: time.Now()}
	require.NoError(x.t, x.db.FinishAttempt(x.t.Context(), result))
}

// The placer asks no room of a host that may have the stored checkpoint, or a newer one, because
// its disk never gets free of it. It asks room of a host that is known to have none.
func TestCheckpointer_TellsThePlacerWhoNeedsRoom(t *testing.T) {
	t.Parallel()

	// Attempt 1 leaves one on the first host, which is stored; then this happens on the second.
	for name, tt := range map[string]struct {
		happens func(x *trials)
		has     bool // the second host may have it
		lost    bool // the first host's checkpoint is older than the stored or coming one
		without bool // the second host has no store
	}{
		"nothing": {happens: func(*trials) {}},
		"it is fetched, and its container cannot start": {has: true, happens: func(x *trials) {
			x.places(x.second)
			x.ends(berth.FailureInfra, berth.Result{})
		}},
		"without a store it is not fetched": {without: true, happens: func(x *trials) {
			x.places(x.second)
			x.ends(berth.FailureInfra, berth.Result{})
		}},
		"it is fetched, and the host is given up": {has: true, happens: func(x *trials) {
			x.places(x.second)
			require.NoError(x.t, x.db.RefuseAttempt(x.t.Context(), x.of.AttemptID, "its host was lost"))
		}},
		"there is no room": {happens: func(x *trials) {
			x.places(x.second)
			x.ends(berth.FailureInfra, berth.Result{NoRoom: true})
		}},
		"there is none after what it had fetched was lost": {happens: func(x *trials) {
			x.places(x.second)
			x.ends(berth.FailureInfra, berth.Result{})
			x.places(x.second)
			x.ends(berth.FailureInfra, berth.Result{NoRoom: true})
		}},
		"it runs and leaves files, which are to be stored": {has: true, lost: true, happens: func(x *trials) {
			x.runs(x.second)
			x.ends(berth.FailureHostOOM, berth.Result{ContainerID: "c", Checkpoint: true})
		}},
		"it runs and leaves files, which stay there": {has: true, without: true, happens: func(x *trials) {
			x.runs(x.second)
			x.ends(berth.FailureHostOOM, berth.Result{ContainerID: "c", Checkpoint: true})
		}},
		"it runs and leaves nothing": {happens: func(x *trials) {
			x.runs(x.second)
			x.ends(berth.FailureHostOOM, berth.Result{ContainerID: "c"})
		}},
		"it runs, and what it left is stored": {has: true, lost: true, happens: func(x *trials) {
			x.runs(x.second)
			x.ends(berth.FailureHostOOM, berth.Result{ContainerID: "c", Checkpoint: true})
			x.sql().Exec("INSERT INTO checkpoints (id, attempt_id, trial_id, bytes, stored_at) VALUES ($1, $2, $3, 7, now())", uuid.NewString(), x.of.AttemptID, x.trial)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := setupTrials(t)
			x.writes(map[string]string{"state": "seven b"})
			x.fails()
			x.looks()
			require.NoError(t, x.db.SetHostCheckpoints(t.Context(), x.second, !tt.without))
			tt.happens(x)

			var want []string
			if tt.has {
				want = append(want, x.second)
			}

			if !tt.lost {
				want = append(want, x.host)
			}

			w := x.asks()
			require.EqualValues(t, 7, w.Fetch)
			require.ElementsMatch(t, want, w.Fetched)
		})
	}
}

// Until an attempt runs, its host's free disk still includes the space for its fetch. An attempt
// with its checkpoint on the host fetches nothing.
func TestCheckpointer_TellsThePlacerWhatIsStillToBeFetched(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "seven b"})
	x.fails()
	x.looks()
	require.NoError(t, x.db.SetHostCheckpoints(t.Context(), x.second, true))

	fetches := func() map[string]int64 {
		request := berth.PlacementRequest{
			AttemptID: uuid.NewString(), SweepID: x.sweep, TrialID: x.trial, WorkflowID: "w", Number: x.number + 1, Stage: "bench",
			Purpose: berth.PurposeRun, ShapeKey: "s", Demand: berth.Demand{MemoryBytes: gib, CPUMilli: 1000},
		}
		_, err := x.db.RequestPlacement(t.Context(), request) // the placer reads hosts when something waits
		require.NoError(t, err)
		x.sql().Exec("UPDATE placement_requests SET not_before = now() WHERE attempt_id = $1", request.AttemptID)

		queue, err := x.db.Queue(t.Context(), 10)
		require.NoError(t, err)
		x.sql().Exec("DELETE FROM placement_requests WHERE attempt_id = $1", request.AttemptID)

		bytes := make(map[string]int64)

		for _, h := range queue.Hosts {
			if h.FetchBytes > 0 {
				bytes[h.ID] = h.FetchBytes
			}
		}

		return bytes
	}

	x.places(x.host)
	require.Empty(t, fetches(), "it is there")
	x.ends(berth.FailureInfra, berth.Result{})

	x.places(x.second)
	require.Equal(t, map[string]int64{x.second: 7}, fetches())
	require.NoError(t, x.db.AttemptRunning(t.Context(), x.of.AttemptID, x.of.Token, "c", time.Now()))
	require.Empty(t, fetches(), "it has fetched it")
	x.ends(berth.FailureHostOOM, berth.Result{ContainerID: "c", Checkpoint: true})

	x.places(x.second)
	require.Empty(t, fetches(), "it is there")
	x.ends(berth.FailureInfra, berth.Result{NoRoom: true})
	x.places(x.second)
	require.Equal(t, map[string]int64{x.second: 7}, fetches(), "it was not")
	x.ends(berth.FailureInfra, berth.Result{NoRoom: true})
	require.Equal(t, []string{x.host}, x.asks().FailedHosts, "want of room is no fault of the host")
}

// The trial ran last on this host, and its job had removed all at its end, as Keras'
// BackupAndRestore does. The next attempt fetches the stored one there, and needs room for it.
func TestCheckpointer_AHostThatHasNothingLeftNeedsRoom(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"backup/state": "seven b"})
	x.looks()
	require.NoError(t, os.RemoveAll(filepath.Join(x.files.dir, x.trial, "backup")))
	x.ends(berth.FailureHostOOM, berth.Result{ContainerID: "c"})
	x.looks()

	w := x.asks()
	require.EqualValues(t, 7, w.Fetch)
	require.Empty(t, w.Fetched)
}

// The disk failed, and has room: the ledger stores its error.
func TestCheckpointer_SaysWhyADiskDidNotTakeIt(t *testing.T) {
	t.Parallel()

	for told, said := range map[string]string{
		"the disk of its host did not take the one to go on from: input/output error": "the disk of its host did not take the one to go on from: input/output error",
		"": "its host had no room for the one to go on from",
	} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()

			x := setupTrials(t)
			x.t = t
			x.ends(berth.FailureInfra, berth.Result{NoRoom: true, NotTaken: told})
			require.Equal(t, said, x.next().Problem)
		})
	}
}
