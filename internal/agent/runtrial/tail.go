package runtrial

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

const (
	headLines = 500     // in which a framework has said whether it finds a GPU
	tailLines = 200     // kept for the classifier: a traceback and what a framework prints after it
	lineBytes = 4 << 10 // of one line kept for the classifier
)

// tail is the last lines of both streams that are not empty, oldest first.
type tail struct {
	read  int    // lines in all
	noGPU string // of the first of them: why the framework finds no GPU; empty = none says so
	lines []string
	times []time.Time // when each was printed
}

func (t *tail) take(c berth.LogChunk) {
	line := bytes.TrimRight(c.Data, "\r\n")
	if len(line) == 0 {
		return
	}

	if t.read++; t.read <= headLines && t.noGPU == "" && failure.SaysNoGPU(string(line)) {
		t.noGPU = string(line[:min(len(line), lineBytes)])
	}

	t.lines = append(t.lines, strings.ToValidUTF8(string(line[:min(len(line), lineBytes)]), "\uFFFD"))
	t.times = append(t.times, c.At)

	over := max(len(t.lines)-tailLines, 0)
	t.lines, t.times = t.lines[over:], t.times[over:]
}

// before is how many of the lines, the first ones, were printed before then.
func (t *tail) before(then time.Time) int {
	if i := slices.IndexFunc(t.times, func(at time.Time) bool { return !at.Before(then) }); i >= 0 {
		return i
	}

	return len(t.times)
}
