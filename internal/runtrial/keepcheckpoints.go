package runtrial

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// checkpointSettles is how long a checkpoint must not change to count as whole: with one
// to keep, the one before goes only when there is another.
const checkpointSettles = 5 * time.Second

var (
	numbers = regexp.MustCompile(`\d+`)
	// parts of one checkpoint: model-00001-of-00003.safetensors
	partsOf = regexp.MustCompile(`\d+-of-\d+`)
)

// checkpointKind is equal for names that differ in numbers only; empty for a name without
// numbers, which is of no kind.
func checkpointKind(name string) string {
	var kind strings.Builder

	at, numbered := 0, false

	add := func(text string) {
		numbered = numbered || numbers.MatchString(text)
		kind.WriteString(numbers.ReplaceAllString(text, "#"))
	}

	for _, part := range partsOf.FindAllStringIndex(name, -1) {
		add(name[at:part[0]])
		kind.WriteString(name[part[0]:part[1]])

		at = part[1]
	}

	if add(name[at:]); !numbered {
		return ""
	}

	return kind.String()
}

// checkpoint is a file or directory in the checkpoint directory.
type checkpoint struct {
	name    string
	changed time.Time // of a directory, the newest of all below it
}

// thinCheckpoints keeps the newest checkpoints of each kind, as many as the sweep file
// says, and all that changed within settles. What cannot be removed stays: the job may
// have closed it to Berth, and it counts in the attempt's files.
func (r *run) thinCheckpoints(settles time.Duration) {
	keep := r.who.Spec.Limits.KeepCheckpoints
	if keep == 0 {
		return
	}

	root, err := os.OpenRoot(r.dirs.checkpoint)
	if err != nil {
		return // not there
	}
	defer root.Close() //nolint:errcheck // what it removed, it removed

	for _, name := range surplus(checkpointsIn(root), keep, time.Now().Add(-settles)) {
		if err := root.RemoveAll(name); err != nil {
			r.log.Warn("removing an old checkpoint", "attempt", r.who.Attempt.ID, "name", name, "error", err)
		}
	}
}

// checkpointsIn are the entries of a directory.
func checkpointsIn(root *os.Root) []checkpoint {
	dir, err := root.Open(".")
	if err != nil {
		return nil // closed to us
	}
	defer dir.Close() //nolint:errcheck // only read

	names, _ := dir.Readdirnames(mostEntries) // of more, the others stay
	found := make([]checkpoint, 0, len(names))

	for _, name := range names {
		info, err := root.Lstat(name)
		if err != nil || checkpointKind(name) == "" {
			continue
		}

		c := checkpoint{name: name, changed: info.ModTime()}
		if info.IsDir() {
			c.changed = newest(root, name, c.changed)
		}

		found = append(found, c)
	}

	return found
}

// newest is when something below a directory was written last.
func newest(root *os.Root, name string, changed time.Time) time.Time {
	below, err := root.OpenRoot(name)
	if err != nil {
		return changed // gone, or closed to us
	}
	defer below.Close() //nolint:errcheck // only read

	_ = walkRoot(below, "", func(_ string, info fs.FileInfo) error { // what fails counts as it is
		if info.ModTime().After(changed) {
			changed = info.ModTime()
		}

		return nil
	})

	return changed
}

// surplus names the checkpoints that are not among the newest so many of their kind that
// last changed before a time. Those that changed since stay beside them.
func surplus(all []checkpoint, keep int, before time.Time) (names []string) {
	slices.SortFunc(all, func(a, b checkpoint) int { return b.changed.Compare(a.changed) })

	kept := make(map[string]int)

	for _, c := range all {
		if !c.changed.Before(before) {
			continue
		}

		kind := checkpointKind(c.name)
		if kept[kind]++; kept[kind] > keep {
			names = append(names, c.name)
		}
	}

	return names
}

// checkpointsEnd keeps exactly the newest checkpoints of a trial that has a result.
func (r *run) checkpointsEnd() { r.thinCheckpoints(-time.Hour) }
