package runtrial

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/metrics"
)

// printedAs is what an attempt of a sweep without a source came to, that printed a text.
// Without an objective o is nil.
func printedAs(t *testing.T, o *berth.Objective, stream, text string) (*output, metrics.Batch) {
	t.Helper()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source, who.Spec.Objective = berth.MetricsAuto, o })

	out := newOutput(r.newRun(t))
	for i, line := range strings.SplitAfter(text, "\n") {
		out.take(chunk(stream, line, i))
	}

	rest, _ := out.finish()

	return out, rest
}

// autoOutput is what an attempt of a sweep without a source says.
func autoOutput(t *testing.T, o berth.Objective) (*output, func() *output) {
	t.Helper()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source, who.Spec.Objective = berth.MetricsAuto, &o })

	adopt := func() *output {
		run := r.newRun(t)
		run.container.ID = "c"
		require.NoError(t, run.dirs.make(nil))

		return newOutput(run)
	}

	return adopt(), adopt
}

// stepsOf counts the points of each metric that are to be stored.
func stepsOf(b metrics.Batch) map[string]int {
	n := make(map[string]int)
	for _, p := range b.Points {
		n[p.Name]++
	}

	return n
}

// The first source that reports the objective counts, in whatever order they are read: the
// metrics file, the shim, what the job prints. Its curve is the objective's.
func TestOutput_TheSourceIsChosenByItsPlace(t *testing.T) {
	t.Parallel()

	const (
		file = `{"epoch": 1, "acc": 0.75}` + "\n"
		bar  = "90/90 ━━━━━━━━━━━━━━━━━━━━ 3s 30ms/step - acc: 0.5 - loss: 0.7\n"
	)

	shim := func(o *output) {
		o.shim.take([]byte(`{"type": "phase", "phase": "training", "at": 1}`))

		for step := 1; step <= 2; step++ {
			o.shim.take(fmt.Appendf(nil, `{"type": "metric", "step": %d, "metrics": {"acc": 0.625, "val_loss": 1}}`, step))
		}
	}
	prints := func(o *output) { o.take(chunk(berth.Stdout, bar, 1)) }

	for name, c := range map[string]struct {
		file, shim bool
		source     string
		want       float64
		steps      map[string]int
	}{
		"only printed":   {false, false, berth.MetricsStdout, 0.5, map[string]int{"acc": 1, "loss": 1}},
		"shim":           {false, true, berth.MetricsShim, 0.625, map[string]int{"acc": 2, "val_loss": 2, "loss": 1}},
		"file":           {true, false, berth.MetricsFile, 0.75, map[string]int{"acc": 1, "loss": 1}},
		"file over shim": {true, true, berth.MetricsFile, 0.75, map[string]int{"acc": 1, "val_loss": 2, "loss": 1}},
	} {
		for _, first := range []string{"printed", "shim"} {
			t.Run(name+", "+first+" first", func(t *testing.T) {
				t.Parallel()

				objective := berth.Objective{Metric: "acc", Goal: berth.GoalMaximize}
				o, _ := autoOutput(t, objective)

				if c.file {
					require.NoError(t, os.WriteFile(filepath.Join(o.run.dirs.out, metricsName), []byte(file), 0o600))
					o.readFiles(readPerLook)
				}

				steps := []func(*output){prints}
				if c.shim && first == "shim" {
					steps = []func(*output){shim, prints}
				} else if c.shim { // a phase is told before the first line of a fit
					steps = []func(*output){func(o *output) { o.metrics.Expect(berth.MetricsShim) }, prints, shim}
				}

				for _, step := range steps {
					step(o)
				}

				o.readFiles(math.MaxInt64)

				rest, _ := o.finish()
				value, _ := o.metrics.Objective(objective)
				require.NotNil(t, value)
				require.InDelta(t, c.want, *value, 0)
				require.Equal(t, c.source, o.metrics.Source("acc"))
				require.Equal(t, c.steps, stepsOf(rest))
				require.Empty(t, rest.Drop)
			})
		}
	}
}

// A script prints its epochs and writes its result to the metrics file, at its end. That is
// the result; a final record leaves the curve to what was printed.
func TestOutput_AResultInTheFileAtTheEnd(t *testing.T) {
	t.Parallel()

	for text, steps := range map[string]map[string]int{
		`{"type": "final", "metrics": {"acc": 0.75}}`: {"acc": 2},
		`{"acc": 0.75}`: {"acc": 1},
	} {
		objective := berth.Objective{Metric: "acc", Goal: berth.GoalMaximize}
		o, _ := autoOutput(t, objective)
		o.take(chunk(berth.Stdout, "acc: 0.25\n", 1))
		o.take(chunk(berth.Stdout, "acc: 0.5\n", 2))
		require.NoError(t, os.WriteFile(filepath.Join(o.run.dirs.out, metricsName), []byte(text+"\n"), 0o600))
		o.readFiles(math.MaxInt64)

		rest, _ := o.finish()
		value, _ := o.metrics.Objective(objective)
		require.NotNil(t, value)
		require.InDelta(t, 0.75, *value, 0)
		require.Equal(t, berth.MetricsFile, o.metrics.Source("acc"))
		require.Equal(t, steps, stepsOf(rest), text)
		require.Equal(t, len(rest.Drop) > 0, steps["acc"] == 1, "the other curve goes")
	}
}

// A sweep that names standard output gets what is printed there, and Keras' epochs at the end
// where nothing was.
func TestOutput_TheShimBehindStdout(t *testing.T) {
	t.Parallel()

	for printed, want := range map[string]string{"acc: 0.5\n": berth.MetricsStdout, "hello\n": berth.MetricsShim} {
		r := setup(t)
		r.books.says(func(who *berth.Assignee) {
			who.Spec.Metrics.Source, who.Spec.Objective = berth.MetricsStdout, &berth.Objective{Metric: "acc"}
		})

		o := newOutput(r.newRun(t))
		o.shim.take([]byte(`{"type": "metric", "step": 1, "metrics": {"acc": 0.75}}`))
		require.Empty(t, o.metrics.Pending(time.Now()).Points)
		o.take(chunk(berth.Stdout, printed, 1))

		rest, _ := o.finish()
		require.Equal(t, want, o.metrics.Source("acc"))
		require.Equal(t, map[string]int{"acc": 1}, stepsOf(rest))
	}
}

// In a sweep without an objective each metric is the first source's that reports it.
func TestOutput_AutoWithoutAnObjective(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source, who.Spec.Objective = berth.MetricsAuto, nil })

	o := newOutput(r.newRun(t))
	o.shim.take([]byte(`{"type": "metric", "step": 1, "metrics": {"acc": 0.5, "loss": 0.75}}`))
	o.take(chunk(berth.Stdout, "batch_size=32\nloss: 0.25\n", 1))

	rest, _ := o.finish()

	got := make(map[string]float64)
	for _, p := range rest.Points {
		got[p.Name] = p.Value
	}

	require.Equal(t, map[string]float64{"acc": 0.5, "loss": 0.75, "batch_size": 32}, got)
}

// A worker is killed after it stored what the job printed. The job writes its metrics file
// meanwhile, which the next worker reads first: the choice stands, and no row of another
// source is among these.
func TestOutput_TheChoiceOutlivesAKilledWorker(t *testing.T) {
	t.Parallel()

	killed, adopt := autoOutput(t, berth.Objective{Metric: "acc", Goal: berth.GoalMaximize})
	killed.take(chunk(berth.Stdout, "acc=0.5\n", 1))
	require.NoError(t, killed.write(t.Context()))

	next := adopt()
	require.NoError(t, os.WriteFile(filepath.Join(next.run.dirs.out, metricsName), []byte(`{"epoch": 3, "loss": 0.9}`+"\n"), 0o600))
	next.readFiles(readPerLook)
	next.take(chunk(berth.Stdout, "acc=0.5\n", 1))
	next.take(chunk(berth.Stdout, "acc=0.75\n", 2))
	require.Equal(t, map[string]int{"acc": 2}, stepsOf(next.metrics.Pending(time.Now())))

	rest, _ := next.finish()
	require.Equal(t, map[string]int{"loss": 1}, stepsOf(rest))
	require.Empty(t, rest.Drop)
}

// Docker has dropped the start of the log when the next worker reads it: steps go on, and no
// stored row is lost.
func TestOutput_GoesOnWhereTheStartOfTheLogIsGone(t *testing.T) {
	t.Parallel()

	killed, adopt := autoOutput(t, berth.Objective{Metric: "acc", Goal: berth.GoalMaximize})
	for i, line := range []string{"acc=0.25\n", "acc=0.5\n"} {
		killed.take(chunk(berth.Stdout, line, i))
	}

	require.NoError(t, killed.write(t.Context()))
	killed.keep()

	next := adopt()
	next.take(chunk(berth.Stdout, "acc=0.5\n", 1))
	next.take(chunk(berth.Stdout, "acc=0.75\n", 2))

	rest, _ := next.finish()
	require.Len(t, rest.Points, 1)
	require.Equal(t, int64(3), rest.Points[0].Step)
	require.Contains(t, strings.Join(next.notes(), "\n"), "Docker dropped a part of its log")
}

const (
	theLast = berth.StrategyLast
	theBest = berth.StrategyBest
	theMean = berth.StrategyMean
)

const hub = "hf_Tp0KenValue42"

// docs/job-contract.md: "A repeated name and step replaces the earlier one."
func TestSeries_WhatWasReplacedDoesNotCount(t *testing.T) {
	t.Parallel()

	const running = `{"epoch": 1, "batch": 1, "acc": 1.0}` + "\n" + `{"epoch": 1, "batch": 2, "acc": 0.7}` + "\n" + `{"epoch": 1, "batch": 3, "acc": 0.8}` + "\n"

	for strategy, want := range map[berth.Strategy]float64{theBest: 0.8, theMean: 0.8} {
		o := berth.Objective{Metric: "acc", Strategy: strategy, Goal: berth.GoalMaximize}
		out, _ := printedAs(t, &o, berth.Stdout, running)
		value, _ := out.metrics.Objective(o)
		require.NotNil(t, value)
		require.InDelta(t, want, *value, 1e-9, strategy)
	}
}
