package runtrial

import (
	"context"
	"errors"
	"strings"
	"testing"

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

// The container's argv is all of it, and so is the launch that is written down: a worker that
// comes later asks no image. A command that could not be run, and may need it, is told so.
func TestRun_Entrypoint(t *testing.T) {
	t.Parallel()

	const note = "the image has an ENTRYPOINT (/start.sh run), which does not run: if the command is its arguments, write `entrypoint: true`"

	for wanted, argv := range map[bool][]string{true: {"/start.sh", "run", "train", "--n=1"}, false: {"train", "--n=1"}} {
		r := withEntrypoint(t, wanted)
		box, ended := r.begin(t)
		require.Equal(t, argv, r.docks.launches()[0].Command)

		kept, found := r.dirs(r.who(t)).launch(token)
		require.True(t, found)
		require.Equal(t, argv, kept.Command)
		require.Equal(t, berth.FailureOK, ends(t, box, ended, "acc=1\n", 0).Kind)

		r = withEntrypoint(t, wanted)
		r.docks.before = func(berth.Launch) error {
			return &berth.StartError{Kind: berth.FailureBadCommand, Err: errors.New("train: no such file")}
		}

		got := came(t, r.start(t.Context(), r.order()))
		require.Equal(t, berth.FailureBadCommand, got.Kind)
		require.Equal(t, !wanted, strings.Contains(got.Message, note), got.Message)
	}
}
