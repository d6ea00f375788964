package runtrial

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

const (
	// recordName is the file that keeps how far the Runs of an attempt came.
	recordName = "run.json"
	// recordBytes is the size of that file, or a multiple: a block, so that what is kept
	// takes no more of a disk that filled up since.
	recordBytes = 4 << 10
)

// record is what a Run leaves to the Run that adopts the container. It is not synced: a
// power cut ends the container as well.
type record struct {
	Container string         `json:"container"` // its id
	Usage     berth.Usage    `json:"usage"`     // what was measured so far
	Intent    failure.Intent `json:"intent,omitempty"`
	AskedAt   time.Time      `json:"asked_at,omitzero"`  // when Berth asked the container to stop, for its intent
	StopWhy   string         `json:"stop_why,omitempty"` // of early stopping, in numbers
	Source    string         `json:"source,omitempty"`   // where its metrics come from; empty = none was chosen
	Log       reading        `json:"log,omitzero"`
	Disk      keptDisk       `json:"disk,omitzero"`
}

// keep changes the record and writes it down, unless the file has it.
func (r *run) keep(change func(k *record)) error {
	r.keeping.Lock()
	defer r.keeping.Unlock()

	change(&r.kept)
	r.kept.Container = r.container.ID

	data, err := json.Marshal(r.kept)
	if err != nil {
		return berth.Errorf(berth.KindInternal, "encoding record of a run: %w", err)
	}

	if bytes.Equal(data, r.keptData) {
		return nil
	}

	if err := r.dirs.keepRecord(data); err != nil {
		return err
	}

	r.keptData = data

	return nil
}

// keepRecord overwrites the file in place: a full disk takes no second copy.
func (d dirs) keepRecord(data []byte) error {
	file, err := os.OpenFile(filepath.Join(d.attempt, recordName), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}

	size := (max(int(info.Size()), len(data)) + recordBytes - 1) / recordBytes * recordBytes
	spaces := bytes.Repeat([]byte(" "), size)

	if more := spaces[info.Size():]; len(more) > 0 { // first, so that a full disk harms nothing
		_, err = file.WriteAt(more, info.Size())
	}

	if err == nil {
		_, err = file.WriteAt(append(data, spaces[len(data):]...), 0)
	}

	return errors.Join(err, file.Close())
}

// record is what was written down of a container; zero when nothing was. An attempt that
// is given back to its host has a new token and the container of before. An empty id stands
// for whatever container the attempt had.
func (d dirs) record(container string) (k record) {
	if !readJSON(filepath.Join(d.attempt, recordName), &k) || container != "" && k.Container != container {
		return record{}
	}

	return k
}
