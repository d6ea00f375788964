package runtrial

import (
	"fmt"
	"maps"
	"time"

	"github.com/berthml/berth"
)

// reading is how far a container's log was read. Docker keeps the newest 30 MiB only: where
// it has dropped the start, a run that adopts the container goes on behind Until.
type reading struct {
	First berth.LogPosition `json:"first"`           // of the log's first piece
	Until time.Time         `json:"until"`           // stamp up to which all is in the database
	Steps map[string]int64  `json:"steps,omitempty"` // the newest ones of metrics then
}

// begin looks at the first piece of the log that this run reads.
func (o *output) begin(c berth.LogChunk) {
	if o.first.Stream != "" {
		return
	}

	o.first.Pass(c)

	known := o.earlier.First
	if known.Stream == "" || known.Stream == c.Stream && known.At.Equal(c.At) {
		return
	}

	o.gap, o.offset, o.until, o.first = true, o.run.who.LogOffset, o.earlier.Until, known

	if o.printed != nil {
		o.printed.GoOn(o.earlier.Steps)
	}
}

// reading says how far the log was read. The caller holds o.mu, and stores all that waits
// before it writes this down.
func (o *output) reading() reading {
	r := reading{First: o.first, Until: o.read.At}
	if o.printed != nil {
		r.Steps = maps.Clone(o.printed.Steps())
	}

	return r
}

// keep writes down how far the log was read and stored.
func (o *output) keep() {
	if err := o.run.keep(func(k *record) { k.Log = o.stored }); err != nil {
		o.run.log.Warn("writing down how far the log was read", "attempt", o.run.who.Attempt.ID, "error", err)
	}
}

// gapNote says that a part of the log is missing.
func (o *output) gapNote() string {
	note := fmt.Sprintf("Docker dropped a part of its log, since it keeps the last %s only", berth.BytesText(dockerLogBytes))
	if o.fromLog() {
		note += ", so metrics may be lost; write them to the file that TRIAL_METRICS_FILE names"
	}

	return note
}
