package runtrial

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/berthml/berth"
)

// storedName is the file that keeps of which metrics the database may have rows of which
// tier. It is written before they are stored: a run that adopts the container may read
// another tier first, and the rows of the first one must go then.
const storedName = "sources.json"

// keptSources is what is in that file.
type keptSources struct {
	Container string              `json:"container"` // its id
	Names     map[string][]string `json:"names"`     // the tiers by metric
}

// storedNames are the tiers of which the database may have rows, by metric: a bit for
// each. There are several while rows of one take the place of another's.
type storedNames map[string]uint8

// bothStored are the names of both.
func bothStored(a, b storedNames) storedNames {
	both := make(storedNames, len(a)+len(b))
	maps.Copy(both, a)

	for name, set := range b {
		both[name] |= set
	}

	return both
}

// keepSources writes names down, unless they are there. A sweep that names its source has
// nothing to write: of the shim's all is in its file.
func (o *output) keepSources(names storedNames) {
	if !o.metrics.auto || maps.Equal(names, o.sources) {
		return
	}

	if err := o.run.dirs.keepSources(o.run.container.ID, names); err != nil {
		o.run.log.Warn("writing down where metrics came from", "attempt", o.run.who.Attempt.ID, "error", err)

		return
	}

	o.sources = names
}

func (d dirs) keepSources(container string, names storedNames) error {
	k := keptSources{Container: container, Names: make(map[string][]string, len(names))}

	for name, set := range names {
		for from := range tiers {
			if set&(1<<from) != 0 {
				k.Names[name] = append(k.Names[name], tierNames[from])
			}
		}
	}

	return writeJSON(filepath.Join(d.attempt, storedName), "where metrics came from", k)
}

// sources are the names that were written down for this container; none when nothing was.
func (d dirs) sources(container string) storedNames {
	var k keptSources

	data, err := os.ReadFile(filepath.Join(d.attempt, storedName))
	if err != nil || json.Unmarshal(data, &k) != nil || container == "" || k.Container != container {
		return nil
	}

	names := make(storedNames, len(k.Names))
	for name, sources := range k.Names {
		for from := range tiers {
			if slices.Contains(sources, tierNames[from]) {
				names[name] |= 1 << from
			}
		}
	}

	return names
}

// fromLog reports whether what the job printed may be what its trial is ranked by.
func (o *output) fromLog() bool {
	if o.printed == nil || !o.metrics.auto {
		return o.printed != nil
	}

	source := ""
	if o.metrics.needed != "" {
		source = o.metrics.source(o.metrics.needed)
	}

	return source == "" || source == berth.MetricsStdout
}
