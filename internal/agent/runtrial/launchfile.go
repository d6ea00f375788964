package runtrial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berthml/berth"
)

// launchName is the file that keeps an attempt's launch.
const launchName = "launch.json"

// keptLaunch is how an attempt was first launched. Later calls use it as it is:
// by then the checkpoint directory has filled, and another version of Berth may
// inject other variables.
type keptLaunch struct {
	Token    int64        `json:"token"`
	SpecHash string       `json:"spec_hash,omitempty"` // of the container's label; empty until the container was seen
	Launch   berth.Launch `json:"launch"`
}

// keepLaunch writes a launch down. The file is not synced: a power cut ends the
// container as well.
func (d dirs) keepLaunch(l berth.Launch) error {
	if err := os.MkdirAll(d.attempt, 0o700); err != nil {
		return fmt.Errorf("making directory: %w", err)
	}

	return writeJSON(filepath.Join(d.attempt, launchName), "launch", keptLaunch{Token: l.Token, SpecHash: l.SpecHash, Launch: l})
}

// launch is the launch that was written down for this token. Without a readable
// one found is false, and the attempt's token alone identifies its container.
func (d dirs) launch(token int64) (l berth.Launch, found bool) {
	var kept keptLaunch
	if !readJSON(filepath.Join(d.attempt, launchName), &kept) || kept.Token != token {
		return l, false
	}

	l = kept.Launch
	l.SpecHash = kept.SpecHash

	return l, true
}

// prepared reports whether an attempt was prepared to its end before, by
// whatever version of Berth: the parameters are written last.
func (d dirs) prepared() bool {
	_, err := os.Lstat(filepath.Join(d.in, paramsName))

	return !errors.Is(err, fs.ErrNotExist)
}

// mounted returns the directories that a container really has, as far as they
// are there: it may have been started with another data directory.
func (d dirs) mounted(mounts []berth.Mount) dirs {
	for _, m := range mounts {
		info, err := os.Stat(m.Source)
		if err != nil || !info.IsDir() {
			continue
		}

		switch m.Target {
		case mountOut:
			d.out = m.Source
		case mountCheckpoint:
			d.checkpoint = m.Source
		}
	}

	return d
}
