package runtrial

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth/internal/filetime"
)

// checkpointSettles is how long a checkpoint must not change to count as whole: with one
// to keep, the one before goes only when there is another.
const checkpointSettles = 5 * time.Second

// checkpoint is a file or directory in the checkpoint directory.
type checkpoint struct {
	name    string
	kind    string    // empty = it is no checkpoint, and stays
	numbers []string  // of its name
	number  string    // that says of what epoch or step it is; files of one number belong together
	changed time.Time // of a directory, the newest of all below it; never later than it came to this host
	dir     bool      // it may be written in parts, with pauses between
	leads   []string  // names beside it that it, or a link below it, leads to
}

// thinCheckpoints keeps the newest checkpoints of each kind, as many as the sweep file
// says, and all that changed lately; of directories one more, as the newest may still
// lack a part. What an earlier attempt left may be half a
// checkpoint, cut off by a kill: until this attempt has written a newer one of a kind,
// nothing of that kind goes. What cannot be removed stays: the job may have closed it to
// Berth, and it counts in the attempt's files.
func (r *run) thinCheckpoints() {
	if r.startedAt.IsZero() {
		return // nobody knows what this attempt wrote
	}

	r.thin(thinning{before: time.Now().Add(-checkpointSettles), since: r.startedAt})
}

// checkpointsEnd keeps exactly the newest checkpoints of a trial that has a result.
func (r *run) checkpointsEnd() { r.thin(thinning{before: time.Now().Add(time.Hour), ended: true}) }

func (r *run) thin(by thinning) {
	if by.keep = r.who.Spec.Limits.KeepCheckpoints; by.keep == 0 {
		return
	}

	root, err := os.OpenRoot(r.dirs.checkpoint)
	if err != nil {
		return // not there
	}
	defer root.Close() //nolint:errcheck // what it removed, it removed

	for _, name := range by.surplus(checkpointsIn(root)) {
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
		if err != nil {
			continue
		}

		c := checkpoint{name: name, changed: changedAt(info)}
		c.kind, c.numbers = checkpointKind(name)
		c.look(root, name, info)

		if c.dir = info.IsDir(); c.dir {
			c.lookBelow(root)
		}

		found = append(found, c)
	}

	setNumbers(found)

	return found
}

// lookBelow finds what lies in a directory.
func (c *checkpoint) lookBelow(root *os.Root) {
	below, err := root.OpenRoot(c.name)
	if err != nil {
		return // gone, or closed to us
	}
	defer below.Close() //nolint:errcheck // only read

	_ = walkRoot(below, "", func(file string, info fs.FileInfo) error { // what fails counts as it is
		c.look(root, path.Join(c.name, file), info)

		return nil
	})
}

// changedAt is when a file was written. A program, or a host whose clock is ahead, may
// have put a later time on it than that at which this host got it.
func changedAt(info fs.FileInfo) time.Time {
	if got := filetime.Changed(info); got.Before(info.ModTime()) {
		return got
	}

	return info.ModTime()
}

// look takes in when a file was written, and where a link leads to.
func (c *checkpoint) look(root *os.Root, file string, info fs.FileInfo) {
	if at := changedAt(info); at.After(c.changed) {
		c.changed = at
	}

	if info.Mode()&fs.ModeSymlink == 0 {
		return
	}

	to, err := root.Readlink(file)
	if err != nil {
		return // gone
	}

	if inside, ok := strings.CutPrefix(path.Clean(to), mountCheckpoint+"/"); ok {
		to = inside
	} else {
		to = path.Join(path.Dir(file), to)
	}

	name, _, _ := strings.Cut(to, "/")
	c.leads = append(c.leads, name)
}

// thinning says which checkpoints go.
type thinning struct {
	keep   int       // of each kind
	before time.Time // those that changed since are beside them
	since  time.Time // what was written earlier may not be whole, however old it is
	ended  bool      // nothing is written any more
}

// surplus names the checkpoints that are not among the newest of their kind. Those of one
// number go together, and what a link leads to that stays is there, too.
func (t thinning) surplus(all []checkpoint) []string {
	slices.SortFunc(all, func(a, b checkpoint) int {
		return cmp.Or(b.changed.Compare(a.changed), compareNumbers(b.numbers, a.numbers), cmp.Compare(a.name, b.name))
	})

	settled, own := t.numbers(all)
	kept, goes := make(map[string]int), make(map[string]bool)
	seen := make(map[string]bool) // kinds

	for _, c := range all {
		newest := !seen[c.kind]
		seen[c.kind] = true

		switch {
		case c.kind == "" || !settled[c.number]:
		case c.dir && newest && !t.ended: // more may come into it until the next one is begun
		case kept[c.kind] == 0 && !own[c.number]: // may not be whole: it takes no other's place
		default:
			kept[c.kind]++
			goes[c.name] = kept[c.kind] > t.keep
		}
	}

	return together(all, goes)
}

// numbers tells whose files are all settled, and which of these this attempt wrote.
func (t thinning) numbers(all []checkpoint) (settled, own map[string]bool) {
	settled, own = make(map[string]bool), make(map[string]bool)

	for _, c := range all {
		if c.kind == "" {
			continue
		}

		if _, known := settled[c.number]; !known {
			settled[c.number], own[c.number] = true, true
		}

		settled[c.number] = settled[c.number] && c.changed.Before(t.before)
		own[c.number] = own[c.number] && !c.changed.Before(t.since)
	}

	return settled, own
}

// together takes back what goes where something of its number, or a link to it, stays.
func together(all []checkpoint, goes map[string]bool) (names []string) {
	for again := true; again; {
		again = false
		needed, numbers := make(map[string]bool), make(map[string]bool)

		for _, c := range all {
			if goes[c.name] {
				continue
			}

			if c.kind != "" {
				numbers[c.number] = true
			}

			for _, name := range c.leads {
				needed[name] = true
			}
		}

		for _, c := range all {
			if goes[c.name] && (needed[c.name] || numbers[c.number]) {
				goes[c.name], again = false, true
			}
		}
	}

	for _, c := range all {
		if goes[c.name] {
			names = append(names, c.name)
		}
	}

	return names
}
