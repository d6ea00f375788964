package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/simulate"
)

// Four runs of three steps. The third is the best in the end, and the worst at first.
const tiny = `task,run,step,value,seconds
a,one,1,5,10
a,one,2,5,10
a,one,3,4,10
a,two,1,4,20
a,two,2,3,20
a,two,3,3,20
a,three,1,6,10
a,three,2,4,10
a,three,3,1,10
a,four,1,3,10
a,four,2,2,10
a,four,3,2,10
`

func tinyRuns(t *testing.T) []simulate.Run {
	t.Helper()

	tasks, err := parseTasks(strings.NewReader(tiny))
	require.NoError(t, err)
	require.Len(t, tasks, 1)

	return tasks[0].runs
}

func TestParseTasks(t *testing.T) {
	t.Parallel()

	tasks, err := parseTasks(strings.NewReader("task,run,step,value,seconds\na,x,1,2,3\na,x,2,1,4\nb,x,1,5,6\nb,y,1,7,8\n"))
	require.NoError(t, err)
	require.Equal(t, []task{
		{name: "a", runs: []simulate.Run{{Values: []float64{2, 1}, Seconds: []float64{3, 4}}}},
		{name: "b", runs: []simulate.Run{{Values: []float64{5}, Seconds: []float64{6}}, {Values: []float64{7}, Seconds: []float64{8}}}},
	}, tasks)

	for text, want := range map[string]string{
		"":                        "reading header: EOF",
		"h,h,h,h,h\na,x,2,1,1\n":  `task "a", run "x": step "2" follows, not 1`,
		"h,h,h,h,h\na,x,1,no,1\n": `task "a", run "x": step 1 has "no", which is no finite number`,
		"h,h,h,h,h\na,x,1,1,inf":  `task "a", run "x": step 1 has "inf", which is no finite number`,
		"h,h,h,h,h\na,x,1,1\n":    "record on line 2: wrong number of fields",
	} {
		_, err := parseTasks(strings.NewReader(text))
		require.EqualError(t, err, want)
	}
}

func TestSimulate(t *testing.T) {
	t.Parallel()

	median := berth.EarlyStop{Rule: berth.StopMedian, Min: length / 3, Max: length, Startup: 1, Interval: length / 3}

	for name, c := range map[string]struct {
		q    int
		stop berth.EarlyStop
		want outcome
	}{
		"none, one at once": {1, never, outcome{seconds: 150, wall: 150, best: 1}},
		// One and two run in 0-30 and 0-60, three in 30-60, four in 60-90.
		"none, two at once": {2, never, outcome{seconds: 150, wall: 90, best: 1}},
		"none, all at once": {9, never, outcome{seconds: 150, wall: 60, best: 1}},
		// The rungs are the first step (1/9) and the same (1/3). Three is third of three and
		// stops after 10 s; each of the others is the best up to then.
		"asha, one at once": {1, asha(3, 9, 1).stop, outcome{seconds: 130, wall: 130, best: 2}},
		// As before, but four begins at 40 and ends at 70.
		"asha, two at once": {2, asha(3, 9, 1).stop, outcome{seconds: 130, wall: 70, best: 2}},
		// One, three and four come to the rung at 10 s, in the order of their starts, and two at
		// 20 s: four is the best of three, and two is the second of four.
		"asha, all at once": {4, asha(3, 9, 1).stop, outcome{seconds: 30 + 20 + 10 + 30, wall: 30, best: 2}},
		// Three is second of three at its second step.
		"asha, rung at 2/3": {1, berth.EarlyStop{Rule: berth.StopASHA, Min: 2 * length / 3, Max: length, Eta: 3}, outcome{seconds: 140, wall: 140, best: 2}},
		// Two is not worse than one; three is, with 6 against the median of 5 and 4.
		"median, one at once": {1, median, outcome{seconds: 130, wall: 130, best: 2}},
		// When three comes to its first step, at 40, only one has succeeded: it is worse than 5.
		"median, two at once": {2, median, outcome{seconds: 130, wall: 70, best: 2}},
		// No trial has succeeded before 30, when one, three and four end; two has its second step
		// at 40, with 3 against 5, 4 and 2.
		"median, all at once": {4, median, outcome{seconds: 150, wall: 60, best: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, sweep(tinyRuns(t), c.q, evenly, c.stop))
		})
	}
}

// A rung is reached when at least its share of the run is done.
func TestScale(t *testing.T) {
	t.Parallel()

	first := func(steps scale, n int, share int64) int {
		for i := 1; ; i++ {
			if steps(i, n) >= length/share {
				return i
			}
		}
	}

	for n, want := range map[int][2]int{6: {1, 2}, 7: {1, 3}, 8: {1, 3}, 9: {1, 3}, 10: {2, 4}, 18: {2, 6}, 20: {3, 7}} {
		require.Equal(t, want, [2]int{first(evenly, n, 9), first(evenly, n, 3)}, n)
	}

	require.Equal(t, 14, first(bySize, 16, 2), "half the data is two steps before the end")
	require.Equal(t, 12, first(bySize, 16, 4))
	require.EqualValues(t, length, bySize(16, 16))
	require.EqualValues(t, length, evenly(16, 16))
}

func TestDraw(t *testing.T) {
	t.Parallel()

	from := task{runs: tinyRuns(t)}
	three := study{trials: 3}.draw(from, 1, 2)
	require.Len(t, three, 3)
	require.Equal(t, three, study{trials: 3}.draw(from, 1, 2), "the same for each rule")
	require.NotEqual(t, three, study{trials: 3}.draw(from, 2, 2))
	require.ElementsMatch(t, from.runs, study{}.draw(from, 1, 2), "each run once")
}

func TestTally(t *testing.T) {
	t.Parallel()

	var sum tally
	sum.add(outcome{seconds: 100, wall: 50, best: 1}, outcome{seconds: 20, wall: 20, best: 1})
	sum.add(outcome{seconds: 100, wall: 50, best: 1}, outcome{seconds: 40, wall: 30, best: 1.5})
	require.Equal(t, "2 | 0.300 | 50.0 % | 0.2500 | 0.5000 | 0.500", sum.String())
	require.EqualError(t, sum.check(),
		"asha with eta 3 at 8 at once on openclip: 0.300 of the seconds (at most 0.32), best lost in 50.0 % of sweeps (at most 8 %)")
	require.NoError(t, (&tally{sweeps: 100, seconds: 32, lost: 8}).check())
	require.Error(t, (&tally{sweeps: 100, seconds: 33}).check())
	require.Error(t, (&tally{}).check(), "nothing was measured")
}

func TestCheckGolden(t *testing.T) {
	t.Parallel()
	require.NoError(t, checkGolden())
}

func TestRun(t *testing.T) {
	t.Parallel()

	data := t.TempDir()
	require.ErrorContains(t, run(data, &strings.Builder{}), "openclip.csv")

	for _, name := range []string{"openclip.csv", "lcdb.csv"} {
		require.NoError(t, os.WriteFile(filepath.Join(data, name), []byte(tiny), 0o600))
	}

	var out strings.Builder
	require.Error(t, run(data, &out), "four runs do not meet the gate")
	require.Contains(t, out.String(), "golden values: yes")
	require.Equal(t, 2+2*len(rules)+2*len(rules), strings.Count(out.String(), "\n| ")+strings.Count(out.String(), "\n|---"))
}
