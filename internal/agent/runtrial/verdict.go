package runtrial

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// verdictName is the file that keeps an attempt's outcome until that is committed.
const verdictName = "verdict.json"

// verdict is an attempt's outcome, written down before the database is told
// (rule R6), with what else a commit needs once the container and its log are
// gone. The first one written stands.
type verdict struct {
	pending

	AttemptID string                `json:"attempt_id"`
	Token     int64                 `json:"token"`
	Outcome   berth.Outcome         `json:"outcome"`
	Source    berth.FootprintSource `json:"source"`
	Intent    failure.Intent        `json:"intent,omitempty"` // why Berth ended it
	Tail      []string              `json:"tail,omitempty"`   // last lines of both streams, by which it was judged

	ContainerID  string `json:"container_id,omitempty"`  // empty = no container of it started
	InputMissing bool   `json:"input_missing,omitempty"` // an output or a data set that it reads was missing
	ImageMissing bool   `json:"image_missing,omitempty"` // it did not start for want of its image

	unwritten bool // it is in memory only
}

// keepVerdict writes a verdict so that neither a killed worker nor a power cut
// loses it: a temporary name, fsync, rename, fsync of the directory.
func (d dirs) keepVerdict(v verdict) error {
	data, err := json.Marshal(v)
	if err != nil {
		return berth.Errorf(berth.KindInternal, "encoding verdict: %w", err)
	}

	if err := os.MkdirAll(d.attempt, 0o700); err != nil {
		return fmt.Errorf("making directory: %w", err)
	}

	path := filepath.Join(d.attempt, verdictName)
	temporary := path + ".tmp"

	if err := writeSynced(temporary, data); err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}

	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("writing %q: %w", path, err)
	}

	return syncDir(d.attempt)
}

// verdict returns what was written down for this token. That of another token
// is nobody's any more and is removed, and so is one that cannot be read: the
// container, which stays until the commit, is then judged anew.
func (d dirs) verdict(token int64) (v verdict, found bool, err error) {
	path := filepath.Join(d.attempt, verdictName)

	data, err := os.ReadFile(path) //nolint:gosec // G304: below our data directory
	if errors.Is(err, fs.ErrNotExist) {
		return v, false, nil
	}

	if err != nil {
		return v, false, fmt.Errorf("reading verdict: %w", err)
	}

	if err = json.Unmarshal(data, &v); err == nil && v.Token == token {
		return v, true, nil
	}

	return verdict{}, false, os.Remove(path)
}

// measured is what earlier Runs measured of an attempt that is over.
func (r *run) measured() berth.Usage {
	u := most(r.order.Progress.Usage, r.dirs.record(r.container.ID).Usage)
	u.SeenUntil, u.DeviceSeenUntil = time.Time{}, time.Time{}

	return u
}

// most is the larger of two readings of one attempt, figure by figure. Gaps
// and counters that may change are those of the later one.
func most(a, b berth.Usage) berth.Usage {
	later := a
	if b.SeenUntil.After(a.SeenUntil) {
		later = b
	}

	return berth.Usage{
		MemoryPeakBytes:    max(a.MemoryPeakBytes, b.MemoryPeakBytes),
		DevicePeakBytes:    max(a.DevicePeakBytes, b.DevicePeakBytes),
		FrameworkPeakBytes: max(a.FrameworkPeakBytes, b.FrameworkPeakBytes),
		DeviceSamples:      max(a.DeviceSamples, b.DeviceSamples),
		CPU:                max(a.CPU, b.CPU),
		CPUPeriods:         max(a.CPUPeriods, b.CPUPeriods),
		CPUThrottled:       max(a.CPUThrottled, b.CPUThrottled),
		Wall:               max(a.Wall, b.Wall),
		Samples:            max(a.Samples, b.Samples),
		CPUContended:       a.CPUContended || b.CPUContended,
		OOMKills:           max(a.OOMKills, b.OOMKills),
		BelowLimit:         later.BelowLimit,
		Unseen:             later.Unseen,
		SeenUntil:          later.SeenUntil,
		DeviceUnseen:       later.DeviceUnseen,
		DeviceSeenUntil:    later.DeviceSeenUntil,
		DeviceActivity:     later.DeviceActivity,
		DevicePhases:       later.DevicePhases,
		Steps:              max(a.Steps, b.Steps),
		StepTime:           later.StepTime,
		DeviceActive:       later.DeviceActive,
		DeviceUnknown:      later.DeviceUnknown,
		DeviceContended:    later.DeviceContended,
	}
}

func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // G304: below our data directory
	if err != nil {
		return err
	}

	_, err = file.Write(data)

	return errors.Join(err, file.Sync(), file.Close())
}

// syncDir makes a rename in a directory survive a power cut.
func syncDir(path string) error {
	dir, err := os.Open(path) //nolint:gosec // G304: below our data directory
	if err != nil {
		return fmt.Errorf("opening %q: %w", path, err)
	}

	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("syncing %q: %w", path, err)
	}

	return nil
}
