package berth

import "fmt"

// PullReason says why a host cannot get an image from its registry.
type PullReason string

// The reasons. Each has its own remedy (PullError.Fix).
const (
	PullUnknown      PullReason = "unknown"      // the registry has no such repository, tag or digest
	PullUnauthorized PullReason = "unauthorized" // the registry requires a login, or refuses the given one
	PullUnreachable  PullReason = "unreachable"  // the registry does not answer, or breaks off
	PullLimited      PullReason = "limited"      // the registry was asked for too many pulls
	PullPlatform     PullReason = "platform"     // the image is for another kind of processor
	PullDiskFull     PullReason = "disk_full"    // Docker's disk has no room for it
	PullStalled      PullReason = "stalled"      // no byte arrived for long
	PullSlow         PullReason = "slow"         // bytes arrived until the time was over
	PullFailed       PullReason = "failed"       // anything else
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

// PullProgress is how far a pull is.
type PullProgress struct {
	DoneBytes     int64 // downloaded, compressed
	TotalBytes    int64 // to download, compressed, as far as it is known; 0 = not known
	UnpackedBytes int64 // of the downloaded layers, compressed
	Unpacking     bool  // all is downloaded
	Retrying      bool  // the registry broke off, and Docker tries again
}

// Text is the progress in plain words, such as "420 of 900 MiB".
func (p PullProgress) Text() string {
	const mib = 1 << 20

	switch {
	case p.Unpacking:
		return "unpacking"
	case p.Retrying:
		return "its registry broke off; Docker tries again"
	case p.TotalBytes <= 0 && p.DoneBytes <= 0:
		return "asking the registry"
	case p.TotalBytes < p.DoneBytes:
		return BytesText(p.DoneBytes)
	case p.TotalBytes < 10*mib:
		return fmt.Sprintf("%.1f of %.1f MiB", float64(p.DoneBytes)/mib, float64(p.TotalBytes)/mib)
	default:
		return fmt.Sprintf("%d of %d MiB", p.DoneBytes/mib, p.TotalBytes/mib)
	}
}
