//go:build !cgo || !linux

package nvml

import (
	"context"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
)

// Open always fails here: NVIDIA's library is reached through cgo, on Linux.
// Errors: invalid.
func Open(context.Context, Config) (gpu.Driver, error) {
	return nil, berth.Errorf(berth.KindInvalid, "this berth was built without cgo, or not for Linux, and cannot see GPUs: "+
		"build it on Linux with CGO_ENABLED=1 and a C compiler")
}
