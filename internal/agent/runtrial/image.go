package runtrial

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/berthml/berth"
)

const (
	// imageLook is how often a missing image is looked for.
	imageLook = 2 * time.Second
	// imageFirst is how long the trial's first attempt waits for its image. Each
	// further attempt waits twice as long, up to imageLongest; with
	// berth.MaxFreeRetries attempts that is half an hour in all.
	imageFirst = 15 * time.Second
	// imageLongest is below the ten minutes that Temporal grants an attempt
	// beyond max_trial_duration: the run that follows must fit as well.
	imageLongest = 5 * time.Minute
	// pullLongest is how long an attempt waits while its image arrives (internal/agent/docker
	// ends the pull itself then).
	pullLongest = time.Hour
	// noteEvery is how often the text that people see is stored: each attempt that waits
	// for the same pull writes its own.
	noteEvery = 2 * time.Second
)

// imageWait is how long an attempt waits for its image before it gives its
// place back, so that another host may have it.
func imageWait(number int) time.Duration {
	wait := imageFirst
	for range number - 1 {
		if wait = 2 * wait; wait >= imageLongest {
			return imageLongest
		}
	}

	return wait
}

// ensure starts the attempt's container, or adopts it.
func (r *run) ensure(ctx context.Context, l berth.Launch) (c berth.Container, err error) {
	l = r.again(l)
	err = r.withImage(ctx, l.Image, func() error {
		c, err = r.containers.Ensure(ctx, l)

		return err
	})

	return c, err
}

// PullImage gets an image by its registry's digest, and tells how far it is. Errors:
// *berth.PullError; invalid when the image is of no registry; unavailable; ctx's cause.
type PullImage func(ctx context.Context, image string, told func(progress string)) error

// withImage does what needs an image. One that is not there is pulled, where the
// host may; else the attempt waits for it: a person pulls or loads it.
func (r *run) withImage(ctx context.Context, digest string, do func() error) error {
	err := do()
	if !imageMissing(err) {
		return err
	}

	r.waiting.Store(r.who.Attempt.ID, r.order.Token)
	defer r.waiting.Delete(r.who.Attempt.ID)

	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)

	note := &waitNote{run: r, fenced: lose}
	defer func() { note.say(context.WithoutCancel(ctx), "") }()

	wait := imageWait(r.who.Attempt.Number)
	giveUp, latest := time.Now().Add(wait), time.Now().Add(pullLongest)

	r.log.Warn("an image is missing; the attempt waits for it", "image", r.who.Spec.Image, "digest", digest,
		"attempt", r.who.Attempt.ID, "pulls", r.pulls(digest))

	for {
		why := r.pull(ctx, digest, note, func() { // no other host does better while bytes arrive
			if giveUp = time.Now().Add(wait); giveUp.After(latest) {
				giveUp = latest
			}
		})

		if ctx.Err() != nil {
			return context.Cause(ctx)
		}

		if err = do(); !imageMissing(err) {
			return err
		}

		err = missingFor(err, why)
		if !time.Now().Before(giveUp) {
			return err
		}

		note.say(ctx, "waits for its image: "+err.Error())

		select {
		case <-time.After(imageLook):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pulls reports whether this host pulls an image: one that was built on a host, and is of
// no registry, has nothing but an ID.
func (r *run) pulls(digest string) bool {
	return r.config.Pull != nil && strings.Contains(digest, "@")
}

// pull gets an image from its registry, where this host pulls it. Nil = the image is
// there, or still missing for a reason that is nobody's but Docker's.
func (r *run) pull(ctx context.Context, digest string, note *waitNote, further func()) *berth.PullError {
	if !r.pulls(digest) {
		return nil
	}

	var last string

	err := r.config.Pull(ctx, digest, func(progress string) {
		if progress != last {
			last = progress
			further()
		}

		note.say(ctx, "pulling "+r.who.Spec.Image+": "+progress)
	})
	if err != nil && ctx.Err() == nil && err.Error() != note.logged {
		note.logged = err.Error()
		r.log.Warn("pulling an image", "image", r.who.Spec.Image, "digest", digest, "attempt", r.who.Attempt.ID, "error", err)
	}

	why, _ := errors.AsType[*berth.PullError](err)

	return why
}

func imageMissing(err error) bool {
	start, failed := errors.AsType[*berth.StartError](err)

	return failed && start.Kind == berth.FailureImageMissing
}

// missingFor is the error of an image that is missing, with why it was not pulled.
func missingFor(missing error, why *berth.PullError) error {
	if why == nil {
		return missing
	}

	return &berth.StartError{Kind: berth.FailureImageMissing, Err: berth.Errorf(berth.KindInvalid, "%w", why)}
}

// waitNote tells people what an attempt waits for before its container starts.
type waitNote struct {
	run    *run
	fenced func(error) // told when the attempt is not ours any more
	text   string
	at     time.Time
	logged string // the last reason why a pull failed
}

// say stores a text, when it is a new one and not the next within noteEvery. An empty
// one, which ends the wait, is stored at once. What cannot be stored is left out.
func (n *waitNote) say(ctx context.Context, text string) {
	if text == n.text || text != "" && time.Since(n.at) < noteEvery {
		return
	}

	n.text, n.at = text, time.Now()

	err := n.run.records.NoteWait(ctx, n.run.who.Attempt.ID, n.run.order.Token, text)

	switch {
	case berth.KindOf(err) == berth.KindFenced:
		n.fenced(err)
	case err != nil && ctx.Err() == nil:
		n.run.log.Warn("saying what an attempt waits for", "attempt", n.run.who.Attempt.ID, "error", err)
	}
}

// Waiting returns the attempts that wait for their image, or their checkpoint. They
// have no container, and hold their places.
func (e *Executor) Waiting() (attempts []berth.SeenAttempt) {
	e.waiting.Range(func(id, token any) bool {
		attempts = append(attempts, berth.SeenAttempt{AttemptID: id.(string), Token: token.(int64)}) //nolint:forcetypeassert // ensure alone stores
		return true
	})

	return attempts
}
