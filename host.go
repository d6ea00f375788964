package berth

import "time"

// HostState says whether new attempts may be placed on a host.
type HostState string

// The states of a host.
const (
	HostReady    HostState = "ready"    // takes attempts
	HostDraining HostState = "draining" // a person asked for no new attempts
	HostLost     HostState = "lost"     // its worker has been silent for HostLostAfter
	HostUnready  HostState = "unready"  // its worker answers and reports a Problem
	HostFormer   HostState = "former"   // its earlier size or state (Problem says what happened); takes nothing, and counts until FormerUntil
)

// WorkerStarts is the problem of a host whose worker registers it, which takes a moment.
const WorkerStarts = "its worker is starting"

// Passing reports whether the host's problem ends by itself in a moment.
func (h *Host) Passing() bool { return h.State == HostUnready && h.Problem == WorkerStarts }

// HostLostAfter is how long a silent worker keeps getting attempts: three
// missed heartbeats of 15 s.
const HostLostAfter = 45 * time.Second

// HostLateAfter is how long a worker may be silent before other hosts are
// preferred: one missed heartbeat and 5 s on a slow network.
const HostLateAfter = LeaseRenewEvery + 5*time.Second

// HostGrace is how long a request waits for a removed host, or for one that
// came back smaller: time to start the replacement, or the worker with the
// right flags. Then Berth refuses the request.
const HostGrace = 15 * time.Minute

// CheckpointSilence is how long a host that is to store a checkpoint may be silent
// before attempts stop waiting for it. For a restart, or while the database is away,
// hours of work are not given up.
const CheckpointSilence = time.Hour

// StageSilence is how long the host with the only copy of a stage's output may be silent
// before the stage runs again elsewhere: time to restart its worker, or the database.
const StageSilence = 5 * time.Minute

// Host is a machine with a worker. Totals are the most that Berth may hand out; headroom is kept
// free on purpose; reserved is the sum of leases. It exceeds the totals for a while when the
// worker came back with smaller ones. Berth reserves no disk: while less is free than the headroom,
// nothing new starts.
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
	MemoryFreeBytes     int64     `json:"memory_free_bytes"` // total less the use of processes outside Berth now; includes reservations and headroom
	DiskFreeBytes       int64     `json:"disk_free_bytes"`   // measured, where trials keep files and Docker its containers
	DiskHeadroomBytes   int64     `json:"disk_headroom_bytes"`
	DiskBytes           int64     `json:"disk_bytes,omitempty"`        // size of that disk; 0 = not known
	DiskGrowthBytes     int64     `json:"disk_growth_bytes,omitempty"` // how much more of it is in use than a day before; 0 = not known
	OutputBytes         int64     `json:"output_bytes,omitempty"`      // size of the attempts' files
	MaxAttempts         int       `json:"max_attempts"`                // 0 = no limit
	Attempts            int       `json:"attempts"`                    // unreleased leases
	Exclusive           bool      `json:"exclusive"`                   // one of them wants the host for itself
	Devices             []Device  `json:"devices"`
	Datasets            []string  `json:"datasets,omitempty"`    // that its worker mounts, sorted: NAME@VERSION, or NAME while the version is not known
	SecretKeys          []string  `json:"secret_keys,omitempty"` // public parts of the keys with which its worker opens secrets, sorted
	StoresCheckpoints   bool      `json:"-"`                     // its worker has a store: it also fetches checkpoints from there
	LastSeenAt          time.Time `json:"last_seen_at"`
	Late                bool      `json:"-"`                         // silent for HostLateAfter: it may be gone
	OutputsProblem      string    `json:"outputs_problem,omitempty"` // files that cannot be removed, or a limit that cannot be kept, in plain words
	Problem             string    `json:"problem,omitempty"`         // why its worker takes no attempts, in plain words; empty = it takes them
	FormerUntil         time.Time `json:"-"`                         // of a former host: when it counts no more

	// A host that failed to start several trials in a row is cordoned: it takes
	// only a test attempt from time to time, until one of them starts.
	FailedStarts int        `json:"failed_starts,omitempty"` // different trials, since a container last started there
	CordonedAt   *time.Time `json:"cordoned_at,omitempty"`
	CordonReason string     `json:"cordon_reason,omitempty"` // the last failure
	CordonSweep  string     `json:"cordon_sweep,omitempty"`  // only this sweep's trials failed, and only it is kept away; empty = all are
	TestDue      bool       `json:"-"`                       // the next test attempt may be placed

	MissingImages []MissingImage `json:"-"` // sweeps whose trials lately did not start there for want of their image
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

// HostFree is the free capacity of a host at one moment, as measured there.
// With a Problem it gives nothing away.
type HostFree struct {
	MemoryBytes int64 // total less the use of processes outside Berth
	DiskBytes   int64 // on the fuller of the disks that trials write to
	DiskTotal   int64 // of that disk in bytes; 0 = not known
	OutputBytes int64 // size of the attempts' files; 0 = not known
	Problem     string

	Datasets []string // as Host has them; nil = as before

	Devices []DeviceFree // devices that the worker sees; other devices keep their values

	OutputsProblem string // a problem that a person must solve, see Host; the host still takes attempts
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

// UsedByOthersBytes is the last measured memory of programs outside Berth on the host; 0 while it has a
// Problem, because without Docker's list its own attempts' memory is not known.
func (h *Host) UsedByOthersBytes() int64 {
	if h.Problem != "" {
		return 0
	}

	return max(h.MemoryBytes-h.MemoryFreeBytes, 0)
}

// CapacityBytes is the memory that all leases of the host may hold together.
func (h *Host) CapacityBytes() int64 { return h.MemoryBytes - h.MemoryHeadroomBytes }

// AloneBytes is how much memory an attempt alone on a host of this capacity can
// have: without the memory of programs outside Berth, or it would wait for them
// to end, and a twentieth less than they leave now, because their use varies.
func AloneBytes(capacityBytes, freeBytes int64) int64 {
	if freeBytes <= 0 || freeBytes >= capacityBytes {
		return capacityBytes
	}

	return (freeBytes - freeBytes/20) / Granule * Granule
}

// DiskLow reports whether the host starts nothing new for want of disk.
func (h *Host) DiskLow() bool { return h.DiskFreeBytes < h.DiskHeadroomBytes }
