package runtrial

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
	"github.com/berthml/berth/internal/testkit/fake"
)

// judged is a rig whose sweep stops trials early. Trials before this one reported these
// values at the first rung.
func judged(t *testing.T, stop berth.EarlyStop, before ...float64) *rig {
	t.Helper()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.EarlyStop = &stop })

	for _, value := range before {
		r.books.earlier(t, value)
	}

	return r
}

// earlier is what another trial of the sweep reported at the first rung.
func (b *books) earlier(t *testing.T, value float64) {
	t.Helper()

	trial := berth.Trial{ID: uuid.NewString(), SweepID: "sweep", ShapeKey: "shape"}
	b.AddTrial(fake.Trial{Trial: trial, ImageDigest: imageID})

	r := berth.PlacementRequest{
		AttemptID: uuid.NewString(), SweepID: "sweep", TrialID: trial.ID, WorkflowID: "w", Number: 1, Stage: berth.StageMain,
		Purpose: berth.PurposeRun, ShapeKey: "shape", Demand: berth.Demand{MemoryBytes: 1 << 20, CPUMilli: 1},
	}
	_, err := b.RequestPlacement(t.Context(), r)
	require.NoError(t, err)

	_, err = b.Place(t.Context(), map[string]berth.Placement{r.AttemptID: {HostID: hostID, Demand: r.Demand}})
	require.NoError(t, err)

	status, err := b.PlacementStatus(t.Context(), r.AttemptID)
	require.NoError(t, err)

	_, err = b.JudgeRung(t.Context(), r.AttemptID, status.Token, berth.RungReport{Step: 1, Value: &value},
		func([]berth.RungValue) berth.StopDecision { return berth.StopDecision{} })
	require.NoError(t, err)
}

var asha = berth.EarlyStop{Rule: berth.StopASHA, Min: 1, Max: 9, Eta: 3}

func report(epochs ...int) (text string) {
	for _, epoch := range epochs {
		text += fmt.Sprintf("{\"epoch\": %d, \"acc\": 0.%d}\n", epoch, epoch)
	}

	return text
}

func TestRungs_AWorseTrialIsStopped(t *testing.T) {
	t.Parallel()

	r := judged(t, asha, 0.5, 0.6)
	r.docks.exitCode = 75

	box, ended := r.begin(t)
	box.Print(berth.Stdout, report(1))

	got := came(t, ended)
	require.Equal(t, berth.FailurePruned, got.Kind)
	require.Contains(t, got.Message, "stopped early: its acc of 0.1 at step 1 is number 3 of 3; the best one goes on")
	require.Nil(t, got.Value)

	result := r.books.result(t)
	require.Equal(t, berth.FootprintShort, result.Source, "an epoch measures a shape as a short probe does")
	require.InDelta(t, 0.1, r.books.metrics(t)["acc/i"].Value, 0)
}

func TestRungs_AGoodTrialGoesOn(t *testing.T) {
	t.Parallel()

	r := judged(t, asha, 0.05, 0.06)
	box, ended := r.begin(t)
	box.Print(berth.Stdout, report(1, 2, 3))

	require.Eventually(t, func() bool { return len(r.books.Rungs("trial")) == 2 }, patience, tick)

	got := ends(t, box, ended, report(8), 0)
	require.Equal(t, berth.FailureOK, got.Kind)
	require.InDelta(t, 0.8, *got.Value, 0)
	require.NotContains(t, got.Message, "early stopping")
	require.Equal(t, []berth.Rung{
		{Rung: 0, Step: 1, Value: new(0.1), Why: "its acc of 0.1 at step 1 is number 1 of 3; the best one goes on"},
		{Rung: 1, Step: 3, Value: new(0.3), Why: "its acc of 0.3 at step 3 is number 1 of 1; the best one goes on"},
	}, r.books.Rungs("trial"))
}

// A trial that has ended before the stop has its result, and its reports count when others are
// judged.
func TestRungs_AllReportedAtTheEnd(t *testing.T) {
	t.Parallel()

	r := judged(t, asha, 0.5, 0.6)
	box, ended := r.begin(t)

	got := ends(t, box, ended, report(1, 2, 3), 0)
	require.Equal(t, berth.FailureOK, got.Kind)
	require.Contains(t, got.Message, `early stopping had nothing to judge: "acc" was reported at its end only`)
	require.Equal(t, []berth.Rung{
		{Rung: 0, Step: 1, Value: new(0.1), Why: "its attempt had ended"}, {Rung: 1, Step: 3, Value: new(0.3), Why: "its attempt had ended"},
	}, r.books.Rungs("trial"))
}

// The database was away when the trial was worse: it is stopped later.
func TestRungs_ALateStopIsRight(t *testing.T) {
	t.Parallel()

	r := judged(t, asha, 0.5, 0.6)
	r.books.metricErrs = []error{errAway, errAway}

	box, ended := r.begin(t)
	box.Print(berth.Stdout, report(1, 2))

	got := came(t, ended)
	require.Equal(t, berth.FailurePruned, got.Kind)
	require.Contains(t, got.Message, "at step 1")
}

// A worker that dies between the stored answer and the stop leaves a container that the next
// one stops for the same reason.
func TestRungs_ARestartedWorkerStopsIt(t *testing.T) {
	t.Parallel()

	r := judged(t, asha)
	box := r.leave(t, r.order())

	_, err := r.books.JudgeRung(t.Context(), attemptID, token, berth.RungReport{Step: 1, Value: new(0.1)},
		func([]berth.RungValue) berth.StopDecision {
			return berth.StopDecision{Stop: true, Why: "number 3 of 3"}
		})
	require.NoError(t, err)
	box.Print(berth.Stdout, report(1))

	got := came(t, r.start(t.Context(), r.order()))
	require.Equal(t, berth.FailurePruned, got.Kind)
	require.Contains(t, got.Message, "stopped early: number 3 of 3")
}

// A trial that improves no more has its result, whatever its exit code.
func TestRungs_APlateauKeepsItsValue(t *testing.T) {
	t.Parallel()

	r := judged(t, berth.EarlyStop{Rule: berth.StopPatience, Min: 1, Patience: 2})
	box, ended := r.begin(t)
	box.Print(berth.Stdout, "epoch 1 acc=0.5\nepoch 2 acc=0.5\nepoch 3 acc=0.4\n")

	got := came(t, ended)
	require.Equal(t, berth.FailureOK, got.Kind)
	require.InDelta(t, 0.4, *got.Value, 0)
	require.Contains(t, got.Message, "stopped early, and its value stands: its acc has not improved in 2 reports, up to step 3; its best is 0.5")
}

// A trial that reports when it has finished, and then takes its time to save a model, keeps its
// result.
func TestRungs_FinishedTrialsAreNotStopped(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct{ printed, says string }{
		"one report":             {"Test acc: 0.1\n", `"acc" was reported at its end only`},
		"all epochs at once":     {report(1, 2, 3, 4, 5, 6, 7, 8, 9), `"acc" was reported at its end only`},
		"steps are no epochs":    {`{"epoch": 1, "step": 500, "acc": 0.1}` + "\n", `"acc" was first reported at step 500, and early_stop.max is 9`},
		"an epoch after another": {"acc=0.1\nacc=0.2\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := judged(t, asha, 0.5, 0.6)
			box, ended := r.begin(t)
			box.Print(berth.Stdout, c.printed)

			if c.says == "" {
				require.Equal(t, berth.FailurePruned, came(t, ended).Kind)

				return
			}

			for _, later := range []string{"saved", "done"} { // each is stored after what came before was judged
				stored := len(r.books.metrics(t))
				box.Print(berth.Stdout, later+"=1\n")
				require.Eventually(t, func() bool { return len(r.books.metrics(t)) > stored }, patience, tick)
			}

			got := ends(t, box, ended, "", 0)
			require.Equal(t, berth.FailureOK, got.Kind, got.Message)
			require.Contains(t, got.Message, "early stopping had nothing to judge: "+c.says)
		})
	}
}

// NaN stops a trial at once, and it fails: its values cannot work.
func TestRungs_NaN(t *testing.T) {
	t.Parallel()

	r := judged(t, asha)
	box, ended := r.begin(t)
	box.Print(berth.Stdout, "{\"epoch\": 1, \"acc\": NaN}\n")

	got := came(t, ended)
	require.Equal(t, berth.FailureNotFinite, got.Kind)
	require.Contains(t, got.Message, "its acc is NaN or infinite at step 1")
}

// The second attempt of a trial gets the answers of the first, whatever others did since.
func TestRungs_ALaterAttemptIsNotJudgedTwice(t *testing.T) {
	t.Parallel()

	r := judged(t, asha)
	box, ended := r.begin(t)
	box.Print(berth.Stdout, report(1))
	require.Eventually(t, func() bool { return len(r.books.Rungs("trial")) == 1 }, patience, tick)
	require.Equal(t, berth.FailureCrashed, ends(t, box, ended, "", 139).Kind)

	r.books.earlier(t, 0.5)
	require.Equal(t, berth.StopDecision{Why: r.books.Rungs("trial")[0].Why}, r.again(t), "the best then")
}

// again asks for the first rung once more.
func (r *rig) again(t *testing.T) berth.StopDecision {
	t.Helper()

	decision, err := r.books.JudgeRung(t.Context(), attemptID, token, berth.RungReport{Step: 1, Value: new(0.1)},
		func([]berth.RungValue) berth.StopDecision { return berth.StopDecision{Stop: true} })
	require.NoError(t, err)

	return decision
}

// A short probe is not judged.
func TestRungs_NotInAShortProbe(t *testing.T) {
	t.Parallel()

	r := judged(t, asha, 0.5, 0.6)
	order := r.order()
	order.Short = true

	ended := r.start(t.Context(), order)
	box := r.docks.started(t)

	require.Equal(t, berth.FailureOK, ends(t, box, ended, report(1), 0).Kind)
	require.Empty(t, r.books.Rungs("trial"))
}

// An attempt that ended by itself before it was asked to stop was not stopped.
func TestRungs_EndedBeforeTheStop(t *testing.T) {
	t.Parallel()

	r := setup(t)
	asked := noon.Add(time.Minute)
	run := &run{Executor: r.Executor, who: r.who(t), intent: failure.IntentPrune, askedAt: asked, startedAt: noon}

	run.judgeTime(berth.Container{FinishedAt: asked.Add(time.Millisecond)})
	require.Equal(t, failure.IntentPrune, run.intent)

	run.judgeTime(berth.Container{FinishedAt: asked.Add(-time.Millisecond)})
	require.Equal(t, failure.IntentNone, run.intent)
}
