package artifacts_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io/fs"
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
	"github.com/berthml/berth/internal/store/artifacts"
	"github.com/berthml/berth/internal/store/postgres"
)

// checkpoints are a host's checkpoints below a directory.
type checkpoints struct {
	dir     string
	running []berth.AttemptCheckpoint
	spooled func() // called before one is read; nil = nothing is called
	full    error  // why the disk takes no spool
}

func (c *checkpoints) OpenCheckpoint(of berth.AttemptCheckpoint) (*os.Root, error) {
	root, err := os.OpenRoot(filepath.Join(c.dir, of.TrialID))
	if os.IsNotExist(err) {
		return nil, berth.Errorf(berth.KindNotFound, "there is no directory")
	}

	return root, err
}

func (c *checkpoints) RunningCheckpoints() []berth.AttemptCheckpoint { return c.running }

func (c *checkpoints) Spool(int64) (*os.File, error) {
	if c.spooled != nil {
		c.spooled()
	}

	if c.full != nil {
		return nil, c.full
	}

	file, err := os.CreateTemp(c.dir, "spool-")

	return file, errors.Join(err, os.Remove(file.Name()))
}

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
	_, _, err := x.db.Suggest(t.Context(), x.sweep, 1, 1, berth.SearchNeeds{}, func(berth.Tried) ([]berth.NewTrial, bool, error) {
		return []berth.NewTrial{{ID: x.trial, Params: berth.Assignment{}, Shape: berth.Shape{ImageDigest: "sha256:x", Command: []string{"run"}}}}, false, nil
	})
	require.NoError(t, err)

	x.pointer = x.newPointer(x.db)
	x.runs(x.host)

	return x
}

func (x *trials) newPointer(ledger artifacts.CheckpointLedger) *artifacts.Checkpointer {
	return &artifacts.Checkpointer{
		Ledger: ledger, Files: x.files, Store: x.store, HostID: x.host, After: time.Nanosecond, Log: slog.New(slog.DiscardHandler),
	}
}

// runs has a new attempt of the trial run on a host.
func (x *trials) runs(host string) {
	x.t.Helper()
	x.number++

	request := x.request(x.trial, x.number)
	x.of = berth.AttemptCheckpoint{AttemptID: request.AttemptID, TrialID: x.trial, Token: x.place(request, host)}
	require.NoError(x.t, x.db.AttemptRunning(x.t.Context(), x.of.AttemptID, x.of.Token, "c", time.Now()))

	x.files.running = nil
	if host == x.host {
		x.files.running = []berth.AttemptCheckpoint{x.of}
	}
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

// looks stores the checkpoints of ended attempts, and those of running ones that are at rest.
func (x *trials) looks() {
	x.t.Helper()
	require.NoError(x.t, x.pointer.LookEnded(x.t.Context()))

	for range 2 { // the second look finds what the first one found
		require.NoError(x.t, x.pointer.LookRunning(x.t.Context()))
	}
}

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
func (x *trials) restored(of berth.StoredCheckpoint) map[string]string {
	x.t.Helper()

	dir := x.t.TempDir()
	require.NoError(x.t, restore(x.t, x.store, of, dir))

	return contentOf(x.t, dir)
}

// newest is the trial's newest checkpoint in the store.
func (x *trials) newest() berth.StoredCheckpoint {
	x.t.Helper()

	digest, err := hex.DecodeString(x.sql().Text("SELECT encode(sha256, 'hex') FROM checkpoints WHERE stored_at IS NOT NULL"))
	require.NoError(x.t, err)

	return berth.StoredCheckpoint{Digest: berth.Digest(digest), Bytes: x.sql().Int("SELECT bytes FROM checkpoints WHERE stored_at IS NOT NULL")}
}

func restore(t *testing.T, store *artifacts.Store, of berth.StoredCheckpoint, dir string) error {
	t.Helper()

	root, err := os.OpenRoot(dir)
	require.NoError(t, err)

	defer root.Close() //nolint:errcheck // a test's

	return store.Restore(t.Context(), of, root, func(int64) {})
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
// It is one object.
func TestCheckpointer_StoresWhatAnAttemptLeft(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	content := map[string]string{"epoch-1/weights": "one", "epoch-2/weights": strings.Repeat("two", 1<<18), "state": "2", "empty": ""}
	x.writes(content)

	dir := filepath.Join(x.files.dir, x.trial)
	old := time.Unix(1_700_000_000, 123_456_789)
	require.NoError(t, os.Symlink("epoch-2", filepath.Join(dir, "latest")))
	require.NoError(t, os.Symlink("/trial/checkpoint/epoch-1", filepath.Join(dir, "best")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "void"), 0o711)) //nolint:gosec // G301: as jobs do
	require.NoError(t, os.Chtimes(filepath.Join(dir, "epoch-1"), old, old))

	owner := os.Geteuid()
	if owner == 0 {
		owner = 1234
		require.NoError(t, os.Chown(filepath.Join(dir, "state"), owner, owner))
	}

	x.fails()
	x.looks()

	e := x.next()
	require.NotNil(t, e.Stored)
	require.False(t, e.Coming, "it is settled")
	require.True(t, e.Left)
	require.Len(t, x.objects(), 1)

	content["latest"], content["best"] = "-> epoch-2", "-> /trial/checkpoint/epoch-1"
	to := t.TempDir()
	require.NoError(t, restore(t, x.store, *e.Stored, to))
	require.Equal(t, content, contentOf(t, to))

	for path, mode := range map[string]os.FileMode{"void": os.ModeDir | 0o711, "state": 0o640, "epoch-1": os.ModeDir | 0o755} {
		info, err := os.Stat(filepath.Join(to, path))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), path)
	}

	info, err := os.Stat(filepath.Join(to, "epoch-1"))
	require.NoError(t, err)
	require.True(t, info.ModTime().Equal(old), "a program may look for its newest by it: %s", info.ModTime())
	requireOwner(t, filepath.Join(to, "state"), owner)
}

// A running attempt's checkpoint is stored when it has changed and two looks find the same.
// The older one goes at once. An attempt that ends without a change sends nothing again.
func TestCheckpointer_FollowsARunningAttempt(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)

	for _, epoch := range []string{"1", "2", "3"} { // each look finds another one
		x.writes(map[string]string{"epoch": epoch})
		require.NoError(t, x.pointer.LookRunning(t.Context()))
		require.Empty(t, x.objects())
	}

	require.NoError(t, x.pointer.LookRunning(t.Context()))
	require.Equal(t, map[string]string{"epoch": "3"}, x.restored(x.newest()))

	first := x.objects()
	x.writes(map[string]string{"epoch": "4", "more": "of it"})
	x.looks()
	require.Len(t, x.objects(), 1, "the object of the older checkpoint is gone")
	require.NotEqual(t, first, x.objects())

	stored := x.sql().Text("SELECT stored_at::text FROM checkpoints")
	x.looks()
	require.Equal(t, stored, x.sql().Text("SELECT stored_at::text FROM checkpoints"), "nothing has changed")

	x.pointer.After = 0
	x.writes(map[string]string{"epoch": "5"})
	x.looks()
	require.Equal(t, stored, x.sql().Text("SELECT stored_at::text FROM checkpoints"), "only what has ended is stored")

	x.fails()
	x.looks()
	require.Equal(t, map[string]string{"epoch": "5", "more": "of it"}, x.restored(*x.next().Stored))
}

// halting calls back when an archive is made, and not sent.
type halting struct {
	*postgres.Store

	begun func() error
}

func (h halting) BeginCheckpoint(ctx context.Context, of berth.AttemptCheckpoint, archive berth.StoredCheckpoint) error {
	return errors.Join(h.Store.BeginCheckpoint(ctx, of, archive), h.begun())
}

// Whatever ends the upload of a newer checkpoint, the one before can be fetched until the
// newer one is whole. Then the half of it goes, too.
func TestCheckpointer_HalfOfOneIsNone(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"state": "1"})
	x.looks()
	x.writes(map[string]string{"state": "2"})
	x.fails()

	x.pointer = x.newPointer(halting{x.db, func() error { return errors.New("killed") }})
	require.ErrorContains(t, x.pointer.LookEnded(t.Context()), "killed")
	require.EqualValues(t, 2, x.sql().Int("SELECT count(*) FROM checkpoints"))
	require.Equal(t, map[string]string{"state": "1"}, x.restored(*x.next().Stored))

	x.pointer = x.newPointer(x.db)
	x.looks()
	require.EqualValues(t, 1, x.sql().Int("SELECT count(*) FROM checkpoints"))
	require.Equal(t, map[string]string{"state": "2"}, x.restored(x.newest()))
	require.Len(t, x.objects(), 1)
}

// Files that change while they are read wait for the next look. Once the archive is made,
// they may change: it is sent as it is.
func TestCheckpointer_LeavesWhatChangesMeanwhile(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(x *trials){
		"a file is written":  func(x *trials) { x.writes(map[string]string{"state": "2"}) },
		"a file grows":       func(x *trials) { x.writes(map[string]string{"state": "22"}) },
		"a file is shorter":  func(x *trials) { x.writes(map[string]string{"state": ""}) },
		"a file is new":      func(x *trials) { x.writes(map[string]string{"new": "2"}) },
		"a file is replaced": func(x *trials) { x.writes(map[string]string{"new": "2"}); x.rename("new", "state") },
		"a file goes":        func(x *trials) { require.NoError(x.t, os.Remove(filepath.Join(x.files.dir, x.trial, "state"))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := setupTrials(t)
			x.t = t
			x.writes(map[string]string{"state": "1", "other": "o"})

			x.files.spooled = func() { change(x) } // it is listed by now, and not read
			x.looks()
			require.Zero(t, x.sql().Int("SELECT count(*) FROM checkpoints"))

			x.files.spooled = nil
			want := contentOf(t, filepath.Join(x.files.dir, x.trial))
			x.pointer = x.newPointer(halting{x.db, func() error { x.writes(map[string]string{"state": "3"}); return nil }})
			x.looks()
			require.Equal(t, want, x.restored(x.newest()))
		})
	}
}

func (x *trials) rename(from, to string) {
	require.NoError(x.t, os.Rename(filepath.Join(x.files.dir, x.trial, from), filepath.Join(x.files.dir, x.trial, to)))
}

// One that is too large, or has a link that is of no use elsewhere, is not stored in part:
// the last good one stays, and the next attempt can say why.
func TestCheckpointer_SaysWhyOneIsNotStored(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		limits artifacts.Limits
		change func(x *trials, dir string) error
		why    string
	}{
		"bytes":         {artifacts.Limits{Bytes: 4}, func(*trials, string) error { return nil }, "larger than 4 bytes (--output-limit)"},
		"files":         {artifacts.Limits{Files: 1}, func(*trials, string) error { return nil }, "more than 1 files"},
		"a link out":    {artifacts.Limits{}, func(_ *trials, dir string) error { return os.Symlink("../../out/model", filepath.Join(dir, "l")) }, `link "l" leads out of it, to "../../out/model"`},
		"absolute":      {artifacts.Limits{}, func(_ *trials, dir string) error { return os.Symlink("/data/model", filepath.Join(dir, "l")) }, `link "l" leads out of it, to "/data/model"`},
		"it was there":  {artifacts.Limits{}, func(_ *trials, dir string) error { return os.RemoveAll(dir) }, "not in the data directory of its host any more"},
		"it had files":  {artifacts.Limits{}, func(_ *trials, dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) }, "not in the data directory of its host any more"},
		"it was closed": {artifacts.Limits{}, func(x *trials, _ string) error { x.pointer.Files = closed{x.files}; return nil }, "it cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			x := setupTrials(t)
			x.t = t
			x.writes(map[string]string{"a": "1"})
			x.looks()
			x.writes(map[string]string{"a": "123", "b": "45"})
			require.NoError(t, c.change(x, filepath.Join(x.files.dir, x.trial)))

			x.pointer.Limits = c.limits
			x.looks()
			x.fails()
			x.looks()

			e := x.next()
			require.False(t, e.Coming)
			require.Contains(t, e.Problem, c.why)
			require.Equal(t, map[string]string{"a": "1"}, x.restored(*e.Stored))
		})
	}
}

// closed are checkpoints that the worker may not read.
type closed struct{ *checkpoints }

func (closed) OpenCheckpoint(berth.AttemptCheckpoint) (*os.Root, error) {
	return nil, &fs.PathError{Op: "open", Path: "checkpoint", Err: fs.ErrPermission}
}

// A disk without room for the archive of a running attempt costs that one alone: at its
// end, when nothing writes any more, none is needed.
func TestCheckpointer_AFullDiskKeepsNothingThatEnded(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.files.full = berth.Errorf(berth.KindExhausted, "the disk has no room")
	x.writes(map[string]string{"state": "1"})
	x.looks()
	require.Empty(t, x.objects())

	x.fails()
	x.looks()
	require.Equal(t, map[string]string{"state": "1"}, x.restored(*x.next().Stored))
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
	require.ErrorContains(t, x.pointer.LookEnded(t.Context()), "the directory is gone")

	e := x.next()
	require.True(t, e.Coming, "the next attempt waits for it")
	require.NotNil(t, e.Stored, "and would take this one")
	require.Equal(t, berth.KindUnavailable, berth.KindOf(restore(t, x.store, *e.Stored, t.TempDir())))

	require.NoError(t, os.Rename(away, x.storeDir))
	x.looks()

	list, err := x.db.EarlierCheckpoints(t.Context(), x.of.AttemptID)
	require.NoError(t, err)
	require.False(t, list[0].Coming)
	require.Equal(t, map[string]string{"state": "2"}, x.restored(*list[0].Stored))
}

// A damaged object is not accepted, and a missing one is reported.
func TestRestore_HoldsTheArchiveToItsChecksum(t *testing.T) {
	t.Parallel()

	x := setupTrials(t)
	x.writes(map[string]string{"a": "first", "b": "second"})
	x.fails()
	x.looks()

	of, name := x.newest(), x.objects()[0]
	path := filepath.Join(x.storeDir, "sha256", name[:2], name)
	content, err := os.ReadFile(path)
	require.NoError(t, err)

	for what, damaged := range map[string][]byte{
		"another byte": bytes.Replace(content, []byte("second"), []byte("secone"), 1),
		"shorter":      content[:len(content)-1],
		"longer":       append(bytes.Clone(content), 0),
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(path, damaged, 0o600))
		require.ErrorIs(t, restore(t, x.store, of, dir), berth.ErrDamaged, what)
	}

	require.NoError(t, os.Remove(path))
	require.Equal(t, berth.KindNotFound, berth.KindOf(restore(t, x.store, of, t.TempDir())))
}

func requireOwner(t *testing.T, path string, uid int) {
	t.Helper()

	info, err := os.Stat(path)
	require.NoError(t, err)

	stat, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	require.EqualValues(t, uid, stat.Uid)
}
