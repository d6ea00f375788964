package runtrial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

const (
	// diskName is the file that keeps what was seen of the host's disks.
	diskName = "disk.json"
	// diskRecordBytes is the size of that file: its longest content has 400 bytes.
	diskRecordBytes = 512
)

// keptDisk is what was seen of the host's disks while a container ran: of each the
// last time that it was full, else the least that was free. A disk may have room
// again when the container is judged: a trial removed a file that it had begun,
// or a person freed space.
type keptDisk struct {
	Container    string    `json:"container"` // its id; empty = nothing was seen
	FreeBytes    int64     `json:"free_bytes"`
	LogFreeBytes int64     `json:"log_free_bytes"`
	FilledBytes  int64     `json:"filled_bytes,omitempty"` // of the attempt's files at its end, if it alone had filled the disk; else 0
	Low          bool      `json:"low,omitempty"`          // the disk had less than its headroom at the last look
	RoomBytes    int64     `json:"room_bytes,omitempty"`   // of the attempt's files when the disk last had its headroom
	FullAt       time.Time `json:"full_at,omitzero"`       // when the disk was last seen full; zero = never
	RoomAt       time.Time `json:"room_at,omitzero"`       // when it was first seen with room after that; zero = not since, or it never was full
	LogFullAt    time.Time `json:"log_full_at,omitzero"`   // the same of the disk of Docker's logs
	LogRoomAt    time.Time `json:"log_room_at,omitzero"`

	// Intent is why Berth ended the attempt when its files have gone before its
	// verdict was safe (makeRoom). Else it is where all intents are (keptIntent).
	Intent failure.Intent `json:"intent,omitempty"`
}

// diskWatch is what was seen of the disks, and what of it is on disk.
type diskWatch struct {
	seen   keptDisk
	kept   keptDisk
	missed bool // the container had exited before this run
}

// diskWatch goes on from what an earlier run of the container saw.
func (r *run) diskWatch() diskWatch {
	kept, _ := r.dirs.disk(r.container.ID)

	return diskWatch{seen: kept, kept: kept, missed: r.container.Adopted && r.container.State == berth.ContainerExited}
}

// lookAtDisk takes in what the disks have free now. What they have free after the
// container's end is evidence of nothing.
func (r *run) lookAtDisk() {
	if r.config.DiskFree == nil || r.disk.missed {
		return
	}

	files, logs, err := r.config.DiskFree()
	if err != nil {
		r.log.Warn("reading what is free on the host's disks", "error", err)

		return
	}

	seen, now := &r.disk.seen, time.Now().UTC()

	if seen.Container == "" {
		*seen = keptDisk{Container: r.container.ID, FreeBytes: math.MaxInt64, LogFreeBytes: math.MaxInt64}
	}

	worst(&seen.FreeBytes, &seen.FullAt, &seen.RoomAt, files, now)
	worst(&seen.LogFreeBytes, &seen.LogFullAt, &seen.LogRoomAt, logs, now)

	if seen.Low = files < r.keptBytes(); !seen.Low {
		seen.RoomBytes = r.sized.Load()
	}

	r.keepDisk()
}

// worst takes in what a disk has free now: it stands for the disk from now on when the
// disk is full, or has less free than ever and never was full.
func worst(free *int64, fullAt, roomAt *time.Time, now int64, at time.Time) {
	switch {
	case failure.DiskFull(now):
		*free, *fullAt, *roomAt = now, at, time.Time{}
	case failure.DiskFull(*free):
		if roomAt.IsZero() {
			*roomAt = at
		}
	default:
		*free = min(*free, now)
	}
}

// filledBytes is what the files of an attempt take that has ended, if it alone filled the
// disk; else 0. Without what it wrote since the disk last had its headroom the disk would
// have that still, and its files are more than half of all attempts' there.
func (r *run) filledBytes(ctx context.Context) int64 {
	seen := r.disk.seen
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

// keepDisk writes down what was seen. What is above the headroom is evidence of
// nothing, so it is written once, while there is room for the file.
func (r *run) keepDisk() {
	w := &r.disk
	if w.seen == w.kept || w.kept.Container != "" && min(w.seen.FreeBytes, w.seen.LogFreeBytes) >= r.keptBytes() {
		return
	}

	if err := r.dirs.keepDisk(w.seen); err != nil {
		r.log.Warn("writing down what is free on the host's disks", "attempt", r.who.Attempt.ID, "error", err)

		return
	}

	w.kept = w.seen
}

// diskEvidence is what is known of the disks when the container has ended.
func (r *run) diskEvidence(ctx context.Context, ended time.Time) failure.DiskEvidence {
	if r.config.DiskFree == nil {
		return failure.DiskEvidence{}
	}

	r.disk.seen.FilledBytes = r.filledBytes(ctx)
	seen := r.disk.seen
	d := failure.DiskEvidence{
		Measured: seen.Container != "", FreeBytes: seen.FreeBytes, LogFreeBytes: seen.LogFreeBytes, FilledBytes: seen.FilledBytes,
		HeadroomBytes: r.config.DiskHeadroom, Missed: r.disk.missed, Problem: r.DiskProblem(),
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

// reportedSince reports whether a report was printed after the disk of Docker's
// logs was last full, and none that may have followed was lost: the report is a
// final one, or that disk was seen with room before it.
func (k keptDisk) reportedSince(at time.Time, final bool) bool {
	if final {
		return !k.LogFullAt.IsZero() && at.After(k.LogFullAt)
	}

	return !k.LogRoomAt.IsZero() && at.After(k.LogRoomAt)
}

// keepDisk overwrites the file in place: a full disk takes no second copy.
func (d dirs) keepDisk(k keptDisk) error {
	data, err := json.Marshal(k)
	if err != nil {
		return berth.Errorf(berth.KindInternal, "encoding what is free on disks: %w", err)
	}

	data = append(data, bytes.Repeat([]byte(" "), max(diskRecordBytes-len(data), 0))...)

	file, err := os.OpenFile(filepath.Join(d.attempt, diskName), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	_, err = file.WriteAt(data, 0)

	return errors.Join(err, file.Close())
}

// disk is what was seen of the disks while this container ran; found is false
// when that was not written down.
func (d dirs) disk(container string) (k keptDisk, found bool) {
	if !readJSON(filepath.Join(d.attempt, diskName), &k) || container == "" || k.Container != container {
		return keptDisk{}, false
	}

	return k, true
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
