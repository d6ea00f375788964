package runtrial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

func TestRun_StartToFinish(t *testing.T) {
	t.Parallel()

	r := setup(t)
	beats := make(chan berth.Progress, 1000)
	order := r.order()
	order.Beat = func(b berth.Progress) {
		select {
		case beats <- b:
		default:
		}
	}

	ended := r.start(t.Context(), order)
	box := r.docks.started(t)
	box.Print(berth.Stdout, "epoch 1 acc=0.5\n")
	require.Equal(t, box.Container().ID, (<-beats).ContainerID)
	box.Print(berth.Stdout, "epoch 2 acc=0.75\n")
	require.Eventually(t, func() bool { return (<-beats).Usage.MemoryPeakBytes == 300<<20 }, 10*time.Second, time.Millisecond)
	got := ends(t, box, ended, "", 0)
	require.Equal(t, berth.FailureOK, got.Kind)
	require.InDelta(t, 0.75, *got.Value, 0)
	require.Zero(t, *got.ExitCode)
	require.Positive(t, got.Usage.Samples)
	require.Equal(t, berth.Duration(time.Second), got.Usage.CPU)
	require.False(t, got.Usage.CPUContended, "half of the host was idle")

	result := r.books.result(t)
	require.Equal(t, got, result.Outcome)
	require.Equal(t, token, result.Token)
	require.Equal(t, "shape", result.ShapeKey)
	require.Equal(t, berth.FootprintFull, result.Source)
	require.Equal(t, r.who(t).Attempt.Demand, result.Reserved)
	require.NotEmpty(t, result.Proof)

	require.Equal(t, "epoch 1 acc=0.5\nepoch 2 acc=0.75\n", r.books.text(t))
	require.Len(t, r.books.metrics(t), 2)
	require.Equal(t, []string{box.Container().ID}, r.books.running)
	require.Empty(t, r.docks.boxes(t), "the container is removed once the result is committed")
	require.NoDirExists(t, filepath.Join(r.dir, "attempts", attemptID, "in"))
	require.DirExists(t, filepath.Join(r.dir, "attempts", attemptID, "out"), "the artifacts stay")

	again, err := r.Run(t.Context(), r.order())
	require.NoError(t, err)
	require.Equal(t, got.Kind, again.Kind)
	require.Equal(t, got.Value, again.Value)
	require.Equal(t, 1, r.docks.made)
	require.Len(t, r.books.results, 1)
}

func TestRun_DetachesAndAdopts(t *testing.T) {
	t.Parallel()

	r := setup(t)
	box := r.leaveAfter(t, r.order(), func(box *fake.Process) {
		box.Print(berth.Stdout, "acc=0.25\nx=1\n")
		require.Eventually(t, func() bool { return len(r.books.pieces(t)) > 0 }, patience, tick)
	})
	require.Empty(t, r.docks.called(), "the container goes on")
	require.Equal(t, berth.ContainerRunning, box.Container().State)

	order := r.order()
	order.Progress.Usage = berth.Usage{MemoryPeakBytes: 900 << 20, Samples: 5}

	got := ends(t, box, r.start(t.Context(), order), "acc=0.5\n", 0)
	require.InDelta(t, 0.5, *got.Value, 0)
	require.Equal(t, int64(900<<20), got.Usage.MemoryPeakBytes, "what was measured before counts")
	require.Equal(t, 1, r.docks.made)
	require.Equal(t, "acc=0.25\nx=1\nacc=0.5\n", r.books.text(t), "nothing twice")
	require.Len(t, r.books.metrics(t), 3)
}

func TestRun_TheLaunchIsTheSameAgain(t *testing.T) {
	t.Parallel()

	r := setup(t)
	first, second := r.launch(t), r.launch(t)
	require.Equal(t, first, second)

	require.NoError(t, r.books.AttemptRunning(t.Context(), attemptID, token, "c", time.Now()))
	require.Equal(t, first, r.launch(t), "nor does its own start change it")

	r.writeCheckpoint(t, "of-this-very-attempt")
	require.Equal(t, first, r.launch(t), "nor what it writes")

	r.books.says(func(who *berth.Assignee) {
		who.Spec.EnvironmentVariables = map[string]string{"INJECTED_BY_ANOTHER_VERSION": "1"}
	})
	require.Equal(t, first, r.launch(t), "nor an upgrade of Berth")
}

// launch is what the attempt would start now.
func (r *rig) launch(t *testing.T) berth.Launch {
	t.Helper()

	return r.launchOf(t, berth.Order{AttemptID: attemptID})
}

// launchOf is what an order would start now.
func (r *rig) launchOf(t *testing.T, order berth.Order) berth.Launch {
	t.Helper()

	who, err := r.books.Assignee(t.Context(), order.AttemptID)
	require.NoError(t, err)

	order.Token = who.Attempt.Token

	l, err := r.open(order, who).prepare(t.Context())
	require.NoError(t, err)

	return l
}

func TestRun_StopsOnTheOrdersCause(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.docks.stopErrs = []error{berth.Errorf(berth.KindUnavailable, "Docker restarts")}
	r.docks.onStop = func(b *fake.Process) { b.Print(berth.Stdout, "saved\n") }
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := r.start(ctx, r.order())
	box := r.docks.started(t)
	box.Print(berth.Stdout, "acc=0.9\n")
	cancel(berth.ErrStop)

	got := came(t, ended)
	require.Equal(t, berth.FailureCanceled, got.Kind)
	require.Nil(t, got.Value)
	require.Equal(t, berth.FailureCanceled, r.books.result(t).Outcome.Kind)
	require.Equal(t, "acc=0.9\nsaved\n", r.books.text(t), "what it says while it stops is kept")
	require.Empty(t, r.docks.boxes(t))
}

// A container that cannot start, and a launch that is wrong in itself, end the attempt with a
// reason: without an outcome its row stayed live, and the ledger took no other attempt of the trial.
func TestRun_StartError(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		change func(r *rig)
		says   string
	}{
		"Docker refuses it": {func(r *rig) {
			r.docks.before = func(l berth.Launch) error {
				return cmp.Or[error](r.docks.Create(t.Context(), l), &berth.StartError{Kind: berth.FailureBadCommand, Err: errors.New("no such file: pyton")})
			}
		}, "pyton"},
		"a value that reads as an option": {func(r *rig) {
			r.books.says(func(who *berth.Assignee) { who.Spec.Command = []string{"python", "train.py", "{{lr}}"} })
			r.books.says(func(who *berth.Assignee) { who.Trial.Params["lr"] = berth.FloatValue(-0.1) })
		}, "--lr={{lr}}"},
		"what Docker's adapter refuses": {func(r *rig) {
			r.docks.before = func(berth.Launch) error {
				return berth.Errorf(berth.KindInvalid, "mount %q: must be an absolute path", "data")
			}
		}, "must be an absolute path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			tt.change(r)

			order := r.order()
			order.Progress.Usage = berth.Usage{MemoryPeakBytes: 900 << 20, Samples: 9} // of a container that somebody removed

			got := came(t, r.start(t.Context(), order))
			require.Equal(t, berth.FailureBadCommand, got.Kind)
			require.Equal(t, order.Progress.Usage, got.Usage)
			require.Contains(t, got.Message, tt.says)
			require.Equal(t, got.Message, r.books.result(t).Outcome.Message)
			require.Empty(t, r.books.result(t).ContainerID, "none ran")
			require.Empty(t, r.docks.boxes(t), "nor does the container that could not start stay")
		})
	}
}

func TestRun_FencedBeforeItStarts(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(b *books) error{
		"newer token": func(b *books) error { b.says(func(who *berth.Assignee) { who.Attempt.Token++ }); return nil },
		"abandoned":   func(b *books) error { return b.AbandonAttempt(t.Context(), attemptID, "its host was away") },
	} {
		r := setup(t)
		require.NoError(t, change(r.books))

		_, err := r.Run(t.Context(), r.order())
		require.Equal(t, berth.KindFenced, berth.KindOf(err), name)
		require.Zero(t, r.docks.made)
	}
}

// A fenced attempt may be given back to its host: the reconciler, which knows
// whether it can be, removes what is there.
func TestRun_FencedAtStartLeavesTheContainer(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.books.runningErr = berth.Errorf(berth.KindFenced, "not ours any more")

	_, err := r.Run(t.Context(), r.order())
	require.Equal(t, berth.KindFenced, berth.KindOf(err))
	require.Len(t, r.docks.boxes(t), 1)
	require.True(t, r.Untidy(), "the reconciler looks at it")
	require.Empty(t, r.books.results)
	require.Empty(t, r.docks.called())
}

// An attempt that is not ours any more is left at the first refusal (rule R4). Metrics that
// were refused are told again when it is given back.
func TestRun_FencedWriterLosesNothing(t *testing.T) {
	t.Parallel()

	fenced := berth.Errorf(berth.KindFenced, "not ours any more")

	for name, refuse := range map[string]func(r *rig){
		"metrics": func(r *rig) { r.books.metricErrs = []error{fenced} },
		"log":     func(r *rig) { r.books.logErrs = []error{fenced} },
		"memory": func(r *rig) {
			r.books.Hook(func(h *fake.LedgerHooks) {
				h.PutMemory = func(context.Context, string, func(context.Context) error) error { return fenced }
			})
		},
	} {
		bubble(t, name, func(t *testing.T) {
			r, _ := metered(t)
			refuse(r)

			box, ended := r.begin(t)
			box.Print("stdout", "acc=1\n")
			require.Equal(t, berth.KindFenced, berth.KindOf(await(t, ended).err))
			require.Equal(t, berth.ContainerRunning, box.Container().State, "the reconciler decides")

			r.books.Hook(func(h *fake.LedgerHooks) { h.PutMemory = nil })

			got := ends(t, box, r.start(t.Context(), r.order()), "", 0)
			require.Equal(t, berth.FailureOK, got.Kind)
			require.Len(t, r.books.metrics(t), 1)
		})
	}
}

func TestRun_GivesBack(t *testing.T) {
	t.Parallel()

	order := berth.Order{AttemptID: attemptID, Token: token, Stop: true}

	for name, runs := range map[string]bool{"nothing runs": false, "it runs and nobody wrote that down": true} {
		r := setup(t)
		if runs {
			_, err := r.docks.Ensure(t.Context(), berth.Launch{AttemptID: attemptID, Token: token, Image: imageID})
			require.NoError(t, err)
		}

		made := r.docks.made

		outcome, err := r.Run(t.Context(), order)
		require.NoError(t, err)
		require.Equal(t, berth.FailureCanceled, outcome.Kind, name)
		require.Equal(t, made, r.docks.made, "nothing is started")
		require.Empty(t, r.docks.boxes(t))
		require.Equal(t, berth.FailureCanceled, r.books.result(t).Outcome.Kind)
	}
}

func TestRun_DockerGoneIsNoExit(t *testing.T) {
	t.Parallel()

	r := setup(t)
	ended := r.start(t.Context(), r.order())
	r.docks.started(t)
	close(r.docks.gone)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(await(t, ended).err))
	require.Empty(t, r.books.results)
	require.Len(t, r.docks.boxes(t), 1)
}

func TestRun_ReadsOnWhenTheLogBreaks(t *testing.T) {
	t.Parallel()

	for name, broken := range map[string]error{
		"with an error": berth.Errorf(berth.KindUnavailable, "Docker restarts"), "as if it had ended": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			box, ended := r.begin(t)
			box.Print(berth.Stdout, "acc=0.1\n")
			require.Eventually(t, func() bool { return len(r.books.pieces(t)) > 0 }, 10*time.Second, time.Millisecond)

			r.docks.breakLogs(broken)
			got := ends(t, box, ended, "acc=0.2\n", 0)
			require.InDelta(t, 0.2, *got.Value, 0)
			require.Equal(t, "acc=0.1\nacc=0.2\n", r.books.text(t))
		})
	}
}

// An earlier attempt of the trial that was abandoned and still runs here would
// write to the same checkpoint: it goes before the next one starts.
func TestRun_RemovesEarlierAttemptsFirst(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Earlier = []string{"earlier"} })
	_, err := r.docks.Ensure(t.Context(), berth.Launch{AttemptID: "earlier", Image: imageID})
	require.NoError(t, err)

	alone := make(chan bool, 1)
	r.docks.ensured = func() { alone <- r.docks.Process("earlier") == nil }

	ended := r.start(t.Context(), r.order())
	require.True(t, <-alone, "two containers of the trial at once")

	r.docks.started(t).Exit(0)
	require.NoError(t, await(t, ended).err)
}

// A worker that is replaced while it gives a place back leaves the order to its successor:
// that it did not see the container end says nothing of Docker.
func TestRun_LeavesTheOrderToStopToItsSuccessor(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		r := setup(t)

		for range 1000 {
			r.docks.stopErrs = append(r.docks.stopErrs, berth.Errorf(berth.KindUnavailable, "within its grace"))
		}

		order := r.order()
		order.Stop = true

		ctx, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { leave(errors.New("the worker is stopping")) })

		_, err := r.Run(ctx, order)
		require.ErrorIs(t, err, ErrDetached)
		require.NotErrorIs(t, err, berth.ErrNotStopped)
	})
}

// Docker hangs on one container, or refuses to end it: the order to stop it ends
// all the same, once, and says so whatever Docker said.
func TestRun_SaysThatItCouldNotStopOneContainer(t *testing.T) {
	t.Parallel()

	hangs := func(ctx context.Context, _ string, _ func(context.Context) error) error {
		<-ctx.Done()

		return fmt.Errorf("stopping: %w", context.Cause(ctx))
	}
	refuses := func(context.Context, string, func(context.Context) error) error {
		return berth.Errorf(berth.KindInternal, "tried to kill container, but did not receive an exit event")
	}

	for name, c := range map[string]struct {
		stop  func(ctx context.Context, id string, call func(context.Context) error) error
		given func(r *rig, order *berth.Order, cancel context.CancelCauseFunc)
	}{
		"give back, Docker hangs":   {hangs, func(_ *rig, order *berth.Order, _ context.CancelCauseFunc) { order.Stop = true }},
		"give back, Docker refuses": {refuses, func(_ *rig, order *berth.Order, _ context.CancelCauseFunc) { order.Stop = true }},
		"canceled, Docker hangs": {hangs, func(r *rig, _ *berth.Order, cancel context.CancelCauseFunc) {
			r.docks.ensured = func() { cancel(berth.ErrStop) }
		}},
		"ran too long, Docker hangs": {hangs, func(r *rig, _ *berth.Order, _ context.CancelCauseFunc) {
			r.books.says(func(who *berth.Assignee) { who.Spec.Limits.MaxTrialDuration = berth.Duration(time.Second) })
		}},
		"wrote too much, Docker hangs": {hangs, func(r *rig, _ *berth.Order, _ context.CancelCauseFunc) { r.config.Bounds.OutputLimit = -1 }},
	} {
		bubble(t, name, func(t *testing.T) {
			r := setup(t)
			r.docks.Hook(func(h *fake.DockerHooks) { h.Stop = c.stop })

			ctx, cancel := context.WithCancelCause(t.Context())
			order := r.order()
			c.given(r, &order, cancel)

			began := time.Now()
			_, err := r.Run(ctx, order)
			require.ErrorIs(t, err, berth.ErrNotStopped)
			require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "it is tried again, unless the trial was canceled")
			require.LessOrEqual(t, time.Since(began), 95*time.Second, "30 s of grace and 60 s of patience, once")
			require.Empty(t, r.books.results)
			cancel(nil)
		})
	}
}

// What a worker could not commit it commits when it has the attempt (again): nothing runs twice,
// and the reconciler finds what is left of a fenced one.
func TestRun_CommitsWhatWasRefused(t *testing.T) {
	t.Parallel()

	fenced, crash := berth.Errorf(berth.KindFenced, "not ours any more"), berth.Errorf(berth.KindInternal, "crashed here")

	for name, c := range map[string]struct {
		refused error
		refuse  func(b *books, err error)
	}{
		"a fenced result":           {fenced, func(b *books, err error) { b.finishErrs = []error{err} }},
		"fenced metrics":            {fenced, func(b *books, err error) { b.metricErrs = []error{err} }},
		"a crash before the commit": {crash, func(b *books, err error) { b.finishErrs = []error{err} }},
	} {
		bubble(t, name, func(t *testing.T) {
			r := setup(t)
			c.refuse(r.books, c.refused)
			box, ended := r.begin(t)
			box.Print(berth.Stdout, "acc=0.9\n")
			box.Exit(0)
			require.Equal(t, berth.KindOf(c.refused), berth.KindOf(await(t, ended).err))
			require.Len(t, r.docks.boxes(t), 1, "no commit, no removal")
			require.Empty(t, r.books.results)
			require.FileExists(t, r.file(recordName))
			require.FileExists(t, r.file(verdictName))
			require.Equal(t, errors.Is(c.refused, fenced), r.Untidy())

			got := came(t, r.start(t.Context(), r.order()))
			require.Equal(t, berth.FailureOK, got.Kind)
			require.InDelta(t, 0.9, *got.Value, 0)
			require.Equal(t, 1, r.docks.made, "it does not run again")
			require.Equal(t, "acc=0.9\n", r.books.text(t))
			require.Len(t, r.books.metrics(t), 1)
			require.Empty(t, r.docks.boxes(t))
		})
	}
}

// A cancellation, or the worker's end, may come while the container is being started.
func TestRun_IsLeftWhileItStarts(t *testing.T) {
	t.Parallel()

	for name, cause := range map[string]error{"canceled": berth.ErrStop, "the worker stops": errors.New("the worker stops")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			ctx, leave := context.WithCancelCause(t.Context())
			r.docks.ensured = func() { leave(cause) }
			r.docks.ensureErr = berth.Errorf(berth.KindUnavailable, "context canceled")

			got := await(t, r.start(ctx, r.order()))
			if !errors.Is(cause, berth.ErrStop) {
				require.ErrorIs(t, got.err, ErrDetached)
				require.Len(t, r.docks.boxes(t), 1)
				require.Empty(t, r.books.results)

				return
			}

			require.NoError(t, got.err)
			require.Equal(t, berth.FailureCanceled, got.outcome.Kind)
			require.Equal(t, []string{"stop berth-fake-" + attemptID, "remove berth-fake-" + attemptID}, r.docks.called(), "nobody would stop it later")
			require.Empty(t, r.docks.boxes(t))
		})
	}
}
