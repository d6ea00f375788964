package runtrial

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

// Docker keeps the newest 30 MiB of a log. A run that adopts the container reads it again from
// its start. Where that is gone all rows stay, and the result is of what is there.
func TestRun_GoesOnFromWhatWasReadOfTheLog(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		objective berth.Objective
		rotate    func(box *fake.Process)
		want      float64
		lost      bool
	}{
		"its start is gone": {berth.Objective{Strategy: berth.StrategyMean}, (*fake.Process).Rotate, 0.5, true},
		"nothing was lost":  {berth.Objective{Strategy: berth.StrategyMean}, func(*fake.Process) {}, 0.6, false},
	} {
		bubble(t, name, func(t *testing.T) {
			r := setup(t)
			r.books.says(func(who *berth.Assignee) {
				o := c.objective
				o.Metric, o.Goal = "acc", berth.GoalMaximize
				who.Spec.Objective = &o
			})

			box := r.readFor(t, time.Second, func(box *fake.Process) {
				box.Print(berth.Stdout, "acc=0.9\nloss=nan\n")
				box.Print(berth.Stderr, "a warning\n")
			})
			c.rotate(box)
			box = r.readFor(t, time.Second, func(box *fake.Process) { box.Print(berth.Stdout, "acc=0.4\n") })
			c.rotate(box)
			got := ends(t, box, r.start(t.Context(), r.order()), "acc=0.5\n", 0)
			require.Equal(t, berth.FailureOK, got.Kind)
			require.InDelta(t, c.want, *got.Value, 1e-9)

			text := r.books.text(t)
			require.Contains(t, text, "acc=0.9\nloss=nan\na warning\nacc=0.4\nacc=0.5\n", "nothing twice, and nothing left out")

			stored := r.books.metrics(t)
			require.InDelta(t, 0.9, stored["acc/i"].Value, 0, "the first step stays what it was")
			require.InDelta(t, 0.4, stored["acc/ii"].Value, 0)
			require.InDelta(t, 0.5, stored["acc/iii"].Value, 0)
			require.Equal(t, berth.MetricNaN, stored["loss/i"].Status)

			if c.lost {
				require.Contains(t, got.Message, "Docker dropped a part of its log")
			} else {
				require.NotContains(t, got.Message, "dropped")
			}
		})
	}
}

// What was not stored yet is read again: it is not counted as read.
func TestRun_ReadsAgainWhatWasNotStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.books.says(func(who *berth.Assignee) { who.Spec.Objective.Strategy = berth.StrategyMean })

		away := awayFor(1000)
		r.books.logErrs = away
		box := r.readFor(t, 10*time.Second, func(box *fake.Process) { box.Print(berth.Stdout, "acc=0.9\n") })
		r.books.logErrs = nil
		r.books.metricErrs = away
		box = r.readFor(t, 10*time.Second, func(*fake.Process) { box.Print(berth.Stdout, "acc=0.8\n") })
		r.books.metricErrs = nil

		for i := range 5 {
			box.Print(berth.Stdout, "acc=0."+strconv.Itoa(i)+"\n")
		}

		got := ends(t, box, r.start(t.Context(), r.order()), "", 0)
		require.InDelta(t, (0.9+0.8+0.1+0.2+0.3+0.4)/7, *got.Value, 1e-9)
		require.Len(t, r.books.metrics(t), 7)
		require.Equal(t, "acc=0.9\nacc=0.8\nacc=0.0\nacc=0.1\nacc=0.2\nacc=0.3\nacc=0.4\n", r.books.text(t))
	})
}

// Docker needs minutes for what a chatty job printed. What it hands out a second
// time is progress, too: else no run would ever come to the end of the log.
func TestRun_ReadsALogThatDockerIsSlowWith(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.docks.perChunk = 100 * time.Millisecond

		box, ended := r.begin(t)

		for i := range 500 { // at once, so the second read begins with the first line
			box.Print(berth.Stdout, "acc="+strconv.Itoa(i)+"\n")
		}

		got := ends(t, box, ended, "", 0)
		require.Equal(t, berth.FailureOK, got.Kind)
		require.InDelta(t, 499, *got.Value, 0)
		require.Len(t, r.books.metrics(t), 500, "and none counts twice")
	})
}

// One stream is silent: the other one is not read again from its start.
func TestRun_ReadsOnlyTheEndOfALogAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.config.SampleEvery = time.Second
		box, ended := r.begin(t)
		box.Print(berth.Stderr, "a warning\n")

		for range 100 {
			time.Sleep(time.Minute)
			box.Print(berth.Stdout, "acc=1\n")
		}

		box.Exit(0)
		require.NoError(t, (<-ended).err)

		again := r.docks.readFrom[len(r.docks.readFrom)-1]
		require.WithinDuration(t, time.Now(), again.Since(time.Now()), time.Minute)
	})
}

// A database that was restored lacks what it had of the log and the curve. The
// run that adopts the container stores it again.
func TestRun_ReadsAgainWhatARestoredDatabaseForgot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		box := r.readFor(t, time.Second, func(box *fake.Process) { box.Print(berth.Stdout, "acc=0.9\n") })
		r.books.Ledger = newBooks(t).Ledger
		box.Print(berth.Stdout, "acc=0.5\n")
		box.Exit(0)

		got := came(t, r.start(t.Context(), r.order()))
		require.Equal(t, "acc=0.9\nacc=0.5\n", r.books.text(t))
		require.Len(t, r.books.metrics(t), 2)
		require.InDelta(t, 0.5, *got.Value, 0)
	})
}
