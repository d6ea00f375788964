package runtrial

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

func storedAs(id string) *berth.StoredCheckpoint {
	return &berth.StoredCheckpoint{Digest: berth.Digest(sha256.Sum256([]byte(id))), Bytes: 3 << 20, StoredAt: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
}

func TestResumptionOf(t *testing.T) {
	t.Parallel()

	const here, there = "here", "there"

	for name, c := range map[string]struct {
		earlier []berth.EarlierCheckpoint
		local   bool
		text    string
		await   int // attempt
	}{
		"nothing is known":              {},
		"nobody knows who wrote it":     {local: true, text: "from a checkpoint on this host"},
		"the newest is here":            {earlier: []berth.EarlierCheckpoint{{Number: 2, HostID: here, Host: "a", Ran: true, Left: true, Stored: storedAs("x")}}, local: true, text: "from the checkpoint of attempt 2 on this host, a"},
		"here, of one that was lost":    {earlier: []berth.EarlierCheckpoint{{Number: 2, HostID: here, Host: "a", Ran: true, GivenUp: true}}, local: true, text: "from the checkpoint of attempt 2 on this host, a"},
		"the newest is elsewhere":       {earlier: []berth.EarlierCheckpoint{{Number: 2, HostID: there, Host: "b", Ran: true, Stored: storedAs("x")}, {Number: 1, HostID: here, Ran: true}}, local: true, text: "from the checkpoint of attempt 2 of host b, stored at 2026-11-25T12:00:00Z"},
		"this directory was emptied":    {earlier: []berth.EarlierCheckpoint{{Number: 2, HostID: here, Host: "a", Ran: true, Left: true, Stored: storedAs("x")}}, text: "from the checkpoint of attempt 2 of host a, stored at 2026-11-25T12:00:00Z"},
		"the last one did not start":    {earlier: []berth.EarlierCheckpoint{{Number: 3, HostID: here}, {Number: 2, HostID: there, Host: "b", Ran: true, Stored: storedAs("x")}}, local: true, text: "from the checkpoint of attempt 2 of host b, stored at 2026-11-25T12:00:00Z"},
		"it is about to be stored":      {earlier: []berth.EarlierCheckpoint{{Number: 2, HostID: there, Ran: true, Left: true, Coming: true}, {Number: 1, HostID: here, Host: "a", Ran: true}}, local: true, await: 2, text: "from the checkpoint of attempt 1 on this host, a"},
		"newer than what is stored":     {earlier: []berth.EarlierCheckpoint{{Number: 2, HostID: there, Host: "b", Ran: true, Left: true, Coming: true, Stored: storedAs("x")}}, await: 2, text: "from the checkpoint of attempt 2 of host b, stored at 2026-11-25T12:00:00Z"},
		"it is out of reach":            {earlier: []berth.EarlierCheckpoint{{Number: 2, HostID: there, Host: "b", Ran: true, Left: true}}, text: "from nothing: the checkpoint of attempt 2 of host b is out of reach: it is on that host only, and not stored (--artifacts)"},
		"it was too large":              {earlier: []berth.EarlierCheckpoint{{Number: 2, HostID: there, Host: "b", Ran: true, Left: true, Problem: "it is too large"}}, text: "from nothing: the checkpoint of attempt 2 of host b is out of reach: it is too large"},
		"what it left was too large":    {earlier: []berth.EarlierCheckpoint{{Number: 2, HostID: there, Host: "b", Ran: true, Left: true, Stored: storedAs("x"), Problem: "it is larger than 10 GiB (--output-limit)"}}, text: "from the checkpoint of attempt 2 of host b, stored at 2026-11-25T12:00:00Z; what it left is out of reach: it is larger than 10 GiB (--output-limit)"},
		"an older one is here":          {earlier: []berth.EarlierCheckpoint{{Number: 2, HostID: there, Host: "b", Ran: true, Left: true}, {Number: 1, HostID: here, Host: "a", Ran: true}}, local: true, text: "from the checkpoint of attempt 1 on this host, a; the checkpoint of attempt 2 of host b is out of reach: it is on that host only, and not stored (--artifacts)"},
		"its host was lost with it":     {earlier: []berth.EarlierCheckpoint{{Number: 1, HostID: there, Host: "b", Ran: true, GivenUp: true}}, text: "from nothing: no checkpoint of attempt 1 was stored before its host b was given up"},
		"given up before it ran":        {earlier: []berth.EarlierCheckpoint{{AttemptID: "2", Number: 2, HostID: here, Host: "a", GivenUp: true}, {Number: 1, HostID: there, Host: "b", Ran: true, Stored: storedAs("x")}}, local: true, text: "from the checkpoint of attempt 1 of host b, stored at 2026-11-25T12:00:00Z"},
		"given up elsewhere":            {earlier: []berth.EarlierCheckpoint{{AttemptID: "2", Number: 2, HostID: there, Host: "b", GivenUp: true}, {Number: 1, HostID: there, Host: "b", Ran: true, Stored: storedAs("x")}}, local: true, text: "from the checkpoint of attempt 1 of host b, stored at 2026-11-25T12:00:00Z"},
		"fetched, and never started":    {earlier: []berth.EarlierCheckpoint{{AttemptID: "2", Number: 2, HostID: here}, {Number: 1, HostID: there, Host: "b", Ran: true, Stored: storedAs("x")}}, local: true, text: "from the checkpoint of attempt 1 of host b, stored at 2026-11-25T12:00:00Z"},
		"emptied before it was stored":  {earlier: []berth.EarlierCheckpoint{{AttemptID: "1", Number: 1, HostID: here, Host: "a", Ran: true, Left: true, Coming: true}}, text: "from nothing: this host, a, has no files of attempt 1 any more"},
		"emptied, and not stored":       {earlier: []berth.EarlierCheckpoint{{AttemptID: "1", Number: 1, HostID: here, Host: "a", Ran: true, Left: true}}, text: "from nothing: this host, a, has no files of attempt 1 any more"},
		"emptied since it was given up": {earlier: []berth.EarlierCheckpoint{{AttemptID: "1", Number: 1, HostID: here, Host: "a", Ran: true, GivenUp: true}}, text: "from nothing: this host, a, has no files of attempt 1 any more"},
		"the earlier ones wrote none":   {earlier: []berth.EarlierCheckpoint{{Number: 2, HostID: there, Ran: true}, {Number: 1, HostID: here, Ran: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := resumptionOf(c.earlier, here, c.local)
			require.Equal(t, c.text, r.text())

			if c.await == 0 {
				require.Nil(t, r.await)
			} else {
				require.Equal(t, c.await, r.await.Number)
			}
		})
	}
}

// second is the second attempt of a trial, whose first one ran elsewhere.
type second struct {
	*rig

	earlier atomic.Pointer[[]berth.EarlierCheckpoint]
	fetched atomic.Int32
	said    []string // what it waits for, one after the other
}

// setupSecond has restore fetch a checkpoint for the attempt.
func setupSecond(t *testing.T, restore func(root *os.Root) error) *second {
	t.Helper()

	x := &second{rig: setup(t)}
	x.config.Restore = func(_ context.Context, of berth.StoredCheckpoint, root *os.Root, told func(int64)) error {
		x.fetched.Add(1)
		require.Equal(t, *storedAs("x"), of)

		err := restore(root)
		if err == nil {
			told(1 << 20)
		}

		return err
	}
	x.knows(berth.EarlierCheckpoint{Number: 1, HostID: "other", Host: "b", Ran: true, Left: true, Stored: storedAs("x")})
	x.books.says(func(who *berth.Assignee) { who.Attempt.Number = 2 })
	x.books.Hook(func(h *fake.LedgerHooks) {
		h.NoteWait = func(ctx context.Context, _ string, call func(context.Context) error) error {
			err := call(ctx)
			x.said = append(x.said, x.who(t).Attempt.Message)

			return err
		}
		h.Checkpoints = func(context.Context, string, func(context.Context) ([]berth.EarlierCheckpoint, error)) ([]berth.EarlierCheckpoint, error) {
			if earlier := x.earlier.Load(); earlier != nil {
				return slices.Clone(*earlier), nil
			}

			return nil, berth.Errorf(berth.KindUnavailable, "the database restarts")
		}
	})

	return x
}

func (x *second) knows(earlier ...berth.EarlierCheckpoint) { x.earlier.Store(&earlier) }

func (x *second) checkpoint() string { return filepath.Join(x.dir, "checkpoints", "trial") }

// has are the files of the trial's directory.
func (x *second) has(t *testing.T) map[string]string {
	t.Helper()

	content := make(map[string]string)
	entries, err := os.ReadDir(x.checkpoint())
	require.NoError(t, err)

	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(x.checkpoint(), entry.Name()))
		require.NoError(t, err)

		content[entry.Name()] = string(text)
	}

	return content
}

func (x *second) writes(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(x.checkpoint(), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(x.checkpoint(), name), []byte(text), 0o600))
}

// resumed is what the ledger says of the attempt.
func (x *second) resumed(t *testing.T) string {
	t.Helper()

	a, err := x.books.GetAttempt(t.Context(), attemptID)
	require.NoError(t, err)

	return a.Resumed
}

// starts waits for the container, which may find a checkpoint.
func (x *second) starts(t *testing.T, resumes bool) *fake.Process {
	t.Helper()

	box := x.docks.started(t)
	require.Equal(t, resumes, x.docks.launches()[0].Environment["TRIAL_RESUME"] == "1")

	return box
}

const fromB = "from the checkpoint of attempt 1 of host b, stored at 2026-11-25T12:00:00Z"

func writes(name, text string) func(root *os.Root) error {
	return func(root *os.Root) error { return root.WriteFile(name, []byte(text), 0o600) }
}

func TestRun_FetchesTheNewestCheckpoint(t *testing.T) {
	t.Parallel()

	x := setupSecond(t, writes("state", "7"))
	x.writes(t, "older", "3") // of an attempt here, which was replaced by one on host b
	ended := x.start(t.Context(), x.order())
	box := x.starts(t, true)
	require.Equal(t, map[string]string{"state": "7"}, x.has(t), "the older one is gone")
	require.Equal(t, fromB, x.resumed(t))
	require.Equal(t, []string{"fetching its checkpoint: 1 of 3 MiB", "puts its checkpoint in its place", ""}, x.said)
	require.EqualValues(t, 1, x.fetched.Load())
	require.Eventually(t, func() bool { return len(x.RunningCheckpoints()) == 1 }, patience, tick)

	// Another worker goes on: what the job has written since stays.
	x.writes(t, "state", "8")

	ended2 := x.start(t.Context(), x.order())
	require.ErrorIs(t, await(t, ended).err, ErrDetached)
	box.Exit(1)
	require.NoError(t, await(t, ended2).err)
	require.Equal(t, map[string]string{"state": "8"}, x.has(t))
	require.EqualValues(t, 1, x.fetched.Load())
	require.True(t, x.books.result(t).Checkpoint, "it left one")
	require.Empty(t, x.RunningCheckpoints())
}

// Without the launch, which a full disk may have refused, nothing is fetched into the
// directory of a container that may run.
func TestRun_FetchesNothingOnceItMayRun(t *testing.T) {
	t.Parallel()

	x := setupSecond(t, writes("state", "7"))
	box := x.leave(t, x.order())
	x.starts(t, true)
	x.writes(t, "state", "8")
	require.NoError(t, os.Remove(filepath.Join(x.dir, "attempts", attemptID, launchName)))
	x.books.says(func(who *berth.Assignee) { who.Attempt.ContainerID = "" })

	ended := x.start(t.Context(), x.order())

	require.Eventually(t, func() bool { return len(x.RunningCheckpoints()) == 1 }, patience, tick)
	box.Exit(0)
	require.NoError(t, await(t, ended).err)
	require.Equal(t, map[string]string{"state": "8"}, x.has(t))
	require.EqualValues(t, 1, x.fetched.Load())
}

// What is half there is never in the place of the directory; the next run of the
// attempt fetches all of it.
func TestRun_FetchesAgainAfterItWasCutOff(t *testing.T) {
	t.Parallel()

	began := make(chan struct{})

	var calls atomic.Int32

	x := setupSecond(t, func(root *os.Root) error {
		if calls.Add(1) == 1 {
			require.NoError(t, writes("half", "1")(root))
			close(began)

			return berth.Errorf(berth.KindUnavailable, "cut off")
		}

		return writes("state", "7")(root)
	})

	parts := filepath.Join(x.dir, "attempts", attemptID, fetchingName)
	require.NoError(t, os.MkdirAll(filepath.Join(parts, "of a worker that was killed"), 0o700))

	ctx, kill := context.WithCancel(t.Context())
	ended := x.start(ctx, x.order())
	<-began
	kill()
	require.ErrorIs(t, await(t, ended).err, ErrDetached)
	require.Empty(t, x.docks.boxes(t))
	require.NoFileExists(t, filepath.Join(x.checkpoint(), "half"))

	ended = x.start(t.Context(), x.order())
	box := x.starts(t, true)
	require.Equal(t, map[string]string{"state": "7"}, x.has(t))
	require.NoDirExists(t, parts, "it takes the disk for as long as the attempt runs")
	box.Exit(0)
	require.NoError(t, await(t, ended).err)
}

// Killed between the two renames: the older one is aside, and the next run fetches again.
// A directory with the files of a job is replaced as a whole.
func TestReplaceCheckpoint(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	d := dirs{checkpoint: filepath.Join(dir, "checkpoints", "trial")}

	for n, older := range []string{"", "0", "1"} {
		whole, aside := filepath.Join(dir, fmt.Sprint("whole", n)), filepath.Join(dir, fmt.Sprint("aside", n))
		require.NoError(t, os.Mkdir(whole, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(whole, fmt.Sprint(n)), nil, 0o600))

		require.NoError(t, d.replaceCheckpoint(whole, aside))

		entries, err := os.ReadDir(d.checkpoint)
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.Equal(t, fmt.Sprint(n), entries[0].Name())

		if older != "" {
			require.FileExists(t, filepath.Join(aside, older))
		}
	}
}

// A store that is away is waited for, and one that stays away does not hold the trial
// for ever: then it starts from what is here, and says so.
func TestRun_WaitsForTheStoreButNotForEver(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		away  time.Duration // 0 = for ever
		took  time.Duration // of the attempts before
		waits time.Duration
		text  string
	}{
		"it comes back":         {away: 9 * time.Minute, waits: 9 * time.Minute, text: fromB},
		"it is gone":            {waits: 10 * time.Minute, text: "from nothing: the checkpoint of attempt 1 of host b is out of reach: the store is away"},
		"much would be lost":    {took: 40 * time.Minute, waits: 40 * time.Minute, text: "from nothing: the checkpoint of attempt 1 of host b is out of reach: the store is away"},
		"days would be lost":    {took: 72 * time.Hour, waits: time.Hour, text: "from nothing: the checkpoint of attempt 1 of host b is out of reach: the store is away"},
		"it is back after long": {away: 30 * time.Minute, took: 40 * time.Minute, waits: 30 * time.Minute, text: fromB},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				x := setupSecond(t, func(root *os.Root) error {
					if c.away == 0 || time.Since(began) < c.away {
						return berth.Errorf(berth.KindUnavailable, "the store is away")
					}

					return writes("state", "7")(root)
				})
				x.knows(berth.EarlierCheckpoint{Number: 1, HostID: "other", Host: "b", Ran: true, Left: true, Took: c.took, Stored: storedAs("x")})

				ended := x.start(t.Context(), x.order())

				time.Sleep(time.Minute)
				require.Len(t, x.Waiting(), 1, "its lease is renewed meanwhile")
				require.Contains(t, x.who(t).Attempt.Message, "waits for its checkpoint: the store is away")

				box := waitedFor(t, x, began, c.waits)
				require.Equal(t, c.text, x.resumed(t))
				require.Empty(t, x.who(t).Attempt.Message)
				box.Exit(0)
				require.NoError(t, (<-ended).err)
			})
		})
	}
}

// waitedFor waits for the container, which starts after so long.
func waitedFor(t *testing.T, x *second, began time.Time, long time.Duration) *fake.Process {
	t.Helper()

	for x.docks.Process(attemptID) == nil {
		require.Less(t, time.Since(began), 2*time.Hour, "it never starts")
		time.Sleep(time.Second)
	}

	require.InDelta(t, long.Seconds(), time.Since(began).Seconds(), 5)

	return x.docks.Process(attemptID)
}

// Another host that is about to store the newest one is waited for, also where PostgreSQL
// restarts meanwhile.
func TestRun_WaitsForTheHostThatStoresIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		x := setupSecond(t, writes("state", "7"))
		x.knows(berth.EarlierCheckpoint{Number: 1, HostID: "other", Host: "b", Ran: true, Left: true, Coming: true})
		ended := x.start(t.Context(), x.order())

		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, "waits until host b has stored the checkpoint of attempt 1", x.who(t).Attempt.Message)
		x.earlier.Store(nil)
		time.Sleep(time.Minute)
		x.knows(berth.EarlierCheckpoint{Number: 1, HostID: "other", Host: "b", Ran: true, Left: true, Stored: storedAs("x")})

		box := waitedFor(t, x, began, 92*time.Second)
		require.Equal(t, map[string]string{"state": "7"}, x.has(t))
		require.Equal(t, fromB, x.resumed(t))
		box.Exit(0)
		require.NoError(t, (<-ended).err)
	})
}

// A damaged checkpoint is asked for three times and never used.
func TestRun_UsesNoDamagedCheckpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := setupSecond(t, func(root *os.Root) error {
			require.NoError(t, writes("state", "!")(root))

			return berth.Errorf(berth.KindInvalid, "an object is damaged: %w", berth.ErrDamaged)
		})
		x.writes(t, "older", "3")
		x.knows(
			berth.EarlierCheckpoint{Number: 2, HostID: "other", Host: "b", Ran: true, Left: true, Stored: storedAs("x")},
			berth.EarlierCheckpoint{Number: 1, HostID: hostID, Host: "a", Ran: true, Left: true},
		)
		x.books.says(func(who *berth.Assignee) { who.Attempt.Number = 3 })

		ended := x.start(t.Context(), x.order())
		box := waitedFor(t, x, time.Now(), 4*time.Second)
		require.EqualValues(t, 3, x.fetched.Load())
		require.Equal(t, map[string]string{"older": "3"}, x.has(t))
		require.Equal(t, "from the checkpoint of attempt 1 on this host, a; the checkpoint of attempt 2 of host b is out of reach: an object is damaged: its SHA-256 is not that of its name", x.resumed(t))
		box.Exit(0)
		require.NoError(t, (<-ended).err)
	})
}

// Without room for it, or when its host lets an attempt keep less, the attempt goes to
// another host, as after any start that a host's disk refuses.
func TestRun_NeedsRoomForItsCheckpoint(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		change  func(x *second)
		restore func(root *os.Root) error
		why     string
	}{
		"no room": {change: func(x *second) {
			x.config.DiskFree = func() (int64, int64, error) { return 4 << 20, 1 << 40, nil }
			x.config.DiskHeadroom = 2 << 20
		}, why: "fetching the checkpoint takes 3 MiB"},
		"--output-limit": {change: func(x *second) { x.config.Bounds.OutputLimit = 2 << 20 }, why: "an attempt may keep 2 MiB of files on host"},
		"its disk fails": {restore: func(*os.Root) error { return &os.PathError{Op: "write", Path: "state", Err: syscall.EIO} }, why: syscall.EIO.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x := setupSecond(t, c.restore)
				if c.change != nil {
					c.change(x)
				}

				got := <-x.start(t.Context(), x.order())
				require.NoError(t, got.err)
				require.Equal(t, berth.FailureInfra, got.outcome.Kind)
				require.Contains(t, got.outcome.Message, c.why)
				require.False(t, x.books.result(t).Checkpoint, "it never ran")
			})
		})
	}
}

func TestRun_WithoutAStoreStartsAtOnce(t *testing.T) {
	t.Parallel()

	x := setupSecond(t, nil)
	x.config.Restore = nil
	ended := x.start(t.Context(), x.order())
	box := x.starts(t, false)
	require.Equal(t, "from nothing: the checkpoint of attempt 1 of host b is out of reach: this host has no store of artifacts (--artifacts)", x.resumed(t))
	box.Exit(0)
	require.NoError(t, await(t, ended).err)
	require.False(t, x.books.result(t).Checkpoint, "it left none")
}

// The first attempt asks nobody.
func TestRun_FirstAttemptAsksForNoCheckpoint(t *testing.T) {
	t.Parallel()

	x := setupSecond(t, func(*os.Root) error { return errors.New("nobody asks") })
	x.books.says(func(who *berth.Assignee) { who.Attempt.Number = 1 })
	ended := x.start(t.Context(), x.order())
	x.starts(t, false).Exit(0)
	require.NoError(t, await(t, ended).err)
	require.Zero(t, x.fetched.Load())
	require.Empty(t, x.resumed(t))
}

// The attempt was given up while it fetched: what is in the place of the directory may be
// another attempt's, whose container has it mounted.
func TestRun_AFencedAttemptReplacesNothing(t *testing.T) {
	t.Parallel()

	var x *second

	x = setupSecond(t, func(root *os.Root) error {
		require.NoError(t, x.books.AbandonAttempt(t.Context(), attemptID, "its host did not answer"))

		return writes("state", "7")(root)
	})
	x.writes(t, "state", "of the attempt that runs now")

	got := await(t, x.start(t.Context(), x.order()))
	require.Equal(t, berth.KindFenced, berth.KindOf(got.err))
	require.Equal(t, map[string]string{"state": "of the attempt that runs now"}, x.has(t))
}
