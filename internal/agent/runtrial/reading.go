package runtrial

import (
	"fmt"
	"maps"

	"github.com/berthml/berth"
)

// reading is how far a container's log was read. Everything up to Position is in the database.
// A run that adopts the container reads the log from its start again. Docker keeps the newest
// 30 MiB only: where it has dropped the start, metrics go on behind Position, with their steps.
type reading struct {
	First    berth.LogPosition `json:"first"` // of the log's first piece
	Position berth.LogPosition `json:"position"`
	Offset   int64             `json:"offset"`          // of the next byte of the log
	Cut      bool              `json:"cut,omitempty"`   // the log limit was reached
	Gap      bool              `json:"gap,omitempty"`   // Docker had dropped a part of it
	Steps    map[string]int64  `json:"steps,omitempty"` // the newest ones of metrics
}

// resume goes on from where an earlier run stopped to store the log.
func (o *output) resume(r reading) {
	o.earlier.From, o.taken, o.first, o.earlierSteps = r.Position, r.Position, r.First, r.Steps
	o.offset, o.keptOffset = r.Offset, r.Offset
	o.cut, o.gap = r.Cut, r.Gap
}

// begin looks at the first piece of the log that this run reads: metrics are read from it on,
// unless it is not the log's first.
func (o *output) begin(c berth.LogChunk) {
	if o.begun {
		return
	}

	o.begun = true

	var first berth.LogPosition

	first.Pass(c)

	known := o.first.Stream != ""
	if o.fromStart = !known || o.first.Stream == first.Stream && o.first.At.Equal(first.At); !o.fromStart {
		o.gap = true

		if o.printed != nil {
			o.printed.GoOn(o.earlierSteps)
		}
	}

	if !known {
		o.first = first
	}
}

// readBefore reports whether a chunk was read before. It notes that Docker has dropped what
// followed then.
func (o *output) readBefore(from *berth.LogResume, c berth.LogChunk) bool {
	read := from.Read(c)

	if from.Lost {
		from.Lost, o.gap = false, true
		clear(o.lines)
	}

	return read
}

// reading says how far the log was read; nil when no further than before. The caller holds
// o.mu, and stores all that waits before it writes this down.
func (o *output) reading() *reading {
	if o.offset == o.keptOffset {
		return nil
	}

	r := &reading{First: o.first, Position: o.taken, Offset: o.offset, Cut: o.cut, Gap: o.gap}
	if o.printed != nil {
		r.Steps = maps.Clone(o.printed.Steps())
	}

	return r
}

// keep writes down how far the log was read and stored.
func (o *output) keep() {
	if o.stored == nil {
		return
	}

	if err := o.run.keep(func(k *record) { k.Log = o.stored }); err != nil {
		o.run.log.Warn("writing down how far the log was read", "attempt", o.run.who.Attempt.ID, "error", err)

		return
	}

	o.keptOffset, o.stored = o.stored.Offset, nil
}

// gapNote says that a part of the log is missing.
func (o *output) gapNote() string {
	note := fmt.Sprintf("Docker dropped a part of its log, since it keeps the last %s only", berth.BytesText(dockerLogBytes))
	if o.fromLog() {
		note += ", so metrics may be lost; write them to the file that TRIAL_METRICS_FILE names"
	}

	return note
}
