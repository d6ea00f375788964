package runtrial

import (
	"context"
	"errors"
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
	err = r.withImage(ctx, l.Image, func() error {
		c, err = r.containers.Ensure(ctx, l)

		return err
	})

	return c, err
}

// withImage does what needs an image. It waits for one that is not there: a
// person removed it, and pulls or loads it again.
func (r *run) withImage(ctx context.Context, digest string, do func() error) error {
	giveUp := time.Now().Add(imageWait(r.who.Attempt.Number))

	defer r.waiting.Delete(r.who.Attempt.ID)

	for first := true; ; first = false {
		err := do()

		start, failed := errors.AsType[*berth.StartError](err)
		if !failed || start.Kind != berth.FailureImageMissing || !time.Now().Before(giveUp) {
			return err
		}

		if first {
			r.waiting.Store(r.who.Attempt.ID, r.order.Token)
			r.log.Warn("an image is missing; the attempt waits for it", "image", r.who.Spec.Image, "digest", digest,
				"attempt", r.who.Attempt.ID, "until", giveUp)
		}

		select {
		case <-time.After(imageLook):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Waiting returns the attempts that wait for their image. They have no
// container, and hold their places.
func (e *Executor) Waiting() (attempts []berth.SeenAttempt) {
	e.waiting.Range(func(id, token any) bool {
		attempts = append(attempts, berth.SeenAttempt{AttemptID: id.(string), Token: token.(int64)}) //nolint:forcetypeassert // ensure alone stores
		return true
	})

	return attempts
}
