package berth

import "time"

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

// ImageFacts is Docker's data of an image on its machine.
type ImageFacts struct {
	SizeBytes    int64
	OS           string
	Architecture string
	User         string // empty = root
	Entrypoint   []string
	Volumes      []string // sorted
}
