package runtrial

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
)

// script is what a job and its shim report on each tier, and how far a run has read it.
type script struct {
	said [tiers][]berth.MetricPoint
	read [tiers]int
}

// reports is the highest tier that reports a metric, in a curve or in a final record; -1 =
// none from lowest on does.
func (s script) reports(name string, final bool, lowest tier) tier {
	for from := tiers - 1; from >= lowest; from-- {
		if slices.ContainsFunc(s.said[from], func(p berth.MetricPoint) bool { return p.Name == name && p.Final == final }) {
			return from
		}
	}

	return -1
}

// rows are what must be stored in the end, whatever was read first: of each metric the
// highest tier with a curve, none below the one that reports the objective. A final record
// is a row where there is no curve.
func (s script) rows(objective string) table {
	rows, lowest := make(table), max(s.reports(objective, false, 0), 0)

	for _, name := range []string{"acc", "loss", "val_loss"} {
		owner := s.reports(name, false, lowest)
		curve := owner >= 0

		if !curve {
			owner = s.reports(name, true, lowest)
		}

		for from := range tiers {
			for _, p := range s.said[from] {
				if from == owner && p.Name == name && (curve || p.Final) {
					rows[key(p)] = p
				}
			}
		}
	}

	return rows
}

// Whatever Berth reads first, however often the database fails and a worker is killed:
// what is stored is one tier's of each metric, and always the same.
func TestSeries_AutoDependsOnNothingButWhatWasReported(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fresh := func() *series {
			s := newSeries(newThinner(Bounds{}.orDefault(), 0), "acc")
			s.auto, s.levels[ofPrinted].whole = true, false

			return s
		}

		var (
			said     script
			stored   = table{}
			s        = fresh()
			written  storedNames // sources.json
			kept     = s.kept()  // log.json
			keptRead [tiers]int
			all      = []tier{ofDoubtfulEvents, ofDoubtfulPrinted, ofDoubtfulFile, ofBars, ofShim, ofEvents, ofPrinted, ofFile}
			names    = rapid.SampledFrom([]string{"acc", "loss", "val_loss"})
			from     = rapid.SampledFrom(all)
		)

		read := func(from tier) bool {
			at := said.read[from]
			if at == len(said.said[from]) {
				return false
			}

			s.add(from, said.said[from][at])
			said.read[from]++

			return true
		}

		flush := func(fails string) bool {
			b := s.pending()
			written = bothStored(written, b.stored)
			lower := b.stored

			if !stored.store(&b, fails) {
				s.restore(b)

				return false
			}

			written, kept = lower, s.kept()
			for _, from := range append(slices.Clone(belowPrinted), ofPrinted) {
				keptRead[from] = said.read[from]
			}

			tierOf := make(map[string]float64)
			for _, p := range stored {
				known, found := tierOf[p.Name]
				require.True(t, !found || known == math.Floor(p.Value), "%s has rows of two tiers", p.Name)
				tierOf[p.Name] = math.Floor(p.Value)
			}

			return true
		}

		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"say", "say", "read", "read", "flush", "killed"}).Draw(t, "what") {
			case "say":
				p, at := metric(names.Draw(t, "name"), rapid.Int64Range(1, 4).Draw(t, "step"), rapid.Float64Range(0, 0.5).Draw(t, "value")), from.Draw(t, "from")
				p.Value += float64(at)

				if at < ofBars { // "Best acc"
					p.Name = "acc"
				}

				p.Final = at > ofEvents && rapid.IntRange(0, 5).Draw(t, "final") == 0

				if p.Final {
					p.Step = 9
				}

				said.said[at] = append(said.said[at], p)
			case "read":
				read(from.Draw(t, "from"))
			case "flush":
				flush(rapid.SampledFrom([]string{"", "before", "dropped", "dropped, and known", "put"}).Draw(t, "fails"))
			case "killed": // maybe in the middle of a statement
				if rapid.Bool().Draw(t, "in a statement") {
					flush(rapid.SampledFrom([]string{"before", "dropped", "put"}).Draw(t, "fails"))
				}

				s, said.read = fresh(), keptRead
				s.resumeStored(written)
				s.resume(kept, newThinner(Bounds{}.orDefault(), 0))
			}
		}

		for left := true; left; {
			left = false
			for _, from := range rapid.Permutation(all).Draw(t, "order") {
				left = read(from) || left
			}
		}

		s.end()
		require.True(t, flush(""))
		require.Equal(t, said.rows("acc"), stored)
	})
}

// A worker is killed after it stored what the job printed. The job writes its metrics file
// meanwhile, which the next worker reads first.
func TestOutput_AutoAfterAKilledWorker(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) {
		who.Spec.Metrics.Source = berth.MetricsAuto
		who.Spec.Objective = &berth.Objective{Metric: "acc", Goal: berth.GoalMaximize}
	})

	adopt := func() *output {
		run := r.newRun(t)
		run.container.ID = "c"
		require.NoError(t, run.dirs.make(nil))

		return newOutput(run)
	}

	killed := adopt()
	killed.take(chunk(berth.Stdout, "acc=0.5 lr=0.1\n", 1))
	killed.take(chunk(berth.Stdout, "acc=0.6 lr=0.1\n", 2))
	require.NoError(t, killed.write(t.Context()))
	require.Len(t, r.books.metrics(t), 4)

	next := adopt()
	require.NoError(t, os.WriteFile(filepath.Join(next.run.dirs.out, metricsName), []byte(`{"epoch": 3, "acc": 0.9}`+"\n"), 0o600))
	next.file.read(readPerLook)
	require.NoError(t, next.write(t.Context()))

	stored := r.books.metrics(t)
	require.Len(t, stored, 1, "nothing of what was printed")
	require.InDelta(t, 0.9, stored["acc/iii"].Value, 0)

	next.take(chunk(berth.Stdout, "acc=0.5 lr=0.1\n", 1))
	next.take(chunk(berth.Stdout, "acc=0.6 lr=0.1\n", 2))

	rest, _ := next.finish()
	require.Empty(t, rest.points)
	require.Equal(t, berth.MetricsFile, next.metrics.source("acc"))
}

// Numbers that a program prints are no report of it: in a sweep without an objective Keras'
// epochs stay, and each metric is the highest tier's.
func TestOutput_AutoWithoutAnObjective(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source, who.Spec.Objective = berth.MetricsAuto, nil })

	o := newOutput(r.newRun(t))
	o.shim.take([]byte(`{"type": "metric", "step": 1, "metrics": {"acc": 0.5, "loss": 0.7}}`))
	o.take(chunk(berth.Stdout, "batch_size=32\n", 1))
	o.take(chunk(berth.Stdout, "loss: 0.75\n", 2))

	rest, _ := o.finish()

	got := make(map[string]float64)
	for _, p := range rest.points {
		got[p.Name] = p.Value
	}

	require.Equal(t, map[string]float64{"acc": 0.5, "loss": 0.75, "batch_size": 32}, got)
}
