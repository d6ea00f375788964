package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/simulate"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

const pastFile = `name: digits
image: digits:1
command: [train, "--lr={{lr}}", "--opt={{opt}}", "--epochs={{epochs}}"]
parameters:
  - {name: lr, min: 0.001, max: 0.1, log: true}
  - {name: opt, values: [adam, sgd]}
  - {name: epochs, type: fixed, value: 3}
objective: {metric: acc, goal: maximize}
early_stop: {rule: asha, max: 3, startup: 1}
limits: {max_trials: 20}
`

// pastTables are 30 trials of 3 epochs, the best in the middle, one that failed, and their metrics.
func pastTables(t *testing.T) (file, trials, metrics string) {
	t.Helper()

	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))

		return path
	}

	table := "number,state,value,params.lr,params.opt,params.epochs,seconds\n1,failed,,0.01,adam,3,9\n"
	points := "trial,attempt,counts,name,step,value,at\n"

	for i := range 30 {
		value := 1 - float64((i-15)*(i-15))/300
		table += fmt.Sprintf("%d,succeeded,%g,%g,%s,3,30\n", i+2, value, 0.001*float64(1+3*i), []string{"adam", "sgd"}[i%2])

		for epoch := 1; epoch <= 3; epoch++ {
			points += fmt.Sprintf("%d,1,true,acc,%d,%g,2026-11-28T12:00:%02dZ\n%[1]d,1,true,loss,%[2]d,9,2026-11-28T12:00:00Z\n", i+2, epoch, value*float64(epoch)/3, 5*epoch)
		}
	}

	return write("sweep.yaml", pastFile), write("trials.csv", table), write("metrics.csv", points)
}

func TestReadPast(t *testing.T) {
	t.Parallel()

	_, trials, metrics := pastTables(t)
	sweep, err := spec.Decode([]byte(pastFile), "application/yaml")
	require.NoError(t, err)

	past, err := readPast(sweep, trials, metrics)
	require.NoError(t, err)
	require.Len(t, past.trials, 30, "one failed")
	require.Equal(t, 31, past.rows)

	value := 1 - 225.0/300
	require.Equal(t, pastTrial{
		berth.Assignment{"lr": berth.FloatValue(0.001), "opt": berth.StringValue("adam")},
		simulate.Run{Values: []float64{value / 3, value * 2 / 3, value}, Seconds: []float64{20, 5, 5}, Steps: []int64{1, 2, 3}, End: &value},
	}, past.trials[0], "the start belongs to the first epoch")

	does := past.untried()
	near := berth.Assignment{"lr": berth.FloatValue(0.0011), "opt": berth.StringValue("adam")}
	first, _, _ := does(near)
	require.Equal(t, past.trials[0].values, first)

	second, _, _ := does(near)
	require.Equal(t, past.trials[2].values, second, "each trial once")

	past, err = readPast(sweep, trials, "")
	require.NoError(t, err)
	require.Equal(t, simulate.Run{Values: []float64{value}, Seconds: []float64{30}}, past.trials[0].run)
}

func TestSimulate(t *testing.T) {
	t.Parallel()

	file, trials, metrics := pastTables(t)
	s := simulation{file: file, trials: trials, metrics: metrics, algorithms: []string{"random", "gp"}, atOnce: 2, seeds: 5}

	sweep, does, err := s.world(&cobra.Command{})
	require.NoError(t, err)

	rows, err := s.compare(sweep, does)
	require.NoError(t, err)
	require.Len(t, rows, 4, "each with and without the file's rule")
	require.InDelta(t, 600, rows[0].Seconds, 0, "20 trials of 30 s")
	require.InDelta(t, 300, rows[0].Wall, 0)
	require.Less(t, rows[1].Seconds, rows[0].Seconds)
	require.Positive(t, rows[1].Stopped)
	require.InDelta(t, 1, rows[2].Best[1], 0.02, "near the best there is")
	require.LessOrEqual(t, *rows[0].Reached, 1.0)

	text := simulationTable(rows)
	require.Equal(t, []string{"gp", "asha"}, text.rows[3][:2])
}

func TestSimulate_Refuses(t *testing.T) {
	t.Parallel()

	file, trials, metrics := pastTables(t)
	aimless := filepath.Join(t.TempDir(), "aimless.yaml")
	require.NoError(t, os.WriteFile(aimless, []byte(strings.Split(pastFile, "objective")[0]+"limits: {max_trials: 9}\nsearch: {algorithm: random}\n"), 0o600))

	bounded := filepath.Join(t.TempDir(), "bounded.yaml")
	require.NoError(t, os.WriteFile(bounded, []byte(strings.Replace(pastFile, "early_stop: {rule: asha, max: 3, startup: 1}", "constraints: [{metric: ms, max: 9}]", 1)), 0o600))

	for name, tt := range map[string]struct {
		s    simulation
		says string
	}{
		"nothing":         {simulation{}, "name a sweep file and its past trials"},
		"unknown problem": {simulation{problem: "rosenbrock"}, "there are branin, sphere5, hartmann6, mixed4 and branches"},
		"no objective":    {simulation{file: aimless, trials: trials}, "has no objective"},
		"a constraint":    {simulation{file: bounded, trials: trials}, "has several objectives or constraints"},
		"another table":   {simulation{file: file, trials: metrics}, `has no column "number"`},
		"no trials":       {simulation{file: file, trials: file}, `has no column "number"`},
		"absent":          {simulation{file: file, trials: "absent.csv"}, "absent.csv"},
	} {
		_, _, err := tt.s.world(&cobra.Command{})
		require.ErrorContains(t, err, tt.says, name)
	}

	s := simulation{file: file, trials: trials, algorithms: []string{"grid"}, atOnce: 1, seeds: 1}
	sweep, does, err := s.world(&cobra.Command{})
	require.NoError(t, err)

	_, err = s.compare(sweep, does)
	require.ErrorContains(t, err, "--algorithm grid cannot be simulated")

	s.algorithms, s.seeds = []string{"random"}, 0
	_, err = s.compare(sweep, does)
	require.ErrorContains(t, err, "--seeds 0, --at-once 1, --max-trials 0: the first two are at least 1")
}
