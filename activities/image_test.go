package activities

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/berthml/berth"
)

// silentImages are images of a registry that never answers.
type silentImages struct{ Images }

func (silentImages) AskRegistry(ctx context.Context, ref string) (berth.Image, error) {
	<-ctx.Done()

	return berth.Image{}, &berth.PullError{Image: ref, Reason: berth.PullUnreachable, Detail: "its registry did not answer in time"}
}

// The worker reports a problem with a registry before Temporal gives up.
func TestAskRegistry_TellsInTime(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
		defer cancel()

		a := &Activities{Images: silentImages{}}
		_, err := a.AskRegistry(ctx, ImageRef{Image: "registry.example/a:1"})
		require.NoError(t, ctx.Err())

		var (
			app      *temporal.ApplicationError
			problems []berth.Problem
		)

		require.ErrorAs(t, err, &app)
		require.NoError(t, app.Details(&problems))
		require.Equal(t, CodeImageRegistry, problems[0].Code)
	})
}
