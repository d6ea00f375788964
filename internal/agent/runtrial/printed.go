package runtrial

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// takeLine reads the lines that a chunk ends, if metrics come from there: programs print them
// to standard output, loggers and progress bars to standard error. Docker passes on a long
// line in pieces.
func (o *output) takeLine(c berth.LogChunk) {
	line := slices.Concat(o.lines[c.Stream], c.Data)

	if !bytes.HasSuffix(line, []byte("\n")) {
		o.lines[c.Stream] = line[max(len(line)-longestLine, 0):]

		return
	}

	delete(o.lines, c.Stream)
	o.readLines(c.Stream, line, c.At)
}

// readLines reads lines that their stream has ended.
func (o *output) readLines(stream string, text []byte, at time.Time) {
	if o.printed == nil {
		return
	}

	for line := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		points := o.printed.Read(stream, string(line), at)

		if o.printed.Restarted {
			o.printed.Restarted = false
			o.metrics.Forget(berth.MetricsStdout, o.metrics.Needed())
		}

		if len(points) > 0 && o.metrics.Chosen() == "" { // what was written before it was printed comes first
			o.readFiles(readPerLook)
		}

		o.metrics.Add(berth.MetricsStdout, points...)
	}
}

// quotedBytes of a line are shown in a message.
const quotedBytes = 160

// quote makes a line fit for a message.
func (o *output) quote(line string) string {
	line = o.run.mask.Quote(line)

	return strings.ToValidUTF8(line[:min(len(line), quotedBytes)], "")
}

// near is the first line that seems to have the objective and was not read.
func (o *output) near() failure.Near {
	if o.printed == nil || o.printed.Near.First == "" {
		return failure.Near{}
	}

	return failure.Near{Line: o.quote(o.printed.Near.First), Pattern: o.run.mask.Quote(o.printed.Near.Pattern)}
}

// place says which line the last value of the objective came from; empty when none did.
func (o *output) place() string {
	if o.printed == nil || o.printed.From.Line == 0 {
		return ""
	}

	return fmt.Sprintf("its value is of line %d of its log, %q", o.printed.From.Line, o.quote(o.printed.From.Text))
}
