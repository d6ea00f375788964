package runtrial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/berthml/berth/internal/failure"
)

// keptDisk is what was seen of the host's disks while a container ran: of each the
// last time that it was full, else the least that was free. A disk may have room
// again when the container is judged: a trial removed a file that it had begun,
// or a person freed space.
type keptDisk struct {
	Seen         bool      `json:"seen"` // false = nothing was
	FreeBytes    int64     `json:"free_bytes"`
	LogFreeBytes int64     `json:"log_free_bytes"`
	FilledBytes  int64     `json:"filled_bytes,omitempty"` // of the attempt's files at its end, if it alone had filled the disk; else 0
	Low          bool      `json:"low,omitempty"`          // the disk had less than its headroom at the last look
	RoomBytes    int64     `json:"room_bytes,omitempty"`   // of the attempt's files when the disk last had its headroom
	FullAt       time.Time `json:"full_at,omitzero"`       // when the disk was last seen full; zero = never
	LogFullAt    time.Time `json:"log_full_at,omitzero"`   // the same of the disk of Docker's logs
}

// lookAtDisk takes in what the disks have free now. What they have free after the
// container's end is evidence of nothing. What is above the headroom is none either, so
// it is written down once, while there is room for the file.
func (r *run) lookAtDisk() {
	if r.config.DiskFree == nil || r.missed {
		return
	}

	files, logs, err := r.config.DiskFree()
	if err != nil {
		r.log.Warn("reading what is free on the host's disks", "error", err)

		return
	}

	seen, now := &r.disk, time.Now().UTC()

	if !seen.Seen {
		*seen = keptDisk{Seen: true, FreeBytes: math.MaxInt64, LogFreeBytes: math.MaxInt64}
	}

	worst(&seen.FreeBytes, &seen.FullAt, files, now)
	worst(&seen.LogFreeBytes, &seen.LogFullAt, logs, now)

	if seen.Low = files < r.keptBytes(); !seen.Low {
		seen.RoomBytes = r.sized.Load()
	}

	if *seen == r.diskKept || r.diskKept.Seen && min(seen.FreeBytes, seen.LogFreeBytes) >= r.keptBytes() {
		return
	}

	if err := r.keep(func(k *record) { k.Disk = *seen }); err != nil {
		r.log.Warn("writing down what is free on the host's disks", "attempt", r.who.Attempt.ID, "error", err)

		return
	}

	r.diskKept = *seen
}

// worst takes in what a disk has free now: it stands for the disk from now on when the
// disk is full, or has less free than ever and never was full.
func worst(free *int64, fullAt *time.Time, now int64, at time.Time) {
	switch {
	case failure.DiskFull(now):
		*free, *fullAt = now, at
	case !failure.DiskFull(*free):
		*free = min(*free, now)
	}
}

// filledBytes is what the files of an attempt take that has ended, if it alone filled the
// disk; else 0. Without what it wrote since the disk last had its headroom the disk would
// have that still, and its files are more than half of all attempts' there.
func (r *run) filledBytes(ctx context.Context) int64 {
	seen := r.disk
	if !seen.Low || seen.FilledBytes > 0 { // then its files may be gone by now (makeRoom)
		return seen.FilledBytes
	}

	limit, _ := r.outputLimit()
	own := r.dirs.size(ctx, limit)

	if own-seen.RoomBytes < r.keptBytes()-seen.FreeBytes ||
		sizeBelow(ctx, 2*own, r.attemptsDir(), r.checkpointsDir()) > 2*own || ctx.Err() != nil {
		return 0
	}

	return own
}

func (r *run) keptBytes() int64 {
	return failure.DiskEvidence{HeadroomBytes: r.config.DiskHeadroom}.KeptBytes()
}

// diskEvidence is what is known of the disks when the container has ended.
func (r *run) diskEvidence(ctx context.Context, ended time.Time) failure.DiskEvidence {
	if r.config.DiskFree == nil {
		return failure.DiskEvidence{}
	}

	r.disk.FilledBytes = r.filledBytes(ctx)
	seen := r.disk
	d := failure.DiskEvidence{
		Measured: seen.Seen, FreeBytes: seen.FreeBytes, LogFreeBytes: seen.LogFreeBytes, FilledBytes: seen.FilledBytes,
		HeadroomBytes: r.config.DiskHeadroom, Missed: r.missed, Problem: r.DiskProblem(),
	}

	if !seen.FullAt.IsZero() {
		d.FullBefore = max(ended.Sub(seen.FullAt), 0)
	}

	if d.Missed {
		_, logs, err := r.config.DiskFree()
		d.LogUnseen = err == nil && failure.DiskFull(logs)
	}

	return d
}

// DiskProblem says why the disk of the data directory takes no attempts, in plain
// words; empty = it takes them. Bytes free do not tell: a disk may be out of
// inodes or read-only, or refuse its worker. So it makes a directory, as every
// attempt does first.
func (e *Executor) DiskProblem() string {
	probe := filepath.Join(e.config.DataDir, "probe")

	err := os.MkdirAll(probe, 0o700)
	if err == nil {
		err = os.Remove(probe)
	}

	if err == nil || errors.Is(err, fs.ErrNotExist) { // another call removed it
		return ""
	}

	return fmt.Sprintf("its data directory takes no new files; free space or inodes there, or mend the disk: %v", err)
}
