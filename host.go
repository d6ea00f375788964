package berth

import "time"

// HostState says whether new attempts may be placed on a host.
type HostState string

// The states of a host.
const (
	HostReady    HostState = "ready"    // takes attempts
	HostDraining HostState = "draining" // a person asked for no new attempts
	HostLost     HostState = "lost"     // its worker has not been heard of for HostLostAfter
	HostUnready  HostState = "unready"  // its worker answers and reports a Problem
	HostFormer   HostState = "former"   // as it was until a moment ago (Problem says what happened); takes nothing, and counts until FormerUntil
)

// WorkerStarts is the problem of a host whose worker registers it, which takes a moment.
const WorkerStarts = "its worker is starting"

// Passing reports whether what keeps the host from new attempts ends by itself in a
// moment.
func (h *Host) Passing() bool { return h.State == HostUnready && h.Problem == WorkerStarts }

// HostLostAfter is how long a silent worker keeps getting attempts: three
// missed heartbeats of 15 s.
const HostLostAfter = 45 * time.Second

// HostLateAfter is how long a worker may be silent before other hosts are
// preferred: one missed heartbeat and 5 s on a slow network.
const HostLateAfter = LeaseRenewEvery + 5*time.Second

// HostGrace is how long a request waits that only a removed host, or one that
// came back smaller, could hold: time to start the replacement, or the worker
// with the right flags. Then the request is refused.
const HostGrace = 15 * time.Minute

// CheckpointSilence is how long a host that is to store a checkpoint may be silent
// before attempts stop waiting for it. For a restart, or while the database is away,
// hours of work are not given up.
const CheckpointSilence = time.Hour

// CheckpointRefused is for how long it counts that a host's disk did not take the checkpoint
// of a trial, for want of room or inodes, for its quota or an error: a person may mend it.
const CheckpointRefused = 24 * time.Hour

// Host is a machine with a worker. Totals are what Berth may hand out at most;
// headroom is kept free on purpose; reserved is what leases hold, which is more
// than the totals for a while when the worker came back with smaller ones. Of its disk
// only room for checkpoints is reserved: while less is free than the headroom, nothing new starts.
type Host struct {
	ID                  string    `json:"id"`   // UUID, kept in the worker's data directory
	Name                string    `json:"name"` // of the machine
	BootID              string    `json:"boot_id"`
	MachineID           string    `json:"machine_id,omitempty"` // two hosts of one machine and boot are refused; empty = not known
	DataDir             string    `json:"data_dir,omitempty"`   // of its worker
	State               HostState `json:"state"`
	CPUMilli            int64     `json:"cpu_milli"`
	CPUMilliReserved    int64     `json:"cpu_milli_reserved"`
	MemoryBytes         int64     `json:"memory_bytes"`
	MemoryHeadroomBytes int64     `json:"memory_headroom_bytes"`
	MemoryReservedBytes int64     `json:"memory_reserved_bytes"`
	MemoryFreeBytes     int64     `json:"memory_free_bytes"` // total less what processes outside Berth use now; reservations and headroom are in it
	DiskFreeBytes       int64     `json:"disk_free_bytes"`   // measured, where trials keep files and Docker its containers
	DiskHeadroomBytes   int64     `json:"disk_headroom_bytes"`
	DiskBytes           int64     `json:"disk_bytes,omitempty"`        // of that disk in all; 0 = not known
	DiskGrowthBytes     int64     `json:"disk_growth_bytes,omitempty"` // how much more of it is in use than a day before; 0 = not known
	OutputBytes         int64     `json:"output_bytes,omitempty"`      // what files of attempts take
	FetchBytes          int64     `json:"-"`                           // of checkpoints that its attempts have still to fetch, as the placer sees it
	MaxAttempts         int       `json:"max_attempts"`                // 0 = no limit
	Attempts            int       `json:"attempts"`                    // unreleased leases
	Exclusive           bool      `json:"exclusive"`                   // one of them wants the host for itself
	Devices             []Device  `json:"devices"`
	Datasets            []string  `json:"datasets,omitempty"`    // names of the data sets that its worker mounts, sorted
	SecretKeys          []string  `json:"secret_keys,omitempty"` // public parts of the keys with which its worker opens secrets, sorted
	StoresCheckpoints   bool      `json:"-"`                     // its worker has a store: it also fetches checkpoints from there
	LastSeenAt          time.Time `json:"last_seen_at"`
	Late                bool      `json:"-"`                         // not heard of for HostLateAfter: it may be gone
	OutputsProblem      string    `json:"outputs_problem,omitempty"` // files that cannot be removed, or a limit that cannot be kept, in plain words
	Problem             string    `json:"problem,omitempty"`         // why its worker takes no attempts, in plain words; empty = it takes them
	FormerUntil         time.Time `json:"-"`                         // of a former host: when it counts no more

	// A host that failed to start several trials in a row is cordoned: but for a
	// test attempt now and then it takes none, until one of them starts.
	FailedStarts int        `json:"failed_starts,omitempty"` // different trials, since a container last started there
	CordonedAt   *time.Time `json:"cordoned_at,omitempty"`
	CordonReason string     `json:"cordon_reason,omitempty"` // the last failure
	CordonSweep  string     `json:"cordon_sweep,omitempty"`  // only this sweep is kept away, as only its trials failed; empty = all are
	TestDue      bool       `json:"-"`                       // the next test attempt may be placed

	MissingImages []MissingImage `json:"-"` // sweeps whose trials lately did not start there for want of their image

	FilesFreeBytes int64 `json:"-"` // as DiskFreeBytes, of the disk with the files of attempts alone
	FilesDiskBytes int64 `json:"-"` // of that disk in all; 0 = not known

	Drained   bool          `json:"-"` // a person asked for no new attempts, also when its State says something else
	AbsentFor time.Duration `json:"-"` // for how long it has been lost or unready, as the placer counts it
}

// MissingImage is a sweep whose image a host lacks. After HostCordonAfter trials
// the host takes only test attempts of the sweep, until one of them starts.
type MissingImage struct {
	SweepID  string
	Reason   string // the last failure
	Cordoned bool
	TestDue  bool // the next test attempt may be placed
}

// MissingImageKept is how long a host is cordoned for a sweep after its image
// was last found missing: longer than the longest pause between two tests (30
// min) and the wait of a test for its image (5 min). No trial of the sweep came.
const MissingImageKept = 2 * time.Hour

// HostCordonAfter is how many different trials a host fails to start in a row,
// with less than HostCordonWindow between two, before it is cordoned.
const (
	HostCordonAfter  = 3
	HostCordonWindow = 10 * time.Minute
)

// ImagesToldEvery is how often a worker reports its host's images. A report older
// than three times that is ignored.
const ImagesToldEvery = time.Minute

// CordonedFor reports whether the host takes only test attempts of a sweep.
func (h *Host) CordonedFor(sweepID string) bool {
	m := h.Missing(sweepID)

	return h.FailsStartsOf(sweepID) || m != nil && m.Cordoned
}

// FailsStartsOf reports whether the host is cordoned for a sweep because
// containers did not start there, with their images.
func (h *Host) FailsStartsOf(sweepID string) bool {
	return h.CordonedAt != nil && (h.CordonSweep == "" || h.CordonSweep == sweepID)
}

// Missing returns the record that a sweep's image is missing; nil = none.
func (h *Host) Missing(sweepID string) *MissingImage {
	for i := range h.MissingImages {
		if h.MissingImages[i].SweepID == sweepID {
			return &h.MissingImages[i]
		}
	}

	return nil
}

// HostFree is what a host has to give away at one moment, as measured there.
// With a Problem it gives nothing away.
type HostFree struct {
	MemoryBytes int64 // total less what processes outside Berth use
	DiskBytes   int64 // on the fuller of the disks that trials write to
	DiskTotal   int64 // of that disk in bytes; 0 = not known
	FilesBytes  int64 // on the disk with the files of attempts, where checkpoints are fetched to
	FilesTotal  int64 // of that disk in bytes; 0 = not known
	OutputBytes int64 // what files of attempts take; 0 = not known
	Problem     string

	Devices []DeviceFree // devices that the worker sees; other devices keep their values

	OutputsProblem string // what a person must do something about, see Host; the host gives all away
}

// MachineHost is another host that a worker of the same machine registered in
// the machine's current boot.
type MachineHost struct {
	ID       string
	Name     string
	DataDir  string
	Attempts int  // unreleased leases
	Served   bool // its worker runs
}

// UsedByOthersBytes is what programs outside Berth use of the host's memory, as measured last; 0 while it
// has a Problem: without Docker's list what its own attempts hold is not told from what others do.
func (h *Host) UsedByOthersBytes() int64 {
	if h.Problem != "" {
		return 0
	}

	return max(h.MemoryBytes-h.MemoryFreeBytes, 0)
}

// CapacityBytes is the memory that all leases of the host may hold together.
func (h *Host) CapacityBytes() int64 { return h.MemoryBytes - h.MemoryHeadroomBytes }

// AloneBytes is what an attempt alone on a host of such a capacity can have: not
// what programs outside Berth use, or it would wait for them to end, and a
// twentieth less than what they leave now, as they come and go.
func AloneBytes(capacityBytes, freeBytes int64) int64 {
	if freeBytes <= 0 || freeBytes >= capacityBytes {
		return capacityBytes
	}

	return (freeBytes - freeBytes/20) / Granule * Granule
}

// DiskLow reports whether the host starts nothing new for want of disk.
func (h *Host) DiskLow() bool { return h.DiskFreeBytes < h.DiskHeadroomBytes }
