package berth

import (
	"fmt"
	"time"
)

// Look is a short run of an image that is no trial: it answers a question about
// the image or about a program in it. It has the fence of a trial: no network,
// a read-only root file system, no rights, limits, and the user of trials.
type Look struct {
	Image       string
	Command     []string // the whole argv
	Workdir     string   // empty = the image's
	Environment map[string]string
	Mounts      []Mount
	MemoryBytes int64
	CPUMilli    int64
	User        string        // uid:gid; empty = as a trial's
	Timeout     time.Duration // the container is killed this long after its start; > 0
}

// MaxLookBytes bounds the kept part of each stream of a look: the beginning and,
// of a longer stream, the end.
const MaxLookBytes = 4 << 20

// Looked is how a look ended.
type Looked struct {
	ExitCode    int
	Stdout      []byte
	Stderr      []byte
	TimedOut    bool          // it was killed at its timeout; ExitCode means nothing
	OutOfMemory bool          // the kernel killed a process of it for memory
	Foreign     bool          // its program is for another kind of processor; the error may say so, too
	NoUser      bool          // the image does not know its user; the error says so, too
	FirstOutput time.Duration // from asking Docker to start it to its first output; 0 = it wrote nothing
}

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
	Image  string // as requested: repository:tag or repository@sha256:…
	Reason PullReason
	Detail string // observation, in plain words
	Fix    string // what to do, in plain words
}

func (e *PullError) Error() string {
	return fmt.Sprintf("pulling image %q: %s; %s", e.Image, e.Detail, e.Fix)
}
