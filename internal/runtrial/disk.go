package runtrial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

const (
	// diskName is the file that keeps the least that the host's disks had free.
	diskName = "disk.json"
	// diskRecordBytes is the size of that file: its longest content has 160 bytes.
	diskRecordBytes = 256
)

// keptDisk is the least that was seen free while a container ran. A disk may have
// room again when the container is judged: a trial removed a file that it had
// begun, or a person freed space.
type keptDisk struct {
	Container    string `json:"container"` // its id
	FreeBytes    int64  `json:"free_bytes"`
	LogFreeBytes int64  `json:"log_free_bytes"`
}

// diskWatch is what was seen of the disks, and what of it is kept.
type diskWatch struct {
	failure.DiskEvidence

	kept keptDisk // zero before the first was written
}

// diskWatch goes on from what an earlier run of the container saw.
func (r *run) diskWatch() (w diskWatch) {
	if r.config.DiskFree == nil {
		return w
	}

	w.HeadroomBytes = r.config.DiskHeadroom
	w.Missed = r.container.Adopted && r.container.State == berth.ContainerExited

	if kept, found := r.dirs.disk(r.container.ID); found {
		w.kept, w.Measured = kept, true
		w.FreeBytes, w.LogFreeBytes = kept.FreeBytes, kept.LogFreeBytes
	}

	return w
}

// lookAtDisk takes in what the disks have free now.
func (r *run) lookAtDisk(w *diskWatch) {
	if r.config.DiskFree == nil {
		return
	}

	files, logs, err := r.config.DiskFree()
	if err != nil {
		r.log.Warn("reading what is free on the host's disks", "error", err)

		return
	}

	if w.Measured {
		files, logs = min(files, w.FreeBytes), min(logs, w.LogFreeBytes)
	}

	w.Measured, w.FreeBytes, w.LogFreeBytes = true, files, logs
	r.keepDisk(w)
}

// keepDisk writes the least down. What is above the headroom is evidence of
// nothing, so it is written once, while there is room for the file.
func (r *run) keepDisk(w *diskWatch) {
	least := keptDisk{Container: r.container.ID, FreeBytes: w.FreeBytes, LogFreeBytes: w.LogFreeBytes}
	if least == w.kept || w.kept.Container != "" && min(least.FreeBytes, least.LogFreeBytes) >= w.KeptBytes() {
		return
	}

	if err := r.dirs.keepDisk(least); err != nil {
		r.log.Warn("writing down what is free on the host's disks", "attempt", r.who.Attempt.ID, "error", err)

		return
	}

	w.kept = least
}

// finalDisk adds what matters of a disk once the container has exited.
func (r *run) finalDisk(ctx context.Context, d failure.DiskEvidence) failure.DiskEvidence {
	if r.config.DiskFree == nil {
		return d
	}

	d.Problem = r.DiskProblem()

	if d.Low() {
		d.OwnBytes = r.dirs.size(context.WithoutCancel(ctx), r.config.Bounds.OutputLimit)
	}

	return d
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

// disk is the least that was seen free while this container ran; found is false
// when that was not written down.
func (d dirs) disk(container string) (k keptDisk, found bool) {
	data, err := os.ReadFile(filepath.Join(d.attempt, diskName))
	if err != nil || json.Unmarshal(data, &k) != nil || container == "" || k.Container != container {
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
