package runtrial

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

// withoutImage has a Docker lack the image until it is pulled; zero = never.
func (d *docks) withoutImage(pulled time.Time) {
	d.before = func(l berth.Launch) error {
		if pulled.IsZero() || time.Now().Before(pulled) {
			return &berth.StartError{Kind: berth.FailureImageMissing, Err: errors.New("no image " + l.Image)}
		}

		return nil
	}
}

func TestRun_WaitsForAMissingImage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := setup(t)
		r.docks.withoutImage(time.Now().Add(10 * time.Second))
		ended := r.start(t.Context(), r.order())

		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, []berth.SeenAttempt{{AttemptID: attemptID, Token: r.order().Token}}, r.Waiting(), "its lease is renewed meanwhile")

		box := r.docks.started(t)
		synctest.Wait()
		require.Empty(t, r.Waiting())
		got := ends(t, box, ended, "acc=1\n", 0)
		require.Equal(t, berth.FailureOK, got.Kind)
	})
}

func TestRun_GivesItsPlaceBackWithoutTheImage(t *testing.T) {
	t.Parallel()

	for number, want := range map[int]time.Duration{
		1: 15 * time.Second, 2: 30 * time.Second, 3: time.Minute, 5: 4 * time.Minute, 6: 5 * time.Minute, 10: 5 * time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := setup(t)
			r.config.HostName = "gpu-1"
			r.books.says(func(who *berth.Assignee) { who.Spec.Image = "digits:1" })
			r.books.says(func(who *berth.Assignee) { who.Attempt.Number = number })
			r.docks.withoutImage(time.Time{})
			began := time.Now()

			got := came(t, r.start(t.Context(), r.order()))
			require.InDelta(t, want, time.Since(began), float64(imageLook))

			policy := got.Kind.Policy()
			require.Equal(t, berth.NextRetry, policy.Next, "a missing image never ends a trial by itself")
			require.False(t, policy.Charges)
			require.Contains(t, got.Message, `image "digits:1" is not on host "gpu-1"`)
			require.Contains(t, got.Message, "docker pull")
			require.True(t, r.books.result(t).ImageMissing, "the ledger is told apart from other failures")
			require.Empty(t, r.Waiting())
		})
	}
}

func TestRun_IsStoppedWhileItWaitsForItsImage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for cause, want := range map[error]error{berth.ErrStop: nil, errors.New("the worker stops"): ErrDetached} {
			r := setup(t)
			r.docks.withoutImage(time.Time{})
			ctx, stop := context.WithCancelCause(t.Context())
			ended := r.start(ctx, r.order())

			time.Sleep(time.Second)
			stop(cause)

			got := <-ended
			require.ErrorIs(t, got.err, want)

			if want == nil {
				require.Equal(t, berth.FailureCanceled, got.outcome.Kind)
			}
		}
	})
}

// pulling is a host that pulls, whose Docker lacks the image until done.
func pulling(t *testing.T, pull PullImage) *rig {
	t.Helper()

	r := setup(t)
	r.config.Pull = pull
	r.config.HostName = "gpu-1"
	r.books.says(func(who *berth.Assignee) { who.Spec.Image, who.ImageDigest = "digits:1", imageID })

	return r
}

func TestRun_PullsAMissingImage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r *rig

		r = pulling(t, func(_ context.Context, image string, told func(string)) error {
			require.Equal(t, imageID, image, "never by its tag")

			for mib := int64(1); mib <= 10; mib++ { // ten minutes: no other host would do better
				time.Sleep(time.Minute)
				told(fmt.Sprintf("%d of 10 MiB", mib))
				require.Equal(t, []berth.SeenAttempt{{AttemptID: attemptID, Token: r.order().Token}}, r.Waiting(), "its lease is renewed meanwhile")
			}

			r.docks.before = nil

			return nil
		})
		r.docks.withoutImage(time.Time{})

		said := r.books.waits(t)
		ended := r.start(t.Context(), r.order())

		time.Sleep(10 * time.Minute)
		box := r.docks.started(t)
		synctest.Wait()

		require.Equal(t, "pulling digits:1: 1 of 10 MiB", (*said)[0])
		require.Equal(t, "pulling digits:1: 10 of 10 MiB", (*said)[9])
		require.Equal(t, []string{""}, (*said)[10:], "and then it waits no more")

		box.Print(berth.Stdout, "acc=1\n")
		box.Exit(0)
		require.Equal(t, berth.FailureOK, (<-ended).outcome.Kind)
	})
}

func TestRun_SaysWhyAnImageIsNotPulled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		why := &berth.PullError{Image: imageID, Reason: berth.PullUnauthorized, Detail: "the registry refuses it", Fix: "docker login registry.example"}
		r := pulling(t, func(context.Context, string, func(string)) error { tries++; return why })
		r.docks.withoutImage(time.Time{})

		said := r.books.waits(t)
		began := time.Now()
		got := <-r.start(t.Context(), r.order())

		require.NoError(t, got.err)
		require.InDelta(t, imageFirst, time.Since(began), float64(imageLook), "a person may mend it meanwhile")
		require.Greater(t, tries, 5)
		require.Contains(t, (*said)[0], "waits for its image: pulling image")
		require.False(t, got.outcome.Kind.Policy().Charges)
		require.Contains(t, got.outcome.Message, `image "digits:1" is not on host "gpu-1", and cannot be pulled there: `)
		require.Contains(t, got.outcome.Message, "the registry refuses it; docker login registry.example")
		require.True(t, r.books.result(t).ImageMissing)
	})
}

// An image that was built on a host has an ID and no registry.
func TestRun_DoesNotPullWhatHasNoRegistry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := pulling(t, func(context.Context, string, func(string)) error {
			require.Fail(t, "it was pulled")

			return nil
		})
		r.books.says(func(who *berth.Assignee) { who.Spec.Image, who.ImageDigest = "digits:1", "sha256:0123" })
		r.docks.withoutImage(time.Time{})

		got := <-r.start(t.Context(), r.order())
		require.Contains(t, got.outcome.Message, "docker load")
	})
}

// An attempt that went elsewhere does not wait for its image here.
func TestRun_StopsWaitingWhenItIsFenced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := pulling(t, func(ctx context.Context, _ string, told func(string)) error {
			told("1 byte")
			<-ctx.Done()

			return context.Cause(ctx)
		})
		r.docks.withoutImage(time.Time{})
		r.books.Hook(func(h *fake.LedgerHooks) {
			h.NoteWait = func(context.Context, string, func(context.Context) error) error {
				return berth.Errorf(berth.KindFenced, "not ours any more")
			}
		})

		got := <-r.start(t.Context(), r.order())
		require.Equal(t, berth.KindFenced, berth.KindOf(got.err), "%v", got.err)
		require.Empty(t, r.Waiting())
	})
}

// waits keeps what the attempt is said to wait for.
func (b *books) waits(t *testing.T) *[]string {
	t.Helper()

	var said []string

	b.Hook(func(h *fake.LedgerHooks) {
		h.NoteWait = func(ctx context.Context, _ string, call func(context.Context) error) error {
			if err := call(ctx); err != nil {
				return err
			}

			a, err := b.GetAttempt(ctx, attemptID)
			said = append(said, a.Message)

			return err
		}
	})

	return &said
}
