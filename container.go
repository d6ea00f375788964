package berth

import (
	"time"
)

// Launch is everything that decides a container. The attempt and its token
// identify its container; the hash is a label that distinguishes it from a
// foreign one (rule R2).
type Launch struct {
	AttemptID   string            `json:"attempt_id"`
	SweepID     string            `json:"sweep_id"`
	TrialID     string            `json:"trial_id"`
	LeaseID     string            `json:"lease_id"`
	Token       int64             `json:"token"`
	Image       string            `json:"image"` // digest or image id; never a tag
	Command     []string          `json:"command"`
	Workdir     string            `json:"workdir,omitempty"`
	Environment map[string]string `json:"environment,omitempty"`
	Datasets    map[string]string `json:"datasets,omitempty"` // versions of those among Mounts, by name; no part of SpecHash
	Defaults    map[string]string `json:"defaults,omitempty"` // more of it, where it has no such name; no part of SpecHash
	Mounts      []Mount           `json:"mounts,omitempty"`
	MemoryBytes int64             `json:"memory_bytes"`         // limit of memory and of memory plus swap
	WallBytes   int64             `json:"wall_bytes,omitempty"` // added to the kernel's limit where Berth itself holds MemoryBytes
	ShmBytes    int64             `json:"shm_bytes"`            // 0 = as much as MemoryBytes
	CPUMilli    int64             `json:"cpu_milli"`
	CPUCapMilli int64             `json:"cpu_cap_milli,omitempty"` // most that it may use; 0 = CPUMilli
	Network     bool              `json:"network,omitempty"`
	Shim        *Shim             `json:"shim,omitempty"`         // nil = the container has none; no part of SpecHash
	DeviceID    string            `json:"device_id,omitempty"`    // the one GPU that it sees; empty = none
	DeviceBytes int64             `json:"device_bytes,omitempty"` // reserved of its memory
	User        string            `json:"user,omitempty"`         // uid:gid; empty = the image's, or an unprivileged one

	// SpecHash is the hash on the label of the container that this launch made.
	// Empty = not known: then attempt and token alone identify the container,
	// because another version of Berth hashes another launch.
	SpecHash string `json:"-"`
}

// Shim is Berth's Python files in a container (docs/shim.md). The launch's hash
// leaves it out, so that a version of Berth without a shim finds the container all
// the same.
type Shim struct {
	Source     string `json:"source"`      // directory of the host
	Target     string `json:"target"`      // in the container, read-only, in front of PYTHONPATH
	RecordsDir string `json:"records_dir"` // directory of the host that the shim writes to
	Records    string `json:"records"`     // its file, in the container
}

// Mount binds a host path into a container.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// ContainerState is Docker's word for where a container stands.
type ContainerState string

// The states Berth tells apart.
const (
	ContainerCreated ContainerState = "created"
	ContainerRunning ContainerState = "running"
	ContainerExited  ContainerState = "exited"
)

// CacheDir is where a job keeps code that it compiles and then runs, as torch.compile and
// Triton do: each container has its own file system in memory there.
const CacheDir = "/trial/cache"

// Container is one container of this Berth instance, as Docker reports it.
type Container struct {
	ID           string
	Name         string
	AttemptID    string
	DeviceID     string // its GPU; empty = it has none
	DeviceBytes  int64  // reserved of that one's memory
	Token        int64
	SpecHash     string  // of the launch, without its identity
	HostID       string  // of the worker that created it; empty = the listing worker
	Installation string  // of the worker that created it; empty = it does not say
	BootID       string  // of the host when the container was created
	Mounts       []Mount // its bind mounts; only Inspect fills them
	State        ContainerState
	PID          int  // of its first process on the host; 0 unless running
	Adopted      bool // it existed before Ensure was called
	CreatedAt    time.Time
	StartedAt    time.Time
	FinishedAt   time.Time // zero unless exited
	ExitCode     int
	OOMKilled    bool // the kernel's memory killer struck in its cgroup; the program may still have ended well
	OOMCause     OOMCause
	DaemonLost   bool // Docker went away while we waited and the container ended about then; the exit code may be Docker's doing
}

// OOMCause says whose memory ran out when the kernel killed a process of a
// container, as the kernel's log has it; empty = the log does not tell.
type OOMCause string

// The causes.
const (
	OOMLimit   OOMCause = "limit"   // the container was at its own limit
	OOMMachine OOMCause = "machine" // the machine, or a cgroup above the container's, had nothing left
)

// StartError says why a container could not be started, when the reason is the
// launch itself: Kind is image_missing or bad_command; infra for the rest.
type StartError struct {
	Kind FailureKind
	Err  error
	// Inputs: an output of an earlier stage, or the version of a data set, is not here. That is
	// no fault of the host's.
	Inputs bool
}

func (e *StartError) Error() string { return e.Err.Error() }

func (e *StartError) Unwrap() error { return e.Err }

// LogChunk is a piece of a container's output: a line, or at most 16 KiB of a
// longer one. At is Docker's stamp, made unique: within a stream it increases
// from chunk to chunk. Keep its nanoseconds; a timestamptz rounds them away.
type LogChunk struct {
	Stream string // stdout or stderr
	At     time.Time
	Data   []byte // valid until the callback returns
}

// The streams of a container.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Image is a resolved image on a host.
type Image struct {
	ID     string // sha256:…
	Digest string // of the registry when there is one, else the ID
	User   string // empty = root
	Env    []string

	SizeBytes    int64
	OS           string
	Architecture string
	Entrypoint   []string // the image's own

	// Workdir is the image's own working directory; empty = the root directory.
	Workdir string

	// Volumes are the paths that the image wants writable and outside of its
	// layers, sorted.
	Volumes []string
}

// MemorySample is one reading of a container's cgroup.
type MemorySample struct {
	WorkingSetBytes int64 // anonymous + shared + kernel; page cache is not need
	CPU             time.Duration
	Periods         int64 // of the limit of cores, in which its processes ran; 0 = it has none
	Throttled       int64 // of these, in which the limit held them back
	OOMKills        int   // processes killed for memory, whosever memory ran out

	// BelowLimit is true when the kernel's own counters say that the cgroup never
	// was at its limit: its kills were not for that.
	BelowLimit bool

	LimitBytes     int64 // 0 = none
	HighWaterBytes int64 // most that was ever charged, page cache included: no peak was above it; 0 = the kernel does not say
	At             time.Time
}

// Owner is a worker, as far as it decides which containers on its Docker are its own.
type Owner struct {
	HostID       string
	Installation string // empty = of none: other hosts' containers are not looked at
}

// Owns reports whether a container is the worker's to judge: one of its host or of its
// installation.
func (o Owner) Owns(c Container) bool {
	return c.HostID == "" || c.HostID == o.HostID || o.Installation != "" && c.Installation == o.Installation
}
