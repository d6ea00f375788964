package runtrial

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// withEntrypoint is a host on which the image of all trials has one.
func withEntrypoint(t *testing.T, wanted bool) *rig {
	t.Helper()

	r := setup(t)
	r.books.says(func(who *berth.Assignee) { who.Spec.Entrypoint, who.Spec.Command = wanted, []string{"train", "--n=1"} })
	r.config.Entrypoint = func(_ context.Context, image string) ([]string, error) {
		require.Equal(t, imageID, image)

		return []string{"/start.sh", "run"}, nil
	}

	return r
}

// The container's argv is all of it, and so is the launch that is written down: a
// worker that comes later asks no image.
func TestRun_Entrypoint(t *testing.T) {
	t.Parallel()

	for wanted, argv := range map[bool][]string{true: {"/start.sh", "run", "train", "--n=1"}, false: {"train", "--n=1"}} {
		synctest.Test(t, func(t *testing.T) {
			r := withEntrypoint(t, wanted)
			box, ended := r.begin(t)
			require.Equal(t, argv, r.docks.launches()[0].Command)

			who, err := r.books.Assignee(t.Context(), attemptID)
			require.NoError(t, err)

			kept, found := r.dirs(who).launch(token)
			require.True(t, found)
			require.Equal(t, argv, kept.Command)

			box.Print(berth.Stdout, "acc=1\n")
			box.Exit(0)
			require.Equal(t, berth.FailureOK, (<-ended).outcome.Kind)
		})
	}
}

func TestRun_SaysThatAnImageHasAnEntrypoint(t *testing.T) {
	t.Parallel()

	for wanted, says := range map[bool]bool{false: true, true: false} {
		synctest.Test(t, func(t *testing.T) {
			r := withEntrypoint(t, wanted)
			r.docks.before = func(berth.Launch) error {
				return &berth.StartError{Kind: berth.FailureBadCommand, Err: errors.New("train: no such file")}
			}

			got := <-r.start(t.Context(), r.order())
			require.Equal(t, berth.FailureBadCommand, got.outcome.Kind)

			note := "the image has an ENTRYPOINT (/start.sh run), which does not run: if the command is its arguments, write `entrypoint: true`"
			if says {
				require.Contains(t, got.outcome.Message, note)
			} else {
				require.NotContains(t, got.outcome.Message, note)
			}
		})
	}
}
