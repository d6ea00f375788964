package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// stagedSetup is a bundle whose sweep has the stages base and features; its trials read n.
func stagedSetup(t *testing.T) *bundle {
	t.Helper()

	b := setup(t)
	b.begin(t, stagedSweep)

	return b
}

var stagedSweep = berth.Spec{
	Name: "s", Command: []string{"run", "{{n}}", "{{m}}"}, Parameters: []berth.Parameter{{Name: "n"}, {Name: "m"}},
	Stages: []berth.Stage{{Name: "base", Command: []string{"base"}}, {Name: "features", Command: []string{"features", "{{n}}"}, Parameters: []string{"n"}}},
}

func stageShape(stage string) berth.Shape {
	return berth.Shape{ImageDigest: "sha256:x", Command: []string{stage}, Stage: stage}
}

// staged makes a trial with these keys of its stages, and returns its request for one of them.
func (b *bundle) staged(t *testing.T, stage string, keys ...string) berth.PlacementRequest {
	t.Helper()

	b.trial++
	trial := berth.NewTrial{
		ID: uuid.NewString(), Params: berth.Assignment{"n": berth.IntValue(int64(b.trial)), "m": berth.IntValue(7)}, Shape: stageShape(berth.StageMain),
		Stages: []berth.StageRun{{Name: "base", Key: keys[0], Shape: stageShape("base")}, {Name: "features", Key: keys[1], Shape: stageShape("features")}},
	}

	_, _, err := b.store.Suggest(t.Context(), b.sweep, b.trial, 1, berth.SearchNeeds{},
		func(berth.Tried) ([]berth.NewTrial, bool, error) { return []berth.NewTrial{trial}, false, nil })
	require.NoError(t, err)

	return berth.PlacementRequest{
		AttemptID: uuid.NewString(), SweepID: b.sweep, TrialID: trial.ID, WorkflowID: "w", Number: 1,
		Stage: stage, Purpose: berth.PurposeRun, ShapeKey: stageShape(stage).Key(), Demand: berth.Demand{MemoryBytes: gib, CPUMilli: 1000},
	}
}

// makes runs a stage of a new trial to its output, and returns its attempt.
func (b *bundle) makes(t *testing.T, stage, key string, keys ...string) berth.PlacementRequest {
	t.Helper()

	r := b.staged(t, stage, keys...)
	_, err := b.store.RequestPlacement(t.Context(), r)
	require.NoError(t, err)

	done := result(r, b.place(t, r).Token, berth.Outcome{Kind: berth.FailureOK, Message: "m", FinishedAt: time.Now()})
	done.StageKey, done.Stage = key, stage
	require.NoError(t, b.store.FinishAttempt(t.Context(), done))

	return r
}

// known are the stages of the newest trial whose output is there.
func (b *bundle) known(t *testing.T) (known []bool) {
	t.Helper()

	states, err := b.store.StageStates(t.Context(), b.sweep, b.trial)
	require.NoError(t, err)

	for _, state := range states {
		known = append(known, state.Known)
	}

	return known
}

// An output is known to all trials with its key, until it is lost.
func TestStages_AreKnownByKey(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	made := b.makes(t, "base", "k1", "k1", "k2")
	require.Equal(t, []bool{true, false}, b.known(t))

	other := *b
	other.begin(t, stagedSweep)
	other.staged(t, "features", "k1", "k3")
	require.Equal(t, []bool{true, false}, other.known(t), "of another sweep, too")

	is, err := b.store.StagesKnown(t.Context(), []string{"k1"})
	require.NoError(t, err)
	require.Equal(t, []string{"k1"}, is)

	other.staged(t, "base", "k9", "k3")
	require.Equal(t, []bool{false, false}, other.known(t))

	for name, lose := range map[string]func(){
		"the host is silent for long": func() { b.exec(t, "UPDATE hosts SET last_seen_at = now() - interval '6 minutes'") },
		"the host is removed":         func() { b.exec(t, "UPDATE hosts SET removed_at = now(), attempts = 0") },
		"its files are removed":       func() { b.exec(t, "UPDATE attempts SET outputs_removed_at = now(), outputs_removed_why = 'x'") },
		"its sweep is deleted": func() {
			b.exec(t, "UPDATE sweeps SET state = 'canceled', finished_at = now(), deleted_at = now() WHERE id = $1", b.sweep)
		},
		"it is forgotten": func() { require.NoError(t, b.store.DropStageOutput(t.Context(), made.AttemptID)) },
	} {
		lose()

		is, err := b.store.StagesKnown(t.Context(), []string{"k1"})
		require.NoError(t, err)
		require.Empty(t, is, name)

		b.exec(t, "UPDATE hosts SET last_seen_at = now(), removed_at = NULL")
		b.exec(t, "UPDATE attempts SET outputs_removed_at = NULL, outputs_removed_why = ''")
		b.exec(t, "UPDATE sweeps SET state = 'pending', finished_at = NULL, deleted_at = NULL")
	}
}

// An attempt sees the values, the shape and the spec of its stage, and what earlier ones wrote.
func TestStages_AnAttemptSeesItsOwn(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	made := b.makes(t, "base", "k1", "k1", "k2")
	r := b.staged(t, "features", "k1", "k2")
	_, err := b.store.RequestPlacement(t.Context(), r)
	require.NoError(t, err)
	b.place(t, r)

	who, err := b.store.Assignee(t.Context(), r.AttemptID)
	require.NoError(t, err)
	require.Equal(t, "k2", who.StageKey)
	require.Equal(t, []berth.StageInput{{Name: "base", Key: "k1", AttemptID: made.AttemptID, HostID: b.host.ID}}, who.Inputs)
	require.Equal(t, []string{"features", "{{n}}"}, who.Spec.Command)
	require.Equal(t, berth.Assignment{"n": berth.IntValue(2)}, who.Trial.Params)

	planned, err := b.store.PlannedTrial(t.Context(), b.sweep, 2, "features")
	require.NoError(t, err)
	require.Equal(t, stageShape("features").Key(), planned.ShapeKey)
	require.Equal(t, []string{"features", "{{n}}"}, planned.Spec.Command)

	planned, err = b.store.PlannedTrial(t.Context(), b.sweep, 2, berth.StageMain)
	require.NoError(t, err)
	require.Equal(t, stageShape(berth.StageMain).Key(), planned.ShapeKey)
	require.Len(t, planned.Params, 2)
}

// A request goes where the outputs are that it reads; one that others wait for says so.
func TestStages_RequestsKnowTheirInputs(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	b.makes(t, "base", "k1", "k1", "k2")

	for stage, want := range map[string]berth.WaitingRequest{
		"base":          {Shared: true},
		"features":      {Shared: true, Inputs: true, InputHosts: []string{b.host.ID}},
		berth.StageMain: {Inputs: true},
	} {
		r := b.staged(t, stage, "k1", "k2")
		_, err := b.store.RequestPlacement(t.Context(), r)
		require.NoError(t, err)

		queue, err := b.store.Queue(t.Context(), 10)
		require.NoError(t, err)

		for _, w := range queue.Waiting {
			if w.AttemptID == r.AttemptID {
				require.Equal(t, want.Inputs, w.Inputs, stage)
				require.ElementsMatch(t, want.InputHosts, w.InputHosts, stage)
				require.Equal(t, want.Shared, w.Shared, stage)
			}
		}
	}
}

// The second run of a stage in a try goes where the first one's output is, and is not the first
// of another trial.
func TestStages_TryRepeats(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	made := b.makes(t, "base", "k1", "k1", "k2")

	again := made
	again.AttemptID, again.Number = uuid.NewString(), 2
	asks := func() (berth.WaitingRequest, berth.Assignee) {
		_, err := b.store.RequestPlacement(t.Context(), again)
		require.NoError(t, err)
		queue, err := b.store.Queue(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, queue.Waiting, 1)

		done := result(again, b.place(t, again).Token, berth.Outcome{Kind: berth.FailureOK, FinishedAt: time.Now()})
		who, err := b.store.Assignee(t.Context(), again.AttemptID)
		require.NoError(t, err)
		require.NoError(t, b.store.FinishAttempt(t.Context(), done))

		return queue.Waiting[0], who
	}
	repeated := func() (repeated []bool) {
		states, err := b.store.StageStates(t.Context(), b.sweep, b.trial)
		require.NoError(t, err)

		for _, state := range states {
			repeated = append(repeated, state.Repeated)
		}

		return repeated
	}

	require.Equal(t, []bool{false, false}, repeated())

	b.exec(t, `UPDATE sweeps SET spec = jsonb_set(spec::jsonb, '{labels}', '{"berth/try": "true"}')::json WHERE id = $1`, b.sweep)

	asked, who := asks()
	require.Equal(t, []string{b.host.ID}, asked.InputHosts)
	require.True(t, asked.Inputs)
	require.Equal(t, made.AttemptID, who.FirstRun)
	require.Equal(t, []bool{true, false}, repeated())
	require.Equal(t, []bool{true, false}, b.known(t))

	b.exec(t, "UPDATE hosts SET last_seen_at = now() - interval '6 minutes'") // the first output is lost: this run is the first
	again.AttemptID, again.Number = uuid.NewString(), 3
	_, who = asks()
	require.Empty(t, who.FirstRun)
}

// Trials of paused sweeps are found by their workflows.
func TestStages_PausedTrials(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	other := *b
	other.begin(t, stagedSweep)
	b.exec(t, "UPDATE sweeps SET state = 'paused' WHERE id = $1", b.sweep)

	mine, theirs := "sweep-"+b.sweep+"/trial-7", "sweep-"+other.sweep+"/trial-7"
	paused, err := b.store.PausedTrials(t.Context(), []string{mine, theirs, ""})
	require.NoError(t, err)
	require.Equal(t, []string{mine}, paused)

	// A trial that waits for its sweep's own limit gets no place either. A running trial does not yield.
	r := other.staged(t, "base", "k1", "k2")
	_, err = b.store.RequestPlacement(t.Context(), r)
	require.NoError(t, err)
	other.place(t, r)
	b.exec(t, "UPDATE sweeps SET max_parallel = 1 WHERE id = $1", other.sweep)

	runs := "sweep-" + other.sweep + "/trial-1"
	paused, err = b.store.PausedTrials(t.Context(), []string{theirs, runs})
	require.NoError(t, err)
	require.Equal(t, []string{theirs}, paused)
}

// The failure of a stage is told to the sweep's other trials, and to no other sweep's.
func TestStages_FailureIsTold(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	r := b.staged(t, "base", "k1", "k2")
	_, err := b.store.SetTrialState(t.Context(), berth.TrialUpdate{
		TrialID: r.TrialID, SweepID: b.sweep, Number: 1, State: berth.TrialFailed, Kind: berth.FailureUserError, Message: "broken", FailedStage: "k1",
	})
	require.NoError(t, err)

	b.staged(t, "base", "k1", "k2")

	states, err := b.store.StageStates(t.Context(), b.sweep, 2)
	require.NoError(t, err)
	require.Equal(t, &berth.TrialUpdate{Number: 1, State: berth.TrialFailed, Kind: berth.FailureUserError, Message: "broken"}, states[0].Failed)
	require.Nil(t, states[1].Failed)

	other := *b
	other.begin(t, stagedSweep)
	other.staged(t, "base", "k1", "k2")

	states, err = b.store.StageStates(t.Context(), other.sweep, 1)
	require.NoError(t, err)
	require.Nil(t, states[0].Failed)
}

// An output that an unfinished trial needs is not removed, by no limit and no person.
func TestStages_OutputsAreHeld(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	b.makes(t, "base", "k1", "k1", "k2")
	b.settle(t, berth.PlacementRequest{TrialID: trialOf(t, b)}, berth.TrialCanceled, berth.FailureCanceled, nil)
	b.setState(t, berth.SweepCanceled)
	b.exec(t, "UPDATE sweeps SET finished_at = now() - interval '1 day' WHERE id = $1", b.sweep)

	other := *b
	other.begin(t, stagedSweep)
	reads := other.staged(t, "features", "k1", "k3")

	require.ErrorContains(t, b.store.DeleteSweep(t.Context(), b.sweep), "trials of another sweep read what its stages wrote")

	oldest, err := b.store.OldestOutputs(t.Context(), b.host.ID, 10)
	require.NoError(t, err)
	require.Empty(t, oldest)

	other.settle(t, reads, berth.TrialCanceled, berth.FailureCanceled, nil)

	oldest, err = b.store.OldestOutputs(t.Context(), b.host.ID, 10)
	require.NoError(t, err)
	require.Len(t, oldest, 1)
	require.NoError(t, b.store.DeleteSweep(t.Context(), b.sweep))
}

// When a stage ran again on another host, what a later one wrote on the first is forgotten: else no
// host has both, and trials wait for ever once the first is back.
func TestStages_RunAgainElsewhere(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	b.makes(t, "base", "k1", "k1", "k2")
	b.makes(t, "features", "k2", "k1", "k2")
	require.Equal(t, []bool{true, true}, b.known(t))

	b.makes(t, "base", "k1", "k1", "k2")
	require.Equal(t, []bool{true, true}, b.known(t), "on the same host both are there")

	second := b.host
	second.ID, second.Name, second.MachineID, second.DataDir = uuid.NewString(), "second", "m2", "/d2"
	require.NoError(t, b.store.RegisterHost(t.Context(), second, "v"))

	first := b.host
	b.exec(t, "UPDATE hosts SET last_seen_at = now() - interval '6 minutes' WHERE id = $1", first.ID)
	b.host = second
	b.makes(t, "base", "k1", "k1", "k2")
	b.exec(t, "UPDATE hosts SET last_seen_at = now()")
	require.Equal(t, []bool{true, false}, b.known(t))

	is, err := b.store.StagesKnown(t.Context(), []string{"k2"})
	require.NoError(t, err)
	require.Empty(t, is)

	// The first host was away for a while and is back: its outputs stay.
	b.makes(t, "features", "k2", "k1", "k2")
	b.host = first
	again := b.makes(t, "base", "k1", "k1", "k2")
	require.Equal(t, []bool{true, true}, b.known(t))
	require.NotEqual(t, again.AttemptID, madeBy(t, b, "k1"))

	// Whatever took the row away, an output of a later stage elsewhere goes.
	b.exec(t, "DELETE FROM stage_outputs WHERE key = 'k1'")
	b.makes(t, "base", "k1", "k1", "k2")
	require.Equal(t, []bool{true, false}, b.known(t))
}

func madeBy(t *testing.T, b *bundle, key string) string {
	t.Helper()

	record, err := b.store.FindStage(t.Context(), key)
	require.NoError(t, err)

	return record.Output.AttemptID
}

// With an output, the outputs of later stages that read it are forgotten.
func TestStages_ForgetsWhatWasMadeOfIt(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	for stage, key := range map[string]string{"base": "k1", "features": "k2"} {
		r := b.makes(t, stage, key, "k1", "k2")
		b.settle(t, r, berth.TrialCanceled, berth.FailureCanceled, nil)
	}

	require.NoError(t, b.store.ForgetStage(t.Context(), "k1"))

	is, err := b.store.StagesKnown(t.Context(), []string{"k1", "k2"})
	require.NoError(t, err)
	require.Empty(t, is)
}

// trialOf is the id of the sweep's first trial.
func trialOf(t *testing.T, b *bundle) string {
	t.Helper()

	trial, err := b.store.GetTrial(t.Context(), b.sweep, 1)
	require.NoError(t, err)

	return trial.ID
}

// Trials that wait for a stage are those without a request and without a container.
func TestStages_BlockedTrials(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	waits := func(r berth.PlacementRequest) {
		_, err := b.store.SetTrialState(t.Context(), berth.TrialUpdate{TrialID: r.TrialID, SweepID: b.sweep, State: berth.TrialWaiting, Message: "waits"})
		require.NoError(t, err)
	}

	runs, asks := b.staged(t, "base", "k1", "k2"), b.staged(t, "base", "k3", "k4")
	for _, r := range []berth.PlacementRequest{runs, asks} {
		waits(r)

		_, err := b.store.RequestPlacement(t.Context(), r)
		require.NoError(t, err)
	}

	b.place(t, runs)
	waits(b.staged(t, "base", "k1", "k2"))
	waits(b.staged(t, "base", "k1", "k5"))

	blocked, err := b.store.BlockedTrials(t.Context(), b.sweep)
	require.NoError(t, err)
	require.Equal(t, 2, blocked)
}

// An output whose files are all in the store outlives its host, and goes to hosts with a store.
func TestStages_StoredOutputsTravel(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	b.makes(t, "base", "k1", "k1", "k2")

	r := b.staged(t, "features", "k1", "k2")
	_, err := b.store.RequestPlacement(t.Context(), r)
	require.NoError(t, err)

	second := b.host
	second.ID, second.Name, second.MachineID, second.DataDir = uuid.NewString(), "second", "m2", "/d2"
	require.NoError(t, b.store.RegisterHost(t.Context(), second, "v"))

	request := func() berth.WaitingRequest {
		for _, w := range b.queue(t).Waiting {
			if w.AttemptID == r.AttemptID {
				return w
			}
		}

		require.Fail(t, "the request waits")

		return berth.WaitingRequest{}
	}

	b.exec(t, "UPDATE attempts SET files_state = 'stored', files_left_out = 1 WHERE stage = 'base'")
	require.NoError(t, b.store.SetHostStores(t.Context(), second.ID, true))
	require.Equal(t, []string{b.host.ID}, request().InputHosts, "one of its files is not in the store")

	b.exec(t, "UPDATE attempts SET files_left_out = 0 WHERE stage = 'base'")
	require.ElementsMatch(t, []string{b.host.ID, second.ID}, request().InputHosts)
	require.Equal(t, []string{second.ID}, request().Lacking, "it has to fetch it")

	for name, lose := range map[string]string{
		"silent":  "UPDATE hosts SET last_seen_at = now() - interval '6 minutes' WHERE name <> 'second'",
		"removed": "UPDATE hosts SET removed_at = now(), attempts = 0 WHERE name <> 'second'",
	} {
		b.exec(t, lose)
		require.Equal(t, []bool{true, false}, b.known(t), name)
	}

	require.Equal(t, []string{second.ID}, request().InputHosts)

	require.NoError(t, b.store.SetHostStores(t.Context(), second.ID, false))
	require.Empty(t, request().InputHosts)
}

// A stage is placed with its own resources.
func TestStages_HaveResourcesOfTheirOwn(t *testing.T) {
	t.Parallel()

	b := setup(t)
	spec := stagedSweep
	spec.Resources = berth.Resources{Device: berth.DeviceGPU, Memory: gib}
	spec.Stages = slices.Clone(spec.Stages)
	spec.Stages[0].Resources = &berth.Resources{Device: berth.DeviceCPU, Memory: 4 * gib, CPUs: 2000}
	b.begin(t, spec)

	for stage, want := range map[string]berth.Resources{"base": *spec.Stages[0].Resources, "features": spec.Resources, berth.StageMain: spec.Resources} {
		r := b.staged(t, stage, "k1", "k2")
		_, err := b.store.RequestPlacement(t.Context(), r)
		require.NoError(t, err)

		for _, w := range b.queue(t).Waiting {
			if w.AttemptID == r.AttemptID {
				require.Equal(t, want, w.Resources, stage)
			}
		}
	}
}

// What a stage reports is not the trial's: no curve, name, exported point or listed value.
func TestStages_MetricsAreNotTheTrials(t *testing.T) {
	t.Parallel()

	b := stagedSetup(t)
	r := b.staged(t, "base", "k1", "k2")
	_, err := b.store.RequestPlacement(t.Context(), r)
	require.NoError(t, err)
	require.NoError(t, b.store.PutMetrics(t.Context(), r.AttemptID, b.place(t, r).Token, []berth.MetricPoint{{Name: "acc", Step: 1, Value: .99, Status: berth.MetricFinite, At: time.Now()}}))
	b.exec(t, "UPDATE trials SET started_at = now(), state = 'running'")

	// shown counts the names, curves, counting points, and listed values with and without a chosen metric.
	shown := func() (counts [5]int) {
		names, err := b.store.MetricNames(t.Context(), b.sweep)
		require.NoError(t, err)

		curves, err := b.store.Curves(t.Context(), b.sweep, "acc", []int{b.trial}, 10)
		require.NoError(t, err)

		points, _, err := b.store.ExportMetrics(t.Context(), b.sweep, berth.MetricKey{}, 10)
		require.NoError(t, err)

		page, err := b.store.PageTrials(t.Context(), b.sweep, berth.TrialQuery{Limit: 10, Sort: berth.Sort{By: berth.SortNumber}, Metrics: []string{"acc"}})
		require.NoError(t, err)
		require.Len(t, page.Rows, 1)

		latest := page.Rows[0].Latest
		require.Equal(t, b.host.ID, latest.HostID, "the place is that of the stage's attempt")

		counts[0], counts[1], counts[4] = len(names), len(curves), len(latest.Metrics)

		for _, point := range points {
			if point.Counts {
				counts[2]++
			}
		}

		if latest.Metric != nil {
			counts[3] = 1
		}

		return counts
	}

	require.Equal(t, [5]int{}, shown())

	b.exec(t, "UPDATE attempts SET stage = 'main'")
	require.Equal(t, [5]int{1, 1, 1, 1, 1}, shown())
}
