//go:build integration

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// staged is a sweep of three widths and some rates. The stage base doubles the width, features
// adds one, and the trial prints features and its rate as acc.
func staged(name, rates, more string) string {
	return fmt.Sprintf(`
name: %s
image: berth-examples/python:3.11
environment_variables: {RUN: %q}
datasets: [{name: flowers, target: /data/flowers}]
stages:
  - name: base
    image: berth-examples/python:3.11
    command: [python3, -S, -c, "import os, sys; print(sorted(os.environ.items())); open('/trial/out/base', 'w').write(str(2 * int(sys.argv[1])))", "{{width}}"]
  - name: features
    command: [python3, -S, -c, "import os; n = int(open(os.environ['TRIAL_STAGE_BASE'] + '/base').read()) + 1; %s; open('/trial/out/n', 'w').write(str(n))"]
command: [python3, -S, -c, "import sys; print('acc=' + open('/trial/stages/features/n').read() + sys.argv[1][1:]); open('/trial/stages/base/base')", "{{rate}}"]
shim: false
parameters: [{name: width, values: [1, 2, 3]}, {name: rate, values: [%s], memory: false}]
search: {algorithm: grid}
objective: {metric: acc}
metrics: {source: stdout, pattern: '(?P<name>acc)=(?P<value>[0-9.]+)'}
`, name, name[:3], more, rates) + small
}

// attemptsByStage counts the attempts of a sweep, and requires that each ended well.
func (s *stack) attemptsByStage(id string) map[string]int {
	by := map[string]int{}

	for _, a := range s.attempts(id) {
		require.Equal(s.t, "ok", a.FailureKind, a.Message)
		by[a.Stage]++
	}

	return by
}

// Trials share the stages that they have in common, within a sweep and beyond it.
func TestStages_AreShared(t *testing.T) {
	t.Parallel()

	s := plain(t)
	values := func(id string) (values []string) {
		require.Equal(t, client.SweepStateSucceeded, s.until(id, patience, ended).State)

		for _, trial := range s.trials(id) {
			values = append(values, fmt.Sprint(*trial.Value))
		}

		return values
	}

	first := s.submit(staged("one", ".1, .2, .3, .4", "pass"))
	require.Equal(t, []string{"3.1", "3.2", "3.3", "3.4", "5.1", "5.2", "5.3", "5.4", "7.1", "7.2", "7.3", "7.4"}, values(first))
	require.Equal(t, map[string]int{"base": 3, "features": 3, "main": 12}, s.attemptsByStage(first))

	for _, a := range s.attempts(first) {
		if a.Stage == "base" {
			log := s.log(a.ID)
			require.Contains(t, log, "('TRIAL_STAGE', 'base')")
			require.Contains(t, log, "('TRIAL_PARAM_WIDTH', '")

			for _, hidden := range []string{"TRIAL_ID", "TRIAL_NUMBER", "TRIAL_SWEEP", "TRIAL_ATTEMPT", "TRIAL_PARAM_RATE"} {
				require.NotContains(t, log, hidden)
			}
		}
	}

	second := s.submit(staged("one", ".5, .6", "pass")) // other rates
	require.Equal(t, []string{"3.5", "3.6", "5.5", "5.6", "7.5", "7.6"}, values(second))
	require.Equal(t, map[string]int{"main": 6}, s.attemptsByStage(second))

	report, err := s.api.GetSweepReportWithResponse(t.Context(), second, nil)
	require.NoError(t, err)
	require.Len(t, report.JSON200.Stages, 2)

	for i, name := range []string{"base", "features"} {
		stage := report.JSON200.Stages[i]
		require.Equal(t, name, stage.Name)
		require.Equal(t, 6, stage.Trials)
		require.Zero(t, stage.Runs)
		require.Zero(t, stage.Seconds)
		require.Positive(t, stage.SecondsAlone)
	}

	preview := s.preview(staged("one", ".5, .8", "pass"))
	require.Equal(t, []client.PreviewStage{
		{Name: "base", Runs: 3, Known: 3, DurationSeconds: preview.Stages[0].DurationSeconds},
		{Name: "features", Runs: 3, Known: 3, DurationSeconds: preview.Stages[1].DurationSeconds},
	}, preview.Stages)

	deleted, err := s.api.DeleteSweepWithResponse(t.Context(), first)
	require.NoError(t, err)
	require.Equal(t, 204, deleted.StatusCode(), string(deleted.Body))

	third := s.submit(staged("one", ".7", "pass")) // the outputs went with the first sweep
	require.Equal(t, []string{"3.7", "5.7", "7.7"}, values(third))
	require.Equal(t, map[string]int{"base": 3, "features": 3, "main": 3}, s.attemptsByStage(third))
}

// A stage that fails by its own fault, or writes nothing, fails the trials that need it, once.
func TestStages_FailForAllThatNeedThem(t *testing.T) {
	t.Parallel()

	s := plain(t)

	for name, test := range map[string]struct{ code, says string }{
		"fails":   {"assert n != 5", "AssertionError"},
		"nothing": {"n == 5 and os._exit(0)", "wrote nothing to /trial/out"},
	} {
		id := s.submit(staged(name, ".1, .2, .3", test.code))
		require.Equal(t, client.SweepStateSucceeded, s.until(id, patience, ended).State)

		own, runs := 0, 0

		for _, trial := range s.trials(id) {
			if width, _ := trial.Params["width"].Number(); width != 2 {
				require.Equal(t, client.TrialStateSucceeded, trial.State, trial.Message)

				continue
			}

			require.Equal(t, client.TrialStateFailed, trial.State)
			require.Contains(t, trial.Message, "stage features failed")
			require.Contains(t, trial.Message, test.says)

			if !strings.Contains(trial.Message, "failed in trial") {
				own++
			}
		}

		for _, a := range s.attempts(id) {
			if a.Stage == "features" && a.FailureKind != "ok" {
				runs++
			}
		}

		require.Equal(t, 1, own, "the others are told")
		require.Equal(t, 1, runs)
	}
}

// A host that did not run a stage fetches its output from the store, once for all its trials, and
// does without the host that did.
func TestStages_TravelByTheStore(t *testing.T) {
	t.Parallel()

	c, _ := startStoring(t, "0")
	file := func(rates string) string {
		return fmt.Sprintf(`
name: travels
image: berth-examples/python:3.11
stages:
  - {name: base, command: [python3, -S, -c, "import os; os.mkdir('/trial/out/deep'); open('/trial/out/deep/base', 'w').write('7' * 100000)"]}
command: [python3, -S, -c, "import sys, time; n = len(open('/trial/stages/base/deep/base').read()); time.sleep(3); print('acc=%%d%%s' %% (n, sys.argv[1][1:]))", "{{rate}}"]
shim: false
parameters: [{name: rate, values: [%s], memory: false}]
search: {algorithm: grid}
objective: {metric: acc}
metrics: {source: stdout}
resources: {memory: 400MiB, cpus: 0.25}
probe: {mode: 'off'}
`, rates)
	}

	id := c.submit(file(".1, .2, .3, .4, .5, .6, .7, .8, .91, .92, .93, .94"))
	require.Equal(t, client.SweepStateSucceeded, c.until(id, patience, ended).State)
	require.Equal(t, map[string]int{"base": 1, "main": 12}, c.attemptsByStage(id))

	made, trials := "", map[string]int{}

	for _, a := range c.attempts(id) {
		if a.Stage == "base" {
			made = a.HostID
		} else {
			trials[a.HostID]++
		}
	}

	require.Len(t, trials, 2, "both hosts took some")

	for host := range trials {
		fetched := strings.Count(c.output(c.hostNamed(host).name), "fetched the output of a stage")
		require.Equal(t, host != made, fetched == 1, "%d times on %s", fetched, host)
	}

	lost := c.hostNamed(made)
	require.NoError(t, lost.worker.Process.Kill())
	_ = lost.worker.Wait()

	second := c.submit(file(".95, .96"))
	require.Equal(t, client.SweepStateSucceeded, c.until(second, patience, ended).State)

	for _, trial := range c.trials(second) {
		require.Equal(t, client.TrialStateSucceeded, trial.State, trial.Message)
	}

	for _, a := range c.attempts(second) { // one may have been given to the lost host
		require.Equal(t, "main", a.Stage)
	}
}
