package runtrial

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

var errAway = berth.Errorf(berth.KindUnavailable, "the database is away")

// awayFor is a database that fails so many calls.
func awayFor(calls int) []error { return slices.Repeat([]error{errAway}, calls) }

// finish runs the attempt of a job that prints text and ends well.
func (r *rig) finish(t *testing.T, text string) answer {
	t.Helper()

	box, ended := r.begin(t)
	box.Print(berth.Stdout, text)
	box.Exit(0)

	return <-ended
}

func (r *rig) file(name string) string { return filepath.Join(r.dir, "attempts", attemptID, name) }

// losesDocker takes the container and everything Docker knew of it away.
func (r *rig) losesDocker() {
	r.docks.RemoveByForce(r.docks.Name(attemptID))
	r.docks.before = func(berth.Launch) error { return errors.New("Docker must not be asked for anything") }
}

func TestVerdict_IsCommittedWithoutDocker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.books.finishErrs = awayFor(1000)

		began := time.Now()
		got := r.finish(t, "acc=0.5\nacc=0.75\n")
		require.Equal(t, berth.KindUnavailable, berth.KindOf(got.err))
		require.Greater(t, time.Since(began), commitTimeout/2, "it tried for a while")
		require.FileExists(t, r.file(verdictName))
		require.NoFileExists(t, r.file(verdictName+".tmp"))
		require.Len(t, r.docks.boxes(t), 1, "no commit, no removal")

		r.losesDocker()
		r.books.finishErrs = nil
		made := r.docks.made

		order := r.order()
		order.Stop = true

		outcome, err := r.Run(t.Context(), order)
		require.NoError(t, err)
		require.Equal(t, berth.FailureOK, outcome.Kind, "it had ended before it was canceled")
		require.InDelta(t, 0.75, *outcome.Value, 0)
		require.Equal(t, int64(300<<20), outcome.Usage.MemoryPeakBytes)
		require.Equal(t, made, r.docks.made, "nothing is started")
		require.Equal(t, outcome, r.books.result(t).Outcome)
		require.Equal(t, berth.FootprintFull, r.books.result(t).Source)
		require.NoFileExists(t, r.file(verdictName), "it is committed")
		require.NoFileExists(t, r.file(recordName))
	})
}

// The database may be away from the first line to long after the exit.
func TestVerdict_HoldsWhatCouldNotBeStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.seldom()
		r.books.metricErrs, r.books.logErrs = awayFor(10_000), awayFor(10_000)

		box, ended := r.begin(t)
		box.Print(berth.Stdout, "acc=0.5\n")
		time.Sleep(time.Hour)
		box.Print(berth.Stdout, "acc=0.75\nbye\n")
		box.Exit(0)
		require.Equal(t, berth.KindUnavailable, berth.KindOf((<-ended).err))
		require.Empty(t, r.books.metrics(t))
		require.Empty(t, r.books.results, "the result comes last")

		r.losesDocker()
		r.books.metricErrs, r.books.logErrs = awayFor(2), awayFor(2)

		_, err := r.Run(t.Context(), r.order())
		require.NoError(t, err)
		require.Equal(t, "acc=0.5\nacc=0.75\nbye\n", r.books.text(t))
		require.Len(t, r.books.metrics(t), 2)
	})
}

// What the database can never take must not keep the result from it.
func TestVerdict_ResultCountsMoreThanItsOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.books.metricErrs = slices.Repeat([]error{berth.Errorf(berth.KindInternal, "a constraint is violated")}, 1000)

		got := r.finish(t, "acc=1\n")
		require.NoError(t, got.err)
		require.Equal(t, "acc=1\n", r.books.text(t))
		r.books.result(t)
	})
}

func TestVerdict_OfNobodyIsRemoved(t *testing.T) {
	t.Parallel()

	for name, text := range map[string]string{
		"another token":   `{"attempt_id":"` + attemptID + `","token":6,"outcome":{"failure_kind":"user_error"}}`,
		"half a file":     `{"token":7,"outc`,
		"of another kind": `[]`,
	} {
		r := setup(t)
		plantFile(t, r.file(verdictName), []byte(text))

		box, ended := r.begin(t)
		require.NoFileExists(t, r.file(verdictName), name)
		require.Equal(t, berth.FailureOK, ends(t, box, ended, "acc=0.5\n", 0).Kind, "the container was judged")
	}
}

// The heartbeat of an activity that was cut off may never have arrived.
func TestUsage_SurvivesTheWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		box := r.readFor(t, keepUsageEvery+time.Second, func(*fake.Process) {
			time.Sleep(keepUsageEvery + time.Second)
			synctest.Wait()
			require.NotZero(t, r.newRun(t).dirs.record("").Usage, "also for one that will be killed")
		})

		r.meter = func(berth.Container) (Meter, error) { return gauge{berth.MemorySample{WorkingSetBytes: 1 << 20}}, nil }
		order := r.order()
		order.Progress.Usage = berth.Usage{CPU: berth.Duration(time.Hour)} // and half of it may have
		ended := r.start(t.Context(), order)

		time.Sleep(time.Second)
		got := ends(t, box, ended, "acc=1\n", 0)
		require.Equal(t, int64(300<<20), got.Usage.MemoryPeakBytes)
		require.Equal(t, berth.Duration(time.Hour), got.Usage.CPU)
	})
}

// An attempt that was given back has a new token and the container of before:
// what was measured of that one counts, what was of another does not.
func TestRecord_GoesWithTheContainer(t *testing.T) {
	t.Parallel()

	d := dirs{attempt: t.TempDir()}
	k := record{Container: "c", Source: strings.Repeat("x", recordBytes)}

	for samples := range 2 { // a shorter one overwrites the longer one
		data, err := json.Marshal(k)
		require.NoError(t, err)
		require.NoError(t, d.keepRecord(data))
		require.Equal(t, k, d.record("c"))
		require.Equal(t, k, d.record(""), "of an attempt that is over")
		require.Zero(t, d.record("d"))

		info, err := os.Stat(filepath.Join(d.attempt, recordName))
		require.NoError(t, err)
		require.Equal(t, int64(2*recordBytes), info.Size())

		k.Source, k.Usage.Samples = "", samples+1
	}

	require.Zero(t, dirs{attempt: t.TempDir()}.record("c"))
}

// A container starts although the database is away, and is measured meanwhile.
func TestRun_StartsWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.books.runningErr = errAway
		box, ended := r.begin(t)
		time.Sleep(time.Minute)

		r.books.mu.Lock()
		r.books.runningErr = nil
		r.books.mu.Unlock()
		time.Sleep(2 * retryEvery)

		r.books.mu.Lock()
		require.Equal(t, []string{box.Container().ID}, r.books.running)
		r.books.mu.Unlock()

		ends(t, box, ended, "acc=1\n", 0)
	})
}

// The database takes a call and says nothing.
func TestRun_CallThatHangsHoldsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		swallows := true

		r.books.Hook(func(h *fake.LedgerHooks) {
			h.PutMetrics = func(ctx context.Context, _ string, call func(context.Context) error) error {
				if !swallows {
					return call(ctx)
				}

				<-ctx.Done()

				return berth.Errorf(berth.KindUnavailable, "storing metrics: %w", ctx.Err())
			}
		})

		got := r.finish(t, "acc=1\n")
		require.Equal(t, berth.KindUnavailable, berth.KindOf(got.err))

		swallows = false

		_, err := r.Run(t.Context(), r.order())
		require.NoError(t, err)
		require.Len(t, r.books.metrics(t), 1)
	})
}

// mute has Docker give a log half-way, and then fail; nil = it says nothing more.
func (d *docks) mute(fails error) {
	d.muted = func(ctx context.Context, err error) error {
		if err != nil || fails != nil {
			return errors.Join(fails, err)
		}

		<-ctx.Done()

		return ctx.Err()
	}
}

// A job must not be judged by half of what it said.
func TestRun_WaitsForTheRestOfTheLog(t *testing.T) {
	t.Parallel()

	for name, err := range map[string]error{"Docker is away": errAway, "Docker hangs": nil} {
		bubble(t, name, func(t *testing.T) {
			r := setup(t)
			r.docks.mute(err)

			got := r.finish(t, "acc=1\n")
			require.Equal(t, berth.KindUnavailable, berth.KindOf(got.err))
			require.NoFileExists(t, r.file(verdictName))
			require.Empty(t, r.books.results)

			r.docks.muted = nil
			outcome, err := r.Run(t.Context(), r.order())
			require.NoError(t, err)
			require.Equal(t, berth.FailureOK, outcome.Kind)
			require.Equal(t, "acc=1\n", r.books.text(t))
		})
	}
}

// A job that is stopped saves and ends politely, when the worker that stopped it
// is gone. Its exit code says nothing of why.
func TestRun_RecallsWhyItStoppedTheContainer(t *testing.T) {
	t.Parallel()

	for name, end := range map[string]func(box *fake.Process){
		"with a value":        func(box *fake.Process) { box.Print(berth.Stdout, "acc=1\n"); box.Exit(0) },
		"to be resumed":       func(box *fake.Process) { box.Exit(75) },
		"not before the next": func(*fake.Process) {},
		"by a signal":         func(box *fake.Process) { box.Exit(143) },
		"by an error":         func(box *fake.Process) { box.Exit(1) },
	} {
		bubble(t, name, func(t *testing.T) {
			r := setup(t)
			r.books.says(func(who *berth.Assignee) { who.Spec.Limits.MaxTrialDuration = berth.Duration(time.Minute) })
			r.docks.stopErrs = awayFor(1000)

			box, ended := r.begin(t)
			require.ErrorIs(t, (<-ended).err, berth.ErrNotStopped)
			end(box)
			time.Sleep(time.Minute) // until the next worker is there
			r.docks.stopErrs = nil

			got := came(t, r.start(t.Context(), r.order()))
			require.Equal(t, berth.FailureTimedOut, got.Kind)
			require.Nil(t, got.Value)
		})
	}
}

// A job ends in time while nobody watches it, and the worker that comes back
// after the limit finds a container that has long exited.
func TestRun_TimeLimitDoesNotCountForWhatHadEnded(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		short bool
		lasts time.Duration
		exit  int
		want  berth.FailureKind
	}{
		"the kill when the time was up": {lasts: 60 * time.Second, exit: 143, want: berth.FailureTimedOut}, // of the worker that is gone
		"a result":                      {lasts: 30 * time.Second, want: berth.FailureOK},
		"a result after the limit":      {lasts: 90 * time.Second, want: berth.FailureOK}, // nobody stopped it
		"an error":                      {lasts: 30 * time.Second, exit: 1, want: berth.FailureUserError},
		"a short probe that failed":     {short: true, lasts: 30 * time.Second, exit: 1, want: berth.FailureUserError},
		"a short probe that was asked":  {short: true, lasts: 90 * time.Second, exit: 143, want: berth.FailureOK},
	} {
		bubble(t, name, func(t *testing.T) {
			r := setup(t)
			r.books.says(func(who *berth.Assignee) { who.Spec.Limits.MaxTrialDuration = berth.Duration(time.Minute) })

			order := r.order()
			order.Short = c.short
			box := r.leave(t, order)
			time.Sleep(c.lasts)
			box.Print(berth.Stdout, "acc=1\n")
			box.Exit(c.exit)
			time.Sleep(time.Minute)

			r.docks.Hook(func(h *fake.DockerHooks) { // Docker's answer takes its time
				wait := h.Wait
				h.Wait = func(ctx context.Context, id string, call func(context.Context) (berth.Container, error)) (berth.Container, error) {
					time.Sleep(time.Millisecond)

					return wait(ctx, id, call)
				}
			})

			got := came(t, r.start(t.Context(), order))
			require.Equal(t, c.want, got.Kind)

			if c.want == berth.FailureOK && !c.short {
				require.InDelta(t, 1, *got.Value, 0)
			}
		})
	}
}

func TestRun_ContainerThatSomebodyRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		box, ended := r.begin(t)
		time.Sleep(time.Second)

		r.docks.RemoveByForce(box.Container().ID)

		got := came(t, ended)
		require.Equal(t, berth.FailureInfra, got.Kind)
		require.Equal(t, int64(300<<20), got.Usage.MemoryPeakBytes)
		require.NotEmpty(t, r.books.memory(t), "what was measured is stored")
		require.Equal(t, box.Container().ID, r.books.result(t).ContainerID, "it ran, so it is no failed start of the host")
		require.Equal(t, 1, r.docks.made, "it is another attempt that runs it again")
	})
}

func TestRun_NewerRunTakesOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		first := r.start(t.Context(), r.order())
		box := r.docks.started(t)
		require.True(t, r.Busy(attemptID))

		second := r.start(t.Context(), r.order())
		require.ErrorIs(t, (<-first).err, ErrDetached)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, berth.ContainerRunning, box.Container().State)

		ends(t, box, second, "acc=1\n", 0)
		require.Equal(t, 1, r.docks.made)
		require.False(t, r.Busy(attemptID))
	})
}

// Two that end at once must not start anew what one of them has just removed.
func TestRun_TwoAtOnceStartOneContainer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		first := r.start(t.Context(), r.order())
		box := r.docks.started(t)
		box.Print(berth.Stdout, "acc=1\n")
		box.Exit(0)

		second := r.start(t.Context(), r.order())
		a, b := <-first, <-second
		require.NoError(t, b.err)

		if a.err != nil { // it was cut off before it had committed
			require.ErrorIs(t, a.err, ErrDetached)
		}

		require.Equal(t, berth.FailureOK, b.outcome.Kind)
		require.Equal(t, 1, r.docks.made)
		r.books.result(t)
	})
}

func TestClean_RemovesWhatIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)

		left, err := r.Leftovers()
		require.NoError(t, err)
		require.Empty(t, left, "nothing ran here yet")

		r.leaveAfter(t, r.order(), func(*fake.Process) {
			left, err = r.Leftovers()
			require.NoError(t, err)
			require.Equal(t, []string{attemptID}, left)
			require.NoError(t, r.Clean(attemptID))
			require.DirExists(t, r.file("in"), "a run is at it")
		})
		require.NoError(t, r.Clean(attemptID))

		left, err = r.Leftovers()
		require.NoError(t, err)
		require.Empty(t, left)
		require.DirExists(t, r.file("out"), "the artifacts stay")
	})
}
