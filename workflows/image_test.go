package workflows_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/workflows"
)

// refuses is a machine's answer about an image that it cannot use.
func refuses(code string) error {
	return temporal.NewApplicationErrorWithOptions(code, string(berth.KindInvalid), temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{[]berth.Problem{{Code: code, Pointer: "/image", Message: code}}},
	})
}

// The workflow looks for an image on the machine that takes the question, then on
// all others, and then, from a few machines, in its registry.
func TestImage(t *testing.T) {
	t.Parallel()

	const missing = activities.CodeImageMissing

	for name, c := range map[string]struct {
		local    map[string]string // by host, its answer; "" = the host that takes the question. "ok" = it has the image
		registry map[string]string // the same; a host that is not in it does not answer
		want     string            // digest, or code
		asked    string            // the machine that asked the registry
	}{
		"the first has it":         {local: map[string]string{"": "ok"}, want: "here"},
		"the first refuses it":     {local: map[string]string{"": "E_IMAGE_ENV", "b": "ok"}, want: "E_IMAGE_ENV"},
		"another has it":           {local: map[string]string{"": missing, "a": missing, "b": "ok"}, want: "here"},
		"the registry has it":      {registry: map[string]string{"a": "ok"}, want: "there", asked: "a"},
		"only some may log in":     {registry: map[string]string{"a": "E_IMAGE_LOGIN", "b": "ok"}, want: "there", asked: "a b"},
		"none may log in":          {registry: map[string]string{"a": "E_IMAGE_LOGIN", "b": "E_IMAGE_LOGIN", "c": "E_IMAGE_LOGIN"}, want: "E_IMAGE_LOGIN", asked: "a b c"},
		"some pull nothing":        {registry: map[string]string{"a": missing, "b": "E_IMAGE_REGISTRY", "c": missing}, want: "E_IMAGE_REGISTRY", asked: "a b c"},
		"some do not answer":       {registry: map[string]string{"b": "ok"}, want: "there", asked: "a b"},
		"none knows it, and ends":  {registry: map[string]string{"a": missing, "b": missing, "c": missing, "d": "ok"}, want: missing, asked: "a b c"},
		"all are silent":           {registry: map[string]string{"a": "silent", "b": "silent", "c": "silent"}, want: "E_IMAGE_REGISTRY", asked: "a b c"},
		"one is silent, one lacks": {registry: map[string]string{"a": "silent", "b": missing, "c": missing}, want: "E_IMAGE_REGISTRY", asked: "a b c"},
		"one is silent, one tells": {registry: map[string]string{"a": "silent", "b": "E_IMAGE_LOGIN", "c": "silent"}, want: "E_IMAGE_LOGIN", asked: "a b c"},
		"all but one are silent":   {local: map[string]string{"": missing, "b": "ok"}, want: "here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var (
				a     *activities.Activities
				mu    sync.Mutex
				asked []string
			)

			says := func(ctx context.Context, of map[string]string, digest string) (string, berth.Image, error) {
				host, _ := strings.CutPrefix(activity.GetInfo(ctx).TaskQueue, "host-")
				if host == activity.GetInfo(ctx).TaskQueue {
					host = ""
				}

				switch said, found := of[host]; {
				case said == "ok":
					return host, berth.Image{Digest: digest}, nil
				case said == "silent": // for as long as Temporal waits
					return host, berth.Image{}, temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil)
				case found:
					return host, berth.Image{}, refuses(said)
				case of == nil:
					return host, berth.Image{}, refuses(missing)
				default:
					return host, berth.Image{}, temporal.NewNonRetryableApplicationError("silent", string(berth.KindUnavailable), nil)
				}
			}

			env := environment()
			env.RegisterActivity(&activities.Activities{})
			env.OnActivity(a.ImageHosts, mock.Anything).Return([]string{"a", "b", "c", "d"}, nil)
			env.OnActivity(a.ResolveImage, mock.Anything, mock.Anything).Return(func(ctx context.Context, _ activities.ImageRef) (berth.Image, error) {
				_, image, err := says(ctx, c.local, "here")

				return image, err
			})
			env.OnActivity(a.AskRegistry, mock.Anything, mock.Anything).Return(func(ctx context.Context, _ activities.ImageRef) (berth.Image, error) {
				host, image, err := says(ctx, c.registry, "there")

				mu.Lock()
				defer mu.Unlock()

				asked = append(asked, host)

				return image, err
			})

			env.ExecuteWorkflow(workflows.ImageWorkflow, activities.ImageRef{Image: "a:1"})

			var image berth.Image

			if err := env.GetWorkflowError(); err != nil {
				require.ErrorContains(t, err, c.want)
			} else {
				require.NoError(t, env.GetWorkflowResult(&image))
				require.Equal(t, c.want, image.Digest)
			}

			require.Equal(t, c.asked, strings.Join(asked, " "))
		})
	}
}
