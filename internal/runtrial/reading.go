package runtrial

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/metrictext"
)

// readingName is the file that keeps how far an attempt's log was read.
const readingName = "log.json"

// reading is how far a container's log was read, and what is known of it then.
// Docker keeps the newest 30 MiB only: a run that adopts the container cannot
// read the beginning again. Everything up to Position is in the database.
type reading struct {
	Container string            `json:"container"` // its id
	At        time.Time         `json:"at"`        // when it was read so far
	Position  berth.LogPosition `json:"position"`
	Offset    int64             `json:"offset"`           // of the next byte of the log
	Cut       bool              `json:"cut,omitempty"`    // the log limit was reached
	Gap       bool              `json:"gap,omitempty"`    // Docker had dropped a part of it
	Line      []byte            `json:"line,omitempty"`   // unfinished last line of stdout, by a worker that read no other stream
	LineAt    time.Time         `json:"line_at,omitzero"` // its time

	Lines   map[string]metrictext.PartLine `json:"lines,omitempty"`   // unfinished last ones, by stream
	Metrics *keptSeries                    `json:"metrics,omitempty"` // nil when the log has none
}

// keptSeries is all that a series and its parser know.
type keptSeries struct {
	Histories map[string]history             `json:"histories"`
	Below     map[string]histories           `json:"below,omitempty"`  // of the log's other tiers, by their names
	Finals    map[string]berth.MetricPoint   `json:"finals,omitempty"` // of metrics without a curve there
	Steps     metrictext.Steps               `json:"steps"`
	Likeness  metrictext.Likeness            `json:"likeness,omitempty"`  // of the objective's name; 0 = not known
	Bars      bool                           `json:"bars,omitempty"`      // those of Keras stand apart
	Fractions bool                           `json:"fractions,omitempty"` // epochs come in parts
	Anew      bool                           `json:"anew,omitempty"`      // steps begin anew in each epoch
	Drawn     map[string]metrictext.BarState `json:"drawn,omitempty"`     // by stream
	Unread    metrictext.UnreadValues        `json:"unread,omitzero"`     // of the objective
	More      bool                           `json:"more,omitempty"`
	Kept      int                            `json:"kept"`
	Lost      int                            `json:"lost,omitempty"`
	Held      map[string]berth.MetricPoint   `json:"held,omitempty"`
}

// histories are those of metrics, by name.
type histories map[string]history

// keepReading writes down how far a log was read. Like usage it is not synced: a
// power cut ends the container as well.
func (d dirs) keepReading(r reading) error {
	return writeJSON(filepath.Join(d.attempt, readingName), "what was read of the log", r)
}

// reading is how far this container's log was read; found is false when that was
// not written down.
func (d dirs) reading(container string) (r reading, found bool) {
	data, err := os.ReadFile(filepath.Join(d.attempt, readingName))
	if err != nil || json.Unmarshal(data, &r) != nil || container == "" || r.Container != container {
		return reading{}, false
	}

	return r, true
}

// resume goes on from where an earlier run stopped to read. The log itself is
// read from its oldest line for the classifier; what was counted is left out.
func (o *output) resume(r reading) {
	o.earlier.From, o.taken = r.Position, r.Position
	o.offset, o.keptOffset = r.Offset, r.Offset
	o.cut, o.gap = r.Cut, r.Gap

	maps.Copy(o.lines, r.Lines)

	if len(r.Line) > 0 {
		o.lines[berth.Stdout] = metrictext.PartLine{Data: r.Line, At: r.LineAt}
	}

	if o.printed != nil && r.Metrics != nil {
		since := r.At
		if o.metrics.auto { // files are read from their start
			since = o.run.startedAt
		}

		o.metrics.resume(*r.Metrics, newThinner(o.run.config.Bounds, time.Since(since)))
		maps.Copy(o.printed.Records.Steps, r.Metrics.Steps)
		o.printed.Apart = o.printed.Apart && r.Metrics.Bars // a worker of before kept them with what the script prints
		o.printed.Unread = r.Metrics.Unread
		maps.Copy(o.printed.Drawn, r.Metrics.Drawn)
		o.printed.Likeness, o.printed.Records.Fractions, o.printed.Records.Anew = r.Metrics.Likeness, r.Metrics.Fractions, r.Metrics.Anew
	}
}

// readBefore reports whether a chunk was read before. It notes that Docker has
// dropped what followed then.
func (o *output) readBefore(from *berth.LogResume, c berth.LogChunk) bool {
	read := from.Read(c)

	if from.Lost {
		from.Lost, o.gap = false, true
		clear(o.lines)
	}

	return read
}

// reading says how far the log was read; nil when no further than before. The
// caller holds o.mu, and stores all that waits before it writes this down.
func (o *output) reading() *reading {
	if o.offset == o.keptOffset {
		return nil
	}

	r := &reading{
		Container: o.run.container.ID, At: time.Now().UTC(), Position: o.taken, Offset: o.offset,
		Cut: o.cut, Gap: o.gap, Lines: maps.Clone(o.lines),
	}

	if o.printed != nil {
		kept := o.metrics.kept()
		kept.Steps = maps.Clone(o.printed.Records.Steps)
		kept.Bars, kept.Likeness = o.printed.Apart, o.printed.Likeness
		kept.Fractions, kept.Anew = o.printed.Records.Fractions, o.printed.Records.Anew
		kept.Unread, kept.Drawn = o.printed.Unread, maps.Clone(o.printed.Drawn)
		r.Metrics = &kept
	}

	return r
}

// keep writes down how far the log was read and stored.
func (o *output) keep() {
	if o.stored == nil {
		return
	}

	if err := o.run.dirs.keepReading(*o.stored); err != nil {
		o.run.log.Warn("writing down how far the log was read", "attempt", o.run.who.Attempt.ID, "error", err)

		return
	}

	o.keptOffset, o.stored = o.stored.Offset, nil
}

// gapNote says that a part of the log is missing.
func (o *output) gapNote() string {
	note := fmt.Sprintf("Docker dropped a part of its log before Berth read it, since it keeps the last %s only", berth.BytesText(dockerLogBytes))
	if o.fromLog() {
		note += ", so metrics may be lost; write them to the file that TRIAL_METRICS_FILE names"
	}

	return note
}
