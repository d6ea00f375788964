package runtrial

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/fake"
)

// A neighbour fills the disk at another time than the attempt ends or writes its
// files. The attempt keeps its result and its files, and its own end is judged.
func TestRun_AFullDiskOfAnotherTime(t *testing.T) {
	t.Parallel()

	const (
		report = "acc=0.9\n"
		wrong  = "ValueError: shapes do not match\n"
		model  = 21 << 20 // more than the headroom
	)

	for name, c := range map[string]struct {
		source string
		before string        // printed before the disk is full
		other  bool          // another run of the attempt sees the disk full
		after  time.Duration // from room on the disk to the end
		wrote  int           // then, into the checkpoint
		says   string        // at the end
		exit   int
		want   berth.FailureKind
	}{
		"before its files":                  {berth.MetricsStdout, "", false, time.Hour, model, report, 0, berth.FailureOK},
		"before its last report":            {berth.MetricsStdout, "acc=0.1\n", false, 2 * time.Second, 0, report, 0, berth.FailureOK},
		"before the worker's end":           {berth.MetricsStdout, "", true, time.Hour, model, report, 0, berth.FailureOK},
		"before it crashed":                 {berth.MetricsFile, "", false, time.Hour, model, "", 139, berth.FailureCrashed},
		"before it failed":                  {berth.MetricsFile, "", false, time.Hour, model, wrong, 1, berth.FailureUserError},
		"before it failed, and it said so":  {berth.MetricsFile, noSpaceLine, false, time.Hour, model, wrong, 1, berth.FailureUserError},
		"before it crashed, and it said so": {berth.MetricsFile, noSpaceLine, false, time.Hour, model, "epoch 9\n", 139, berth.FailureCrashed},
		"before it said so, and crashed":    {berth.MetricsFile, "", false, time.Hour, model, noSpaceLine, 139, berth.FailureInfra},
		"before the end and a crash":        {berth.MetricsFile, "", true, time.Hour, model, "", 139, berth.FailureCrashed},
		"just before it crashed":            {berth.MetricsFile, "", false, 10 * time.Second, model, "", 139, berth.FailureInfra},
		"after its last report":             {berth.MetricsStdout, report, false, time.Hour, model, "bye\n", 0, berth.FailureInfra},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setup(t)
				r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = c.source })
				free := r.hasSmallDisk()

				if c.other {
					r.readFor(t, time.Second, func(*fake.Process) {})
					free.Store(0)
					r.readFor(t, 2*time.Second, func(*fake.Process) {})
					free.Store(plenty)
				}

				ended := r.start(t.Context(), r.order())
				box := r.docks.started(t)
				box.Print(berth.Stdout, c.before)
				time.Sleep(time.Second)

				if !c.other {
					free.Store(0)
					time.Sleep(2 * time.Second)
					free.Store(plenty)
				}

				time.Sleep(c.after)

				path := filepath.Join(r.checkpoints(), "model")
				require.NoError(t, os.WriteFile(path, make([]byte, c.wrote), 0o600))
				box.Print(berth.Stdout, c.says)
				box.Exit(c.exit)

				got := await(t, ended)
				require.NoError(t, got.err)
				require.Equal(t, c.want, got.outcome.Kind, got.outcome.Message)
				require.FileExists(t, path)

				if c.want == berth.FailureOK {
					require.InDelta(t, 0.9, *got.outcome.Value, 0)
				}
			})
		})
	}
}

// The worker is away from the moment when its trial's files and others' had filled
// the disk. What is known of the hours since is what the trial printed.
func TestRun_AFullDiskWhileNobodyLooks(t *testing.T) {
	t.Parallel()

	const (
		epoch = "epoch 9\n"
		wrong = "ValueError: shapes do not match\n"
		late  = 10 * time.Hour
	)

	for name, c := range map[string]struct {
		after time.Duration // from the worker's end to the container's
		says  string        // then
		exit  int
		room  bool // the worker still saw that the disk had room
		back  bool // the worker is back before that
		want  berth.FailureKind
	}{
		"failed":                        {late, wrong, 1, false, false, berth.FailureUserError},
		"failed, the worker is back":    {late, wrong, 1, false, true, berth.FailureUserError},
		"failed, no words are left":     {late, "", 1, false, false, berth.FailureInfra},
		"failed for the full disk":      {late, noSpaceLine, 1, false, false, berth.FailureInfra},
		"crashed":                       {late, epoch, 139, false, false, berth.FailureCrashed},
		"crashed, no words are left":    {late, "", 139, false, false, berth.FailureInfra},
		"killed":                        {late, "", 137, false, false, berth.FailureKilled},
		"reported":                      {late, "acc=0.9\n", 0, false, false, berth.FailureInfra}, // maybe not for the last time
		"reported for the last time":    {late, `{"type": "final", "acc": 0.9}` + "\n", 0, false, false, berth.FailureOK},
		"reported, the worker is back":  {late, "acc=0.9\n", 0, false, true, berth.FailureOK},
		"failed at once, no words left": {10 * time.Second, "", 1, false, false, berth.FailureDiskQuota},
		"failed when it had room":       {late, "", 1, true, false, berth.FailureUserError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setup(t)
				free := r.hasSmallDisk()
				model := ""
				box := r.readFor(t, 2*time.Second, func(box *fake.Process) {
					model = filepath.Join(mountOf(t, box.Launch, mountOut), "model")

					box.Print(berth.Stdout, "acc=0.1\n")
					require.NoError(t, os.WriteFile(model, make([]byte, 21<<20), 0o600)) // more than the headroom
					free.Store(1 << 20)
				})

				free.Store(plenty)

				if c.room {
					r.readFor(t, 2*time.Second, func(*fake.Process) {})
				}

				time.Sleep(c.after)

				var ended <-chan answer
				if c.back {
					ended = r.start(t.Context(), r.order())

					time.Sleep(2 * time.Second)
				}

				box.Print(berth.Stdout, c.says)
				box.Exit(c.exit)

				if !c.back {
					ended = r.start(t.Context(), r.order())
				}

				got := await(t, ended)
				require.NoError(t, got.err)
				require.Equal(t, c.want, got.outcome.Kind, got.outcome.Message)

				if c.want == berth.FailureDiskQuota {
					require.NoFileExists(t, model)
				} else {
					require.FileExists(t, model)
				}

				if c.want == berth.FailureOK {
					require.InDelta(t, 0.9, *got.outcome.Value, 0)
				}
			})
		})
	}
}

// A disk that is full when the container is collected tells nothing of the time
// when the container ran. What was reported counts, and its message says that later
// reports may be missing. A trial that reported nothing runs again.
func TestRun_ADiskThatIsFullAfterTheEnd(t *testing.T) {
	t.Parallel()

	const note = "its last reports may be missing"

	for name, c := range map[string]struct {
		source, says string
		want         berth.FailureKind
		noted        bool
	}{
		"a report":        {berth.MetricsStdout, "acc=0.9\n", berth.FailureOK, true},
		"a final report":  {berth.MetricsStdout, `{"type": "final", "acc": 0.9}` + "\n", berth.FailureOK, false},
		"one in its file": {berth.MetricsFile, "", berth.FailureOK, false},
		"none":            {berth.MetricsStdout, "epoch 9\n", berth.FailureInfra, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setup(t)
				r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = c.source })
				free := r.hasSmallDisk()
				box := r.leave(t, r.order())
				require.NoError(t, os.WriteFile(filepath.Join(mountOf(t, box.Launch, mountOut), metricsName), []byte(`{"acc": 0.9}`+"\n"), 0o600))
				box.Print(berth.Stdout, c.says)
				box.Exit(0)
				free.Store(0)

				got := await(t, r.start(t.Context(), r.order()))
				require.NoError(t, got.err)
				require.Equal(t, c.want, got.outcome.Kind, got.outcome.Message)
				require.Equal(t, c.want == berth.FailureOK, got.outcome.Value != nil)
				require.Equal(t, c.noted, strings.Contains(got.outcome.Message, note), got.outcome.Message)
			})
		})
	}
}

// betweenLooks keeps what a test does at once, writing files and filling the disk, from the
// looks of every second: one in between would see the files on a disk with room.
const betweenLooks = 100 * time.Millisecond

// Who fills the disk is charged, also when it was full before.
func TestRun_WhoFillsTheDiskLaterIsCharged(t *testing.T) {
	t.Parallel()

	for name, before := range map[string]bool{"for the first time": false, "once more": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := setup(t)
				free := r.hasSmallDisk()
				ended := r.start(t.Context(), r.order())
				box := r.docks.started(t)

				if before { // by others
					time.Sleep(time.Second)
					free.Store(0)
					time.Sleep(2 * time.Second)
					free.Store(plenty)
					time.Sleep(time.Hour)
				}

				time.Sleep(betweenLooks)

				model := filepath.Join(mountOf(t, box.Launch, mountOut), "model")
				require.NoError(t, os.WriteFile(model, make([]byte, 21<<20), 0o600))
				free.Store(1 << 20)
				time.Sleep(2 * time.Second)
				box.Print(berth.Stderr, noSpaceLine)
				box.Exit(1)

				got := await(t, ended)
				require.NoError(t, got.err)
				require.Equal(t, berth.FailureDiskQuota, got.outcome.Kind, got.outcome.Message)
				require.NoFileExists(t, model)
			})
		})
	}
}

// hasSmallDisk is hasDisk with a headroom of 20 MiB, which tests can fill.
func (r *rig) hasSmallDisk() *atomic.Int64 {
	free := r.hasDisk()
	r.config.DiskHeadroom, r.config.Bounds.OutputLimit = 20<<20, 100<<20
	r.config.SampleEvery = time.Second // hours pass quickly

	return free
}
