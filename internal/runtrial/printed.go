package runtrial

import (
	"bytes"
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
	"github.com/berthml/berth/internal/masking"
	"github.com/berthml/berth/internal/metrictext"
)

const (
	namesAtMost   = 50     // names of metrics that are noted of what a job prints
	linesForNames = 20_000 // in which they are looked for: they come with each epoch
)

// takeLine parses the line that a chunk ends, if metrics come from there: programs
// print them to standard output, loggers and progress bars to standard error. A
// progress bar rewrites its line by carriage returns, for longer than Docker
// keeps a line in one piece: what counts of it is read as it comes.
func (o *output) takeLine(c berth.LogChunk) {
	if o.printed == nil {
		o.names.take(c.Stream, metrictext.PartLine{Data: c.Data})

		return
	}

	line := o.lines[c.Stream]
	line.Data, line.At = slices.Concat(line.Data, c.Data), c.At

	if bytes.HasSuffix(c.Data, []byte("\n")) {
		if o.printed.Pattern == nil && line.Open() {
			o.lines[c.Stream] = line

			return
		}

		delete(o.lines, c.Stream)
		o.endLine(c.Stream, line)

		return
	}

	points, rest := o.printed.Begin(c.Stream, line)
	o.metrics.addFrom(ofPrinted, o.printed, points)

	rest.Data = rest.Data[max(len(rest.Data)-longestLine, 0):]
	o.lines[c.Stream] = rest
}

// endLine reads a line that its stream has ended. What does not count of it is noted.
func (o *output) endLine(stream string, line metrictext.PartLine) {
	points := o.printed.End(stream, line)
	none := len(points)+len(o.printed.Bars)+len(o.printed.Doubts) == 0
	o.metrics.addFrom(ofPrinted, o.printed, points)

	if none && (stream == berth.Stderr || o.printed.Pattern != nil) {
		o.names.take(stream, line)
	}
}

// printedNames notes what a job prints that reads as a metric and is none: its metrics
// come from a file, the spec's own pattern leaves it out, or it printed them to standard
// error by another name. A trial that reported nothing is told where its metric was seen.
type printedNames struct {
	parser *metrictext.LineParser
	mask   *masking.Mask
	lines  int
	seen   map[string]failure.Printed
}

func newPrintedNames(objective string) *printedNames {
	return &printedNames{parser: metrictext.NewLineParser("", objective), seen: make(map[string]failure.Printed)}
}

func (p *printedNames) take(stream string, line metrictext.PartLine) {
	if p.lines++; p.lines > linesForNames {
		return
	}

	points := p.parser.Parse(berth.Stdout, string(line.Data), line.At)
	p.parser.Doubts = nil // they are there by their own names

	for _, point := range points {
		point.Name = p.mask.Name(point.Name)

		known, found := p.seen[point.Name]
		if !found && len(p.seen) >= namesAtMost && point.Name != p.parser.Objective {
			continue
		}

		if !found {
			known.Stream = stream
		}

		known.Times++
		p.seen[point.Name] = known
	}
}
