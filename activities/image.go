package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/berthml/berth"
)

// ImageRef names an image as a user writes it.
type ImageRef struct {
	Image string `json:"image"`
}

// ResolveImage finds the digest of an image on this host, so that all trials
// of a sweep run the same one whatever its tag comes to mean.
func (a *Activities) ResolveImage(ctx context.Context, in ImageRef) (berth.Image, error) {
	image, err := a.Images.ResolveImage(ctx, in.Image)

	if refused, ok := errors.AsType[*berth.SpecError](err); ok { // its problems travel as details
		return image, temporal.NewApplicationErrorWithOptions(err.Error(), string(berth.KindInvalid),
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{refused.Problems}})
	}

	return image, translate(err)
}
