package api

import (
	"context"
	"io"

	"github.com/berthml/berth"
	"github.com/berthml/berth/workflows"
)

// Objects holds the contents of files: *artifacts.Store.
type Objects interface {
	// Read opens length bytes from offset on; a negative length is all of the rest. Errors: not_found, unavailable.
	Read(ctx context.Context, d berth.Digest, offset, length int64) (io.ReadCloser, error)
}

// Temporal steers running sweeps, and asks a machine for an image: *temporal.Client.
type Temporal interface {
	Update(ctx context.Context, sweepID, update string, args ...any) (workflows.SweepView, error)
	Cancel(ctx context.Context, sweepID string) error
	ResolveImage(ctx context.Context, ref string) (berth.Image, error)
	Ping(ctx context.Context) error
}
