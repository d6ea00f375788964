package berth

import "fmt"

// PullReason says why a host cannot get an image from its registry.
type PullReason string

// The reasons. Each has its own remedy (PullError.Fix).
const (
	PullUnknown      PullReason = "unknown"      // the registry has no such repository, tag or digest
	PullUnauthorized PullReason = "unauthorized" // the registry wants a login, or refuses the one it got
	PullUnreachable  PullReason = "unreachable"  // the registry does not answer, breaks off, or serves no more pulls for now
	PullPlatform     PullReason = "platform"     // the image is for another kind of processor
	PullDiskFull     PullReason = "disk_full"    // Docker's disk has no room for it
	PullTimeout      PullReason = "timeout"      // no byte arrived for long, or too few until the time was over
)

// PullError says why a host cannot get an image, and names the command that helps.
type PullError struct {
	Image    string // as requested: repository:tag or repository@sha256:…
	Registry string // its host name, with a port where it has one
	Reason   PullReason
	Detail   string // observation, in plain words
	Fix      string // what to do, in plain words
}

func (e *PullError) Error() string {
	return fmt.Sprintf("pulling image %q: %s; %s", e.Image, e.Detail, e.Fix)
}
