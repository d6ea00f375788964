package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/berthml/berth"
)

// ImageRef names an image as a user writes it.
type ImageRef struct {
	Image string `json:"image"`
}

// The codes of problems with an image that a machine finds (docs/errors.md).
const (
	CodeImageMissing  = "E_IMAGE_MISSING"
	CodeImageRegistry = "E_IMAGE_REGISTRY"
	codeImageLogin    = "E_IMAGE_LOGIN"
	codeImagePlatform = "E_IMAGE_PLATFORM"
)

// ResolveImage finds the digest of an image on this host, so that all trials of
// a sweep run the same image even if its tag moves.
func (a *Activities) ResolveImage(ctx context.Context, in ImageRef) (berth.Image, error) {
	image, err := a.Images.ResolveImage(ctx, in.Image)

	return image, imageError(err)
}

// AskRegistry finds the digest of an image that no host has in its registry. A host
// that pulls nothing refuses.
func (a *Activities) AskRegistry(ctx context.Context, in ImageRef) (berth.Image, error) {
	image, err := a.Images.AskRegistry(ctx, in.Image)

	if pull, ok := errors.AsType[*berth.PullError](err); ok {
		err = &berth.SpecError{Problems: []berth.Problem{{Code: codeOf(pull.Reason), Pointer: "/image", Message: "no machine has the image; " + pull.Error()}}}
	}

	return image, imageError(err)
}

func codeOf(reason berth.PullReason) string {
	switch reason {
	case berth.PullUnauthorized:
		return codeImageLogin
	case berth.PullUnreachable:
		return CodeImageRegistry
	case berth.PullPlatform:
		return codeImagePlatform
	default:
		return CodeImageMissing
	}
}

// imageError gives the problems of a *berth.SpecError to Temporal as details.
func imageError(err error) error {
	if refused, ok := errors.AsType[*berth.SpecError](err); ok {
		return ImageProblems(refused)
	}

	return translate(err)
}

// ImageProblems is the error by which a machine reports the problems of an image.
func ImageProblems(refused *berth.SpecError) error {
	return temporal.NewApplicationErrorWithOptions(refused.Error(), string(berth.KindInvalid),
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{refused.Problems}})
}

// hostSilent is how long a host may be silent and still be asked about an image.
const hostSilent = time.Minute

// ImageHosts are the ids of the hosts that can be asked about an image, sorted.
func (a *Activities) ImageHosts(ctx context.Context) ([]string, error) {
	hosts, err := a.Placements.ListHosts(ctx)
	if err != nil {
		return nil, translate(err)
	}

	var ids []string

	for _, h := range hosts {
		if time.Since(h.LastSeenAt) < hostSilent {
			ids = append(ids, h.ID)
		}
	}

	return ids, nil
}
