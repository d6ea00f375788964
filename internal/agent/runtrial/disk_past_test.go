package runtrial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

// The disk is full for two seconds, and the attempt ends at some time after it. Docker drops
// what it cannot write of a log. None of the attempts is to blame: each has its own end, its
// files and the result that it is known to have.
func TestRun_AFullDisk(t *testing.T) {
	t.Parallel()

	const (
		report = "acc=0.9\n"
		wrong  = "ValueError: shapes do not match\n"
		model  = 21 << 20 // more than the headroom
		within = 18 << 20 // free: less than the headroom
	)

	for name, c := range map[string]struct {
		source  string
		before  string        // printed before the disk is full
		free    int64         // for two seconds
		other   bool          // another run of the attempt sees the disk full
		after   time.Duration // from room on the disk to the end
		wrote   int           // then, into the checkpoint
		says    string        // at the end
		exit    int
		want    berth.FailureKind
		message string
	}{
		"before its files":                 {berth.MetricsStdout, "", 0, false, time.Hour, model, report, 0, berth.FailureOK, ""},
		"before its last report":           {berth.MetricsStdout, "acc=0.1\n", 0, false, 2 * time.Second, 0, report, 0, berth.FailureOK, ""},
		"before the worker's end":          {berth.MetricsStdout, "", 0, true, time.Hour, model, report, 0, berth.FailureOK, ""},
		"before it crashed":                {berth.MetricsFile, "", 0, false, time.Hour, model, "", 139, berth.FailureCrashed, ""},
		"before it failed, and it said so": {berth.MetricsFile, noSpaceLine, 0, false, time.Hour, model, wrong, 1, berth.FailureUserError, ""},
		"before it said so, and crashed":   {berth.MetricsFile, "", 0, false, time.Hour, model, noSpaceLine, 139, berth.FailureInfra, ""},
		"just before it crashed":           {berth.MetricsFile, "", 0, false, 10 * time.Second, model, "", 139, berth.FailureInfra, ""},
		"just before it said so":           {berth.MetricsFile, "", 0, false, 5 * time.Second, 0, noSpaceLine, 1, berth.FailureInfra, `the disk of host "a"`},
		"never, and it said so":            {berth.MetricsFile, "", plenty, false, 5 * time.Second, 0, noSpaceLine, 1, berth.FailureUserError, "/dev/shm"},
		"it could not say why it failed":   {berth.MetricsStdout, report, 0, false, time.Second, 0, "", 1, berth.FailureInfra, ""},
		"it failed within the headroom":    {berth.MetricsStdout, report, within, false, time.Second, 0, "", 1, berth.FailureUserError, ""},
		"it ended within the headroom":     {berth.MetricsStdout, report, within, false, time.Second, 0, "", 0, berth.FailureOK, ""},
		"after its last report":            {berth.MetricsStdout, report, 0, false, time.Hour, model, "bye\n", 0, berth.FailureInfra, ""},
		"it reports in a file":             {berth.MetricsFile, "", 0, false, time.Second, 0, "", 0, berth.FailureOK, ""},
	} {
		bubble(t, name, func(t *testing.T) {
			r := setup(t)
			r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = c.source })
			free := r.hasSmallDisk()

			if c.other {
				r.readFor(t, time.Second, func(*fake.Process) {})
				free.Store(c.free)
				r.readFor(t, 2*time.Second, func(*fake.Process) {})
				free.Store(plenty)
			}

			box, ended := r.begin(t)
			appendTo(t, filepath.Join(mountOf(t, box.Launch, mountOut), metricsName), `{"acc": 0.9}`+"\n")
			box.Print(berth.Stdout, c.before)
			time.Sleep(time.Second)

			if !c.other {
				free.Store(c.free)
				time.Sleep(2 * time.Second)
				free.Store(plenty)
			}

			time.Sleep(c.after)

			path := filepath.Join(r.checkpoints(), "model")
			require.NoError(t, os.WriteFile(path, make([]byte, c.wrote), 0o600))

			got := ends(t, box, ended, c.says, c.exit)
			require.Equal(t, c.want, got.Kind, got.Message)
			require.Contains(t, got.Message, c.message)
			require.FileExists(t, path)

			if c.want == berth.FailureOK {
				require.InDelta(t, 0.9, *got.Value, 0)
			}
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
		bubble(t, name, func(t *testing.T) {
			r := setup(t)
			r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = c.source })
			free := r.hasSmallDisk()
			box := r.leave(t, r.order())
			require.NoError(t, os.WriteFile(filepath.Join(mountOf(t, box.Launch, mountOut), metricsName), []byte(`{"acc": 0.9}`+"\n"), 0o600))
			box.Print(berth.Stdout, c.says)
			box.Exit(0)
			free.Store(0)

			got := came(t, r.start(t.Context(), r.order()))
			require.Equal(t, c.want, got.Kind, got.Message)
			require.Equal(t, c.want == berth.FailureOK, got.Value != nil)
			require.Equal(t, c.noted, strings.Contains(got.Message, note), got.Message)
		})
	}
}
