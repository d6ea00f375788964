package runtrial

import (
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

const (
	namesAtMost   = 50     // names of metrics that are noted of what a job prints
	linesForNames = 20_000 // in which they are looked for: they come with each epoch
)

// printedNames notes what a job prints that reads as a metric and is none: its metrics
// come from a file, or it printed them to standard error by another name. A trial that
// reported nothing is told where its metric was seen.
type printedNames struct {
	parser *lineParser
	lines  int
	seen   map[string]failure.Printed
}

func newPrintedNames(objective string) *printedNames {
	return &printedNames{parser: newLineParser("", objective), seen: make(map[string]failure.Printed)}
}

func (p *printedNames) take(c berth.LogChunk) {
	if p.lines++; p.lines > linesForNames {
		return
	}

	for _, point := range p.parser.parse(berth.Stdout, string(c.Data), time.Time{}) {
		known, found := p.seen[point.Name]
		if !found && len(p.seen) >= namesAtMost && point.Name != p.parser.objective {
			continue
		}

		if !found {
			known.Stream = c.Stream
		}

		known.Times++
		p.seen[point.Name] = known
	}
}
