package artifacts_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/artifacts"
	"github.com/berthml/berth/internal/postgres"
)

// checkpoints are a host's checkpoints below a directory.
type checkpoints struct {
	dir     string
	running []berth.AttemptCheckpoint
	opened  func() // called when one was opened
}

func (c *checkpoints) OpenCheckpoint(trial string) (*os.Root, error) {
	root, err := os.OpenRoot(filepath.Join(c.dir, trial))
	if os.IsNotExist(err) {
		return nil, berth.Errorf(berth.KindNotFound, "there is no directory")
	}

	if c.opened != nil {
		c.opened()
	}

	return root, err
}

func (c *checkpoints) RunningCheckpoints() []berth.AttemptCheckpoint { return c.running }

// trials is a bench whose host has checkpoints.
type trials struct {
	*bench

	files   *checkpoints
	pointer *artifacts.Checkpointer
	trial   string
	number  int // of its newest attempt
	of      berth.AttemptCheckpoint
	second  string // another host
}

func setupTrials(t *testing.T) *trials {
	t.Helper()

	x := &trials{bench: setup(t), files: &checkpoints{dir: t.TempDir()}, trial: uuid.NewString(), second: uuid.NewString()}
	require.NoError(t, x.db.RegisterHost(t.Context(), berth.Host{
		ID: x.second, Name: "b", BootID: "boot", CPUMilli: 64_000, MemoryBytes: 64 * gib, MemoryFreeBytes: 64 * gib,
	}, "test"))
	_, _, err := x.db.Suggest(t.Context(), x.sweep, 1, 1, false, func(berth.Tried) ([]berth.NewTrial, bool, error) {
		return []berth.NewTrial{{ID: x.trial, Params: berth.Assignment{}, Shape: berth.Shape{ImageDigest: "sha256:x", Command: []string{"run"}}}}, false, nil
	})
	require.NoError(t, err)

	x.pointer = x.newPointer(x.db)
	x.runs(x.host)

	return x
}

func (x *trials) newPointer(ledger artifacts.CheckpointLedger) *artifacts.Checkpointer {
	return &artifacts.Checkpointer{
		Ledger: ledger, Files: x.files, Store: x.store, HostID: x.host, After: time.Nanosecond, Quiet: time.Nanosecond, Log: slog.New(slog.DiscardHandler),
	}
}

// runs has a new attempt of the trial run on a host.
func (x *trials) runs(host string) {
	x.t.Helper()
	x.places(host)
	require.NoError(x.t, x.db.AttemptRunning(x.t.Context(), x.of.AttemptID, x.of.Token, "c", time.Now()))

	if host == x.host {
		x.files.running = []berth.AttemptCheckpoint{x.of}
	}
}

// places has a new attempt of the trial placed on a host.
func (x *trials) places(host string) {
	x.t.Helper()

	ctx := x.t.Context()
	x.number++
	x.of = berth.AttemptCheckpoint{AttemptID: uuid.NewString(), TrialID: x.trial}
	demand := berth.Demand{MemoryBytes: gib, CPUMilli: 1000}

	_, err := x.db.RequestPlacement(ctx, berth.PlacementRequest{
		AttemptID: x.of.AttemptID, SweepID: x.sweep, TrialID: x.trial, WorkflowID: "w", Number: x.number, Stage: berth.StageMain,
		Purpose: berth.PurposeRun, ShapeKey: "s", Demand: demand,
	})
	require.NoError(x.t, err)

	_, err = x.db.Place(ctx, map[string]berth.Placement{x.of.AttemptID: {HostID: host, Demand: demand}})
	require.NoError(x.t, err)

	status, err := x.db.PlacementStatus(ctx, x.of.AttemptID)
	require.NoError(x.t, err)

	x.of.Token, x.files.running = status.Token, nil
}

// fails ends the attempt, which leaves a checkpoint.
func (x *trials) fails() {
	x.t.Helper()
	x.files.running = nil
	require.NoError(x.t, x.db.FinishAttempt(x.t.Context(), berth.Result{
		AttemptID: x.of.AttemptID, TrialID: x.trial, SweepID: x.sweep, ShapeKey: "s", Token: x.of.Token, Source: berth.FootprintFull, Proof: "container exited",
		ContainerID: "c", Checkpoint: true, Outcome: berth.Outcome{Kind: berth.FailureHostOOM, Message: "oom", FinishedAt: time.Now()},
	}))
}

// writes writes files of the trial's checkpoint.
func (x *trials) writes(content map[string]string) {
	x.t.Helper()

	for path, text := range content {
		full := filepath.Join(x.files.dir, x.trial, path)
		require.NoError(x.t, os.MkdirAll(filepath.Dir(full), 0o755))  //nolint:gosec // G301: as jobs do
		require.NoError(x.t, os.WriteFile(full, []byte(text), 0o640)) //nolint:gosec // G306: as jobs do
	}
}

func (x *trials) looks() { x.t.Helper(); require.NoError(x.t, x.pointer.Look(x.t.Context())) }

// next is the checkpoint that an attempt after the newest would see.
func (x *trials) next() berth.EarlierCheckpoint {
	x.t.Helper()

	number, of := x.number, x.of
	x.runs(x.second)

	list, err := x.db.EarlierCheckpoints(x.t.Context(), x.of.AttemptID)
	require.NoError(x.t, err)

	x.files.running = nil
	require.NotEmpty(x.t, list)
	require.Equal(x.t, number, list[0].Number, of.AttemptID)

	return list[0]
}

// restored returns the files that a checkpoint brings to another host.
func (x *trials) restored(id string) map[string]string {
	x.t.Helper()

	dir := x.t.TempDir()
	require.NoError(x.t, x.restore(x.t.Context(), id, dir))

	return contentOf(x.t, dir)
}

func (x *trials) restore(ctx context.Context, id, dir string) error {
	root, err := os.OpenRoot(dir)
	require.NoError(x.t, err)

	defer root.Close() //nolint:errcheck // a test's

	return x.store.Restore(ctx, x.db, id, root, func(int64) {})
}

func contentOf(t *testing.T, dir string) map[string]string {
	t.Helper()

	content := make(map[string]string)

	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)

		if entry.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			content[name] = "-> " + target

			return err
		}

		text, err := os.ReadFile(path) //nolint:gosec // G122: a test's own directory
		content[name] = string(text)

		return err
	}))

	return content
}

// What an attempt left is whole on another host: content, links, permissions, owner, times.
func TestCheckpointer_StoresWhatAnAttemptLeft(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	content := map[string]string{"epoch-1/weights": "one", "epoch-2/weights": "two", "epoch-2/same": "one", "state": "2", "empty": ""}
	x.writes(content)

	dir := filepath.Join(x.files.dir, x.trial)
	old := time.Unix(1_700_000_000, 123_456_789)
	require.NoError(t, os.Symlink("epoch-2", filepath.Join(dir, "latest")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "void"), 0o711)) //nolint:gosec // G301: as jobs do
	require.NoError(t, os.Chtimes(filepath.Join(dir, "epoch-1"), old, old))

	owner := os.Geteuid()
	if owner == 0 {
		owner = 1234
		require.NoError(t, os.Chown(filepath.Join(dir, "state"), owner, owner))
	}

	x.fails()

	_, err := x.db.EarlierCheckpoints(t.Context(), x.of.AttemptID)
	require.NoError(t, err)
	x.looks()

	e := x.next()
	require.NotNil(t, e.Stored)
	require.False(t, e.Coming, "it is settled")
	require.True(t, e.Left)
	require.EqualValues(t, 10, e.Stored.Bytes)

	content["latest"] = "-> epoch-2"
	to := t.TempDir()
	require.NoError(t, x.restore(t.Context(), e.Stored.ID, to))
	require.Equal(t, content, contentOf(t, to))
	require.Len(t, x.objects(), 4, "the same content is one object")

	for path, mode := range map[string]os.FileMode{"void": os.ModeDir | 0o711, "state": 0o640, "epoch-1": os.ModeDir | 0o755} {
		info, err := os.Stat(filepath.Join(to, path))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), path)
	}

	info, err := os.Stat(filepath.Join(to, "epoch-1"))
	require.NoError(t, err)
	require.True(t, info.ModTime().Equal(old), "a program may look for its newest by it: %s", info.ModTime())
	requireOwner(t, filepath.Join(to, "state"), owner)

	require.NoError(t, x.restore(t.Context(), e.Stored.ID, to), "again changes nothing")
	require.Equal(t, content, contentOf(t, to))
}

// The clock of the host that stored it was ahead. On the next host no file is newer than a
// file written there next, and the order of the files stays.
func TestRestore_BringsNoTimesThatAreToCome(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"epoch-1": "one", "epoch-2": "two"})

	ahead := time.Now().Add(2 * time.Hour)
	for name, at := range map[string]time.Time{"epoch-1": ahead.Add(-30 * time.Minute), "epoch-2": ahead} {
		require.NoError(t, os.Chtimes(filepath.Join(x.files.dir, x.trial, name), at, at))
	}

	x.fails()
	x.looks()

	dir := t.TempDir()
	require.NoError(t, x.restore(t.Context(), x.next().Stored.ID, dir))

	first, err := os.Stat(filepath.Join(dir, "epoch-1"))
	require.NoError(t, err)

	second, err := os.Stat(filepath.Join(dir, "epoch-2"))
	require.NoError(t, err)
	require.False(t, second.ModTime().After(time.Now()), second.ModTime())
	require.True(t, second.ModTime().After(first.ModTime()), "%s, %s", first.ModTime(), second.ModTime())
}

// A running attempt's is stored when it has changed and is quiet, and the older one
// goes at once, with its objects.
func TestCheckpointer_FollowsARunningAttempt(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"epoch-1": "one"})
	x.pointer.Quiet, x.pointer.After = time.Hour, 200*time.Millisecond
	x.looks()

	began := time.Now()

	for len(x.objects()) == 0 {
		require.Less(t, time.Since(began), time.Minute, "one that is always written is read as it is")
		x.looks()
	}

	require.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond, "a quiet moment is waited for")

	x.pointer = x.newPointer(x.db)
	x.looks()
	require.Len(t, x.objects(), 1)

	x.writes(map[string]string{"epoch-1": "ONE", "epoch-2": "two"})
	x.looks()
	require.Len(t, x.objects(), 2, "the object of the older checkpoint is gone")

	before := x.sql().Text("SELECT id::text FROM checkpoints")
	x.looks()
	require.Equal(t, before, x.sql().Text("SELECT id::text FROM checkpoints"), "nothing has changed")

	x.pointer.After = 0
	x.writes(map[string]string{"epoch-3": "three"})
	x.looks()
	require.Equal(t, before, x.sql().Text("SELECT id::text FROM checkpoints"), "only what has ended is stored")

	e := x.next()
	require.Equal(t, map[string]string{"epoch-1": "ONE", "epoch-2": "two"}, x.restored(e.Stored.ID))
}

// halting fails in the middle of a checkpoint.
type halting struct {
	*postgres.Store

	begun func() error
}

func (h halting) BeginCheckpoint(ctx context.Context, id string, of berth.AttemptCheckpoint, entries []berth.CheckpointEntry) ([]berth.Digest, error) {
	dropped, err := h.Store.BeginCheckpoint(ctx, id, of, entries)

	return dropped, errors.Join(err, h.begun())
}

// Half of a checkpoint is never the newest one, and goes with the next.
func TestCheckpointer_HalfOfOneIsNone(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "1"})
	x.looks()

	x.writes(map[string]string{"state": "2"})

	x.pointer = x.newPointer(halting{x.db, func() error { return errors.New("killed") }})
	require.ErrorContains(t, x.pointer.Look(t.Context()), "killed")
	require.Equal(t, "2", x.sql().Text("SELECT count(*)::text FROM checkpoints"))

	require.Equal(t, map[string]string{"state": "1"}, x.restored(x.sql().Text("SELECT id::text FROM checkpoints WHERE stored_at IS NOT NULL")))

	half := x.sql().Text("SELECT id::text FROM checkpoints WHERE stored_at IS NULL")
	_, err := x.db.ListCheckpoint(t.Context(), half)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err), "half of one cannot be fetched")

	x.pointer = x.newPointer(x.db)
	x.looks()
	require.Equal(t, map[string]string{"state": "2"}, x.restored(x.sql().Text("SELECT id::text FROM checkpoints")))
	require.Equal(t, "1", x.sql().Text("SELECT count(*)::text FROM checkpoints"))
	require.Len(t, x.objects(), 1)
}

// Files that change while they are sent wait for the next time. A replaced or removed file is
// sent in its old state.
func TestCheckpointer_LeavesWhatChangesMeanwhile(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		change func(x *trials)
		stored int64
	}{
		"a file is written":  {change: func(x *trials) { x.writes(map[string]string{"state": "22"}) }},
		"a file is replaced": {change: func(x *trials) { x.writes(map[string]string{"new": "2"}); x.rename("new", "state") }, stored: 1},
		"a file goes": {change: func(x *trials) {
			require.NoError(x.t, os.Remove(filepath.Join(x.files.dir, x.trial, "state")))
		}, stored: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := setupTrials(t)
			x.t = t
			x.writes(map[string]string{"state": "1", "other": "o"})

			x.pointer = x.newPointer(halting{x.db, func() error { c.change(x); return nil }}) // it is read by now, and not sent
			x.looks()
			require.Equal(t, c.stored, x.sql().Int("SELECT count(*) FROM checkpoints WHERE stored_at IS NOT NULL"))

			if c.stored > 0 {
				require.Equal(t, map[string]string{"state": "1", "other": "o"}, x.restored(x.sql().Text("SELECT id::text FROM checkpoints WHERE stored_at IS NOT NULL")))
			}

			x.pointer = x.newPointer(x.db)
			x.looks()

			want := contentOf(t, filepath.Join(x.files.dir, x.trial))
			require.Equal(t, want, x.restored(x.next().Stored.ID))
		})
	}
}

// A small file that changes all the time does not prevent the large file beside it
// from being read and sent once, and both from being stored in the end.
func TestCheckpointer_GetsOnBesideWhatAlwaysChanges(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"blob": strings.Repeat("x", 1<<20), "step": "1"})

	stop, stopped := make(chan struct{}), make(chan struct{})

	go func() {
		defer close(stopped)

		for n := 2; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				x.writes(map[string]string{"new": fmt.Sprint(n)})
				x.rename("new", "step")
			}
		}
	}()

	began := time.Now()

	for x.sql().Int("SELECT count(*) FROM checkpoints WHERE stored_at IS NOT NULL") == 0 {
		require.Less(t, time.Since(began), time.Minute)
		x.looks()
	}

	close(stop)
	<-stopped

	content := x.restored(x.next().Stored.ID)
	require.Len(t, content["blob"], 1<<20)
	require.NotEmpty(t, content["step"])
}

func (x *trials) rename(from, to string) {
	require.NoError(x.t, os.Rename(filepath.Join(x.files.dir, x.trial, from), filepath.Join(x.files.dir, x.trial, to)))
}

// One that is too large, or cannot be named, is not stored in part, and the next
// attempt can say why.
func TestCheckpointer_SaysWhyOneIsNotStored(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		limits artifacts.Limits
		path   string
		why    string
	}{
		"bytes": {artifacts.Limits{Bytes: 4}, "b", "larger than 4 bytes (--output-limit)"},
		"files": {artifacts.Limits{Files: 1}, "b", "more than 1 files"},
		"name":  {artifacts.Limits{}, "b\xff", "no UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := setupTrials(t)
			x.t, x.pointer.Limits = t, c.limits
			x.writes(map[string]string{"a": "123", c.path: "45"})
			x.looks()
			x.fails()
			x.looks()

			e := x.next()
			require.Nil(t, e.Stored)
			require.False(t, e.Coming)
			require.Contains(t, e.Problem, c.why)
			require.Empty(t, x.objects())
		})
	}
}

// While the store is away nothing is settled; when it is back, all is stored.
func TestCheckpointer_WaitsForTheStore(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "1"})
	x.looks()
	x.writes(map[string]string{"state": "2"})
	x.fails()

	away := x.storeDir + "-away"
	require.NoError(t, os.Rename(x.storeDir, away))
	require.ErrorContains(t, x.pointer.Look(t.Context()), "the directory is gone")

	e := x.next()
	require.True(t, e.Coming, "the next attempt waits for it")
	require.NotNil(t, e.Stored, "and would take this one")
	require.Equal(t, berth.KindUnavailable, berth.KindOf(x.restore(t.Context(), e.Stored.ID, t.TempDir())))

	require.NoError(t, os.Rename(away, x.storeDir))
	x.looks()

	list, err := x.db.EarlierCheckpoints(t.Context(), x.of.AttemptID)
	require.NoError(t, err)
	require.False(t, list[0].Coming)
	require.Equal(t, map[string]string{"state": "2"}, x.restored(list[0].Stored.ID))
}

// A damaged object is not accepted, and a missing one is reported.
func TestRestore_HoldsFilesToTheirChecksum(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"a": "first", "b": "second"})
	x.fails()
	x.looks()

	id := x.next().Stored.ID
	object := ""

	for _, name := range x.objects() {
		path := filepath.Join(x.storeDir, "sha256", name[:2], name)
		if text, err := os.ReadFile(path); err == nil && string(text) == "second" {
			object = path
		}
	}

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(object, []byte("secone"), 0o600))
	require.ErrorIs(t, x.restore(t.Context(), id, dir), berth.ErrDamaged)

	require.NoError(t, os.Remove(object))
	require.Equal(t, berth.KindNotFound, berth.KindOf(x.restore(t.Context(), id, dir)))

	require.NoError(t, os.WriteFile(object, []byte("second"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("FIRST"), 0o600), "half of it was written, and the power went")
	require.NoError(t, x.restore(t.Context(), id, dir))
	require.Equal(t, map[string]string{"a": "first", "b": "second"}, contentOf(t, dir))
}

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
	require.Equal(t, map[string]string{"state": "1"}, x.restored(e.Stored.ID))

	// The second attempt's takes its place.
	x.writes(map[string]string{"state": "2"})
	second := x.of
	x.files.running = []berth.AttemptCheckpoint{second}
	x.looks()

	e = x.next()
	require.Equal(t, 2, e.Number)
	require.Equal(t, map[string]string{"state": "2"}, x.restored(e.Stored.ID))
	require.Equal(t, "1", x.sql().Text("SELECT count(*)::text FROM checkpoints"))
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

	id := x.next().Stored.ID
	x.sql().Exec("UPDATE trials SET state = 'failed', finished_at = now() WHERE id = $1", x.trial)

	for failed := make(map[string]error); x.db.Retain(t.Context(), berth.Retention{}, failed); {
		require.Empty(t, failed)
	}

	_, err = x.db.ListCheckpoint(t.Context(), id)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
	x.age()
	require.Equal(t, 1, x.clean())
	require.Empty(t, x.objects())
}

// The placer knows the host that alone has a trial's checkpoint, until it is stored.
func TestCheckpointer_TellsThePlacerWhoHasIt(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "1"})
	x.fails()

	_, err := x.db.RequestPlacement(t.Context(), berth.PlacementRequest{
		AttemptID: uuid.NewString(), SweepID: x.sweep, TrialID: x.trial, WorkflowID: "w", Number: 2, Stage: berth.StageMain,
		Purpose: berth.PurposeRun, ShapeKey: "s", Demand: berth.Demand{MemoryBytes: gib, CPUMilli: 1000},
	})
	require.NoError(t, err)

	has := func() string {
		queue, err := x.db.Queue(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, queue.Waiting, 1)

		return queue.Waiting[0].Checkpoint
	}

	require.Equal(t, x.host, has())
	x.looks()
	require.Empty(t, has(), "every host can fetch it")
}

// The placer knows how large the stored checkpoint is, and where none is fetched.
func TestCheckpointer_TellsThePlacerWhatIsFetched(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "seven b"})
	x.fails()

	_, err := x.db.RequestPlacement(t.Context(), berth.PlacementRequest{
		AttemptID: uuid.NewString(), SweepID: x.sweep, TrialID: x.trial, WorkflowID: "w", Number: 2, Stage: berth.StageMain,
		Purpose: berth.PurposeRun, ShapeKey: "s", Demand: berth.Demand{MemoryBytes: gib, CPUMilli: 1000},
	})
	require.NoError(t, err)

	waits := func() berth.WaitingRequest {
		queue, err := x.db.Queue(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, queue.Waiting, 1)

		return queue.Waiting[0]
	}

	require.Zero(t, waits().Fetch)
	x.looks()
	require.EqualValues(t, 7, waits().Fetch)
	require.Equal(t, []string{x.host}, waits().Fetched)

	hosts, err := x.db.ListHosts(t.Context())
	require.NoError(t, err)

	for _, h := range hosts {
		require.Equal(t, h.ID == x.host, h.StoresCheckpoints, h.Name)
	}
}

// The store has a checkpoint of an attempt, and its later one could not be stored:
// only its host has the newest, until an attempt elsewhere has one stored.
func TestCheckpointer_TellsThePlacerThatTheNewestIsNotStored(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	has := func() string {
		request := berth.PlacementRequest{
			AttemptID: uuid.NewString(), SweepID: x.sweep, TrialID: x.trial, WorkflowID: "w", Number: x.number + 1, Stage: berth.StageMain,
			Purpose: berth.PurposeRun, ShapeKey: "s", Demand: berth.Demand{MemoryBytes: gib, CPUMilli: 1000},
		}
		_, err := x.db.RequestPlacement(t.Context(), request)
		require.NoError(t, err)

		queue, err := x.db.Queue(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, queue.Waiting, 1)
		x.sql().Exec("DELETE FROM placement_requests WHERE attempt_id = $1", request.AttemptID)

		return queue.Waiting[0].Checkpoint
	}

	x.pointer.Limits = artifacts.Limits{Bytes: 4}
	x.writes(map[string]string{"state": "1"})
	x.looks()
	x.writes(map[string]string{"state": "100 epochs later"})
	x.fails()
	x.looks()
	require.Contains(t, x.sql().Text("SELECT checkpoint_problem FROM attempts"), "--output-limit")
	require.Equal(t, x.host, has())

	x.pointer = x.newPointer(x.db)
	x.runs(x.host)
	x.fails()
	x.looks()
	require.Empty(t, has(), "that of attempt 2 is newer than what attempt 1 left")
}

// Many entries are one checkpoint.
func TestCheckpointer_ManyFiles(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	content := make(map[string]string)

	for i := range 500 {
		content[fmt.Sprintf("d%d/%s/f%d", i%7, strings.Repeat("n", 100), i)] = fmt.Sprint(i)
	}

	x.writes(content)
	x.fails()
	x.looks()
	require.Equal(t, content, x.restored(x.next().Stored.ID))
}

func requireOwner(t *testing.T, path string, uid int) {
	t.Helper()

	info, err := os.Stat(path)
	require.NoError(t, err)

	stat, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	require.EqualValues(t, uid, stat.Uid)
}
