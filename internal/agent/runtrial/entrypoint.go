package runtrial

import (
	"context"
	"strings"

	"github.com/berthml/berth"
)

// addEntrypoint puts the image's ENTRYPOINT before the command, where the sweep file
// says so. The launch that is written down holds the whole, so whoever adopts the
// container need not ask again.
func (r *run) addEntrypoint(ctx context.Context, l *berth.Launch) error {
	if !r.who.Spec.Entrypoint || r.config.Entrypoint == nil {
		return nil
	}

	return r.withImage(ctx, l.Image, func() error {
		entrypoint, err := r.config.Entrypoint(ctx, l.Image)
		if err == nil {
			l.Command = append(append([]string{}, entrypoint...), l.Command...)
		}

		return err
	})
}

// noteEntrypoint adds to a command that could not be run that its image has an
// ENTRYPOINT, for which it may have been written.
func (r *run) noteEntrypoint(ctx context.Context, o *berth.Outcome) {
	if o.Kind != berth.FailureBadCommand || r.who.Spec.Entrypoint || r.config.Entrypoint == nil {
		return
	}

	if entrypoint, err := r.config.Entrypoint(ctx, r.who.ImageDigest); err == nil && len(entrypoint) > 0 {
		o.Message += "; the image has an ENTRYPOINT (" + strings.Join(entrypoint, " ") +
			"), which does not run: if the command is its arguments, write `entrypoint: true` into the sweep file"
	}
}
