package runtrial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/sampling"
	"github.com/berthml/berth/internal/failure"
	"github.com/berthml/berth/internal/masking"
)

// run is one Run of one attempt.
type run struct {
	*Executor

	order      berth.Order
	short      bool // its container is a short probe, whatever the order says
	who        berth.Assignee
	dirs       dirs
	container  berth.Container
	startedAt  time.Time
	waited     time.Duration // for its checkpoint, at the longest of its tries
	intent     failure.Intent
	askedAt    time.Time  // when Berth asked the container to stop, for its intent
	disk       keptDisk   // how full the disks were while the container ran
	diskKept   keptDisk   // the same, as run.json has it
	missed     bool       // the container had exited before this run
	keeping    sync.Mutex // held while kept is changed
	kept       record
	keptData   []byte       // of kept, as this run wrote it
	sized      atomic.Int64 // what its files took when they were measured last
	trace      *sampling.Trace
	deviceNote string        // what a person must know of how it used its GPU; empty = nothing
	mask       *masking.Mask // of the values of its secrets; nil = it has none
	placed     []string      // files of secrets that this run wrote
	unplaced   error         // why secrets of an attempt that was prepared before are not there
}

// open returns a run of an attempt. A short probe has directories of its own.
func (e *Executor) open(order berth.Order, who berth.Assignee) *run {
	d := e.dirs(who)

	short := d.short(order)
	if short {
		d = d.ofProbe()
	}

	return &run{Executor: e, order: order, short: short, who: who, dirs: d}
}

// attempt takes the attempt through its life.
func (r *run) attempt(ctx context.Context) (berth.Outcome, error) {
	launch, err := r.ready(ctx)
	if err == nil {
		r.container, err = r.ensure(ctx, launch)
	}

	if start := refusal(err); start != nil {
		v := verdict{Outcome: r.concludeStart(start), ImageMissing: start.Kind == berth.FailureImageMissing, InputMissing: start.Inputs}
		v.ContainerID = r.who.Attempt.ContainerID // of one that ran, and was removed: what it left is there
		r.noteEntrypoint(ctx, &v.Outcome)

		return r.settle(ctx, v)
	}

	if err != nil {
		return berth.Outcome{}, cutOff(ctx, err)
	}

	r.noteContainer(launch)
	r.startedAt = r.container.StartedAt

	r.log.Info("attempt runs", "sweep_id", r.who.SweepID, "trial", r.who.Trial.Number, "attempt", r.who.Attempt.ID,
		"container", berth.ShortKey(r.container.ID), "adopted", r.container.Adopted)

	if !r.short {
		r.writing.Store(r.who.Attempt.ID, berth.AttemptCheckpoint{
			AttemptID: r.who.Attempt.ID, TrialID: r.who.Trial.ID, Stage: r.who.Attempt.Stage, Token: r.order.Token,
		})
		defer r.writing.Delete(r.who.Attempt.ID)
	}

	seen, err := r.watch(ctx)

	switch berth.KindOf(err) {
	case berth.KindFenced:
		r.abandon()
	case berth.KindNotFound:
		return r.settle(ctx, verdict{Outcome: r.concludeGone(), pending: pending{Memory: r.trace.Rest()}, ContainerID: r.container.ID})
	default:
	}

	if err != nil {
		return berth.Outcome{}, cutOff(ctx, err)
	}

	outcome := r.conclude(context.WithoutCancel(ctx), seen) // a verdict half formed would be wrong
	r.noteEntrypoint(ctx, &outcome)

	return r.settle(ctx, verdict{
		Outcome: outcome, Tail: seen.tail.lines, pending: seen.left, ContainerID: r.container.ID,
	})
}

// refusal is the reason why no container can ever be started for a launch: Docker
// refused it, or it is wrong in itself, which no other host and no retry mends.
// Nil = the error may pass.
func refusal(err error) *berth.StartError {
	if start, ok := errors.AsType[*berth.StartError](err); ok {
		return start
	}

	if err != nil && berth.KindOf(err) == berth.KindInvalid {
		return &berth.StartError{Kind: berth.FailureBadCommand, Err: err}
	}

	return nil
}

// ready clears the way for the attempt's container and prepares its launch. A
// host that cannot for startPatience, beside the wait for a checkpoint, fails the
// start: another one may, and a host that goes on so is cordoned. Errors: invalid;
// *berth.StartError; unavailable when a container of the attempt may be there;
// ctx's cause.
func (r *run) ready(ctx context.Context) (launch berth.Launch, err error) {
	for began := time.Now(); ; {
		if err = r.clear(ctx); err == nil {
			launch, err = r.prepare(ctx)
		}

		switch {
		case err == nil, berth.KindOf(err) == berth.KindInvalid, berth.KindOf(err) == berth.KindFenced:
			return launch, err
		case ctx.Err() != nil:
			return launch, context.Cause(ctx)
		case time.Since(began)-r.waited >= startPatience:
			return launch, r.cannotStart(ctx, err)
		}

		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
		}
	}
}

// cannotStart turns the reason why the host cannot start the attempt into a
// *berth.StartError. A container that runs without being recorded is stopped
// first; while Docker does not answer, that fails and the attempt waits for
// Docker. One that is recorded goes on, and its result with it: the error stays.
func (r *run) cannotStart(ctx context.Context, why error) error {
	if r.who.Attempt.ContainerID != "" {
		return why
	}

	if err := r.stop(ctx, r.containers.Name(r.who.Attempt.ID), r.config.Grace); err != nil {
		return err
	}

	return &berth.StartError{Kind: berth.FailureInfra, Err: why}
}

// clear removes what runs here of earlier attempts of the trial, which were
// abandoned: they would write to the same checkpoint.
func (r *run) clear(ctx context.Context) error {
	for _, earlier := range r.who.Earlier {
		name := r.containers.Name(earlier)

		if err := r.containers.Stop(ctx, name, abandonGrace); err != nil {
			return err
		}

		if err := r.containers.Remove(ctx, name); err != nil {
			return err
		}
	}

	return nil
}

// cutOff turns the errors of a context that ended into ErrDetached, but not that
// the container should have stopped and did not.
func cutOff(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, berth.ErrNotStopped) {
		return fmt.Errorf("%w (%w)", ErrDetached, context.Cause(ctx))
	}

	return err
}
