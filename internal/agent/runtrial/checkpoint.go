package runtrial

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/berthml/berth"
)

// probeCheckpoint is the checkpoint directory of a short probe, inside the
// attempt's own directory. That it is there marks an attempt whose files are
// thrown away.
const probeCheckpoint = "checkpoint"

// ofProbe are the directories of a short probe. It shares nothing with the
// trial: what it writes goes when it ends.
func (d dirs) ofProbe() dirs {
	d.checkpoint = filepath.Join(d.attempt, probeCheckpoint)

	return d
}

// short reports whether the attempt's container is a short probe. A launch that
// was kept decides: the order for an attempt that its host takes back may have
// been written for the attempt that was to replace it.
func (d dirs) short(order berth.Order) bool {
	if l, found := d.launch(order.Token); found {
		return l.Environment[modeVariable] == modeProbe
	}

	return order.Short
}

// thrownAway reports whether the directories are those of a short probe.
func (d dirs) thrownAway() bool {
	_, err := os.Lstat(filepath.Join(d.attempt, probeCheckpoint))

	return err == nil
}

// passing are files in which nothing lasts.
const passing = fs.ModeSocket | fs.ModeNamedPipe | fs.ModeDevice | fs.ModeCharDevice | fs.ModeIrregular

// hasCheckpoint reports whether a file or a link lies in the checkpoint directory. A
// directory that is closed to Berth counts as one: the job made it.
func (d dirs) hasCheckpoint() bool {
	found := false

	_ = filepath.WalkDir(d.checkpoint, func(path string, entry fs.DirEntry, err error) error { // what fails was found
		switch {
		case err != nil:
			found = path != d.checkpoint
		case !entry.IsDir() && entry.Type()&passing == 0:
			found = true
		default:
			return nil
		}

		return fs.SkipAll
	})

	return found
}

// again is the launch for another container of the attempt, whose first one was removed: it finds
// what that one wrote, and is told so. A default changes nothing of what identifies the launch.
func (r *run) again(l berth.Launch) berth.Launch {
	if l.Environment[resumeVariable] != "" || !r.resumes() {
		return l
	}

	l.Defaults = maps.Clone(l.Defaults)
	if l.Defaults == nil {
		l.Defaults = make(map[string]string)
	}

	l.Defaults[resumeVariable] = "1"

	return l
}

// resumeVariable tells a job that it finds files in its checkpoint directory.
const resumeVariable = "TRIAL_RESUME"

// resumes reports whether a container finds files of an earlier container of its
// trial. Short probes write elsewhere, so what lies there is of an attempt that
// counts, also when a restored database does not know that attempt any more.
func (r *run) resumes() bool {
	return !r.short && r.dirs.hasCheckpoint()
}
