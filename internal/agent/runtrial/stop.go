package runtrial

import (
	"context"
	"fmt"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// stop stops the container. Errors: berth.ErrNotStopped, whatever Docker says. A
// container that cannot be killed gets no answer until the time is up, or one
// that is no sign of an outage.
func (r *run) stop(ctx context.Context, id string, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace+stopPatience)
	defer cancel()

	if err := patiently(ctx, func() error { return r.containers.Stop(ctx, id, grace) }); err != nil {
		return fmt.Errorf("%w: %w", berth.ErrNotStopped, err)
	}

	return nil
}

// end stops the container for a reason of Berth's own. It writes the reason down
// first: a job may end politely, with any exit code, and this worker may be gone
// by then. A reason that was written down stands.
func (r *run) end(ctx context.Context, why failure.Intent) error {
	if r.intent == failure.IntentNone {
		r.intent, r.askedAt = why, time.Now().UTC()

		if err := r.keep(func(k *record) { k.Intent, k.AskedAt = why, r.askedAt }); err != nil {
			r.log.Warn("writing down why the attempt is stopped", "attempt", r.who.Attempt.ID, "why", why, "error", err)
		}
	}

	grace := r.config.Grace
	if r.intent == failure.IntentPrune {
		grace = min(grace, pruneGrace)
	}

	if r.intent == failure.IntentFlood || r.intent == failure.IntentQuota || r.intent == failure.IntentMemory {
		grace = excessGrace
	}

	return r.stop(ctx, r.container.ID, grace)
}

// abandon leaves an attempt that is fenced to the reconciler. Only the ledger
// knows whether the attempt goes back to this host, where its container, its
// verdict and its files are needed again. The reconciler removes them when it
// does not.
func (r *run) abandon() {
	r.log.Warn("attempt is fenced; the reconciler removes its container, unless the ledger gives the attempt back",
		"attempt", r.who.Attempt.ID, "container", r.container.ID)
	r.untidy.Store(true)
}

// giveBack stops what runs, if anything does, and frees the place. The
// container is known by its name: it may run without being recorded.
func (r *run) giveBack(ctx context.Context) (berth.Outcome, error) {
	if err := r.stop(ctx, r.containers.Name(r.who.Attempt.ID), r.config.Grace); err != nil {
		if ctx.Err() != nil { // this worker leaves, or another Run took over: that says nothing of Docker
			return berth.Outcome{}, fmt.Errorf("%w (%w)", ErrDetached, context.Cause(ctx))
		}

		return berth.Outcome{}, err
	}

	now := time.Now().UTC()
	kind, message := failure.Classify(failure.Evidence{Intent: failure.IntentCancel})

	return r.settle(ctx, verdict{Outcome: berth.Outcome{
		Kind: kind, Message: message, Usage: r.measured(), StartedAt: now, FinishedAt: now,
	}})
}

// tidy removes what an attempt leaves on the host. What it cannot remove now,
// the reconciler removes later.
func (e *Executor) tidy(ctx context.Context, who berth.Assignee) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()

	name := e.containers.Name(who.Attempt.ID)
	if err := e.containers.Remove(ctx, name); err != nil {
		e.log.Warn("removing container; the reconciler tries again", "container", name, "error", err)
	}

	e.forget(who)
}

// forget removes what the host has of an attempt beside its container.
func (e *Executor) forget(who berth.Assignee) {
	e.ooms.Delete(who.Attempt.ID)

	if err := e.dirs(who).clean(); err != nil {
		e.log.Warn("removing directories of attempt", "attempt", who.Attempt.ID, "error", err)
	}
}
