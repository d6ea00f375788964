package metrics

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// MaxNames bounds how many metrics an attempt may have (reliability.md, failure 30); further
// names are dropped, but for the objective's.
const MaxNames = 1000

// namesKnown are kept with how near they are to the objective's name.
const namesKnown = 4096

// Reader finds metrics in the lines that a job prints, or writes to its metrics file: a
// record, pairs of a name and a number, rows of a table, or what the sweep's own pattern
// finds (docs/job-contract.md).
type Reader struct {
	Restarted bool   // what had the objective's name before is another metric; its user sets it to false
	From      Place  // of the newest value of the objective
	Near      Missed // lines that seem to have the objective

	pattern *regexp.Regexp // the sweep's own; nil = there is none
	target  target
	ignored map[string]bool // plain names of the sweep's own parameters
	records *RecordParser
	rank    int // of the names that are the objective's now; 0 = none was seen
	known   map[string]int
	columns []string            // of a table; nil = the line before was of none
	line    int                 // how many were read
	unread  bool                // the line has a value of the objective that cannot be read
	open    map[string][]string // lines of a record that goes on, by stream
}

// Place is a line that a value came from.
type Place struct {
	Line int // from 1; 0 = there is none
	Text string
}

// NewReader uses the sweep's pattern, which validation has compiled before and found to have
// the groups name and value. Names of parameters are no metrics.
func NewReader(pattern, objective string, parameters ...string) *Reader {
	r := &Reader{target: newTarget(objective), ignored: make(map[string]bool), open: make(map[string][]string)}
	if own, err := regexp.Compile(pattern); err == nil && pattern != "" {
		r.pattern = own
	}

	for _, name := range parameters {
		r.ignored[failure.PlainName(name)] = true
	}

	r.Restart()

	return r
}

// Restart forgets what was read: the file is written anew.
func (r *Reader) Restart() {
	r.records, r.known, r.columns, r.line = NewRecordParser(), make(map[string]int), nil, 0
	r.records.needed = r.target.name
}

// Read returns the metrics of a line, by the names and steps that they have from now on.
// What is nearest to the objective's name takes it; once something nearer comes, that is the
// objective. Of several in a line that are equally near the last counts, such as LightGBM's
// valid_1: one step has no two values.
func (r *Reader) Read(stream, line string, at time.Time) (points []berth.MetricPoint) {
	r.line++

	// A bar that is drawn with another one below it.
	moved := strings.Contains(line, "\x1b[A")

	for _, line := range r.gather(stream, Shown(line)) {
		if r.pattern != nil || !isOpenBar(line, moved) {
			points = append(points, r.read(stream, line, at)...)
		}
	}

	return points
}

// read returns the metrics of a line, or of a record of several.
func (r *Reader) read(stream, line string, at time.Time) (points []berth.MetricPoint) {
	r.unread = false
	found := r.find(stream, line)
	last := -1

	for i, s := range found {
		rank := r.rankOf(s.name)
		if rank > 0 && (r.rank == 0 || rank < r.rank) {
			if r.rank > 0 {
				r.Restarted = true
				r.Near.Values = 0
				delete(r.records.steps, r.target.name)
			}

			r.rank = rank
		}

		if rank > 0 && rank == r.rank {
			last = i
		}
	}

	if last >= 0 {
		r.From = Place{r.line, line}
	} else {
		r.miss(line)
	}

	for i, s := range found {
		name := s.name

		switch {
		case i == last:
			name = r.target.name
		case name == r.target.name, r.rankOf(name) < 0, len(name) > NameBytes:
			continue
		}

		p := s.point
		p.Name, p.At, p.Step = name, at, r.records.settle(name, s.step)
		points = append(points, p)
	}

	return points
}

// rankOf says how near a metric is to the objective; -1 = it is another, a
// parameter of the sweep. The names of a pattern are so as well.
func (r *Reader) rankOf(name string) int {
	near, found := r.known[name]
	if !found {
		if near = r.target.rank(name); near == 0 && r.ignored[failure.PlainName(name)] {
			near = -1
		}

		if len(r.known) < namesKnown {
			r.known[name] = near
		}
	}

	return near
}

// Shown is what a terminal shows of a line: what is behind its last carriage return, without
// colours.
func Shown(line string) string {
	line = strings.TrimPrefix(line, "\uFEFF")

	for part := range strings.SplitSeq(line, "\r") {
		if strings.Contains(part, "\x1b") {
			part = failure.WithoutColours(part)
		}

		if part = strings.TrimSpace(part); part != "" {
			line = part
		}
	}

	return line
}

// loggers are signs of a line of a Python logger. Frameworks in C++ have "I" alone.
var loggers = []string{"INFO", "DEBUG", "WARN", "[info", "[debug", "[warning"}

// isLogged reports whether a Python logger wrote a line: it has a level, or is as absl writes it.
func isLogged(line string) bool {
	return !strings.Contains(line, "NCCL INFO") && (slices.ContainsFunc(loggers, func(sign string) bool { return strings.Contains(line, sign) }) ||
		line != "" && strings.IndexByte("DIWE", line[0]) >= 0 && strings.Contains(line, ".py:"))
}

// find returns what a line holds, in order. On standard error frameworks print, too, what looks
// like metrics ("/device:GPU:0"): there a line counts that a Python logger wrote, or that holds
// the objective or a record.
func (r *Reader) find(stream, line string) (found []sighting) {
	if r.pattern != nil {
		return r.match(line)
	}

	if strings.Contains(line, "(") && strings.ContainsAny(line, "=:") {
		line = wrapped.ReplaceAllString(line, "$1")
	}

	if objects, before, after, record := objectsOf(line); record {
		r.columns = nil

		return r.inObjects(objects, before, after)
	}

	if found, _ = r.pairs(line); len(found) > 0 {
		r.columns = nil
	} else {
		found = r.row(line)
	}

	objective := slices.ContainsFunc(found, func(s sighting) bool { return r.rankOf(s.name) > 0 })
	if stream == berth.Stderr && !objective && !isLogged(line) {
		return nil
	}

	return found
}

// inObjects returns the metrics of records, and of the text around them.
func (r *Reader) inObjects(objects []map[string]any, before, after string) []sighting {
	found, around := r.pairs(before)
	around = cmp.Or(around, labelOf(r.target.nameBefore(before)))

	for _, object := range objects {
		recorded := r.records.find(object)
		ranked := false

		for i := range recorded {
			recorded[i].name = within(around, recorded[i].name)
			ranked = ranked || r.rankOf(recorded[i].name) > 0
		}

		found = append(found, recorded...)

		for _, field := range textFields {
			if text, ok := object[field].(string); ok && !ranked {
				said, _ := r.pairs(text)
				found = append(found, said...)
			}
		}
	}

	behind, _ := r.pairs(after)

	return append(found, behind...)
}

// match finds what the sweep's own pattern finds.
func (r *Reader) match(line string) (found []sighting) {
	name, number := r.pattern.SubexpIndex("name"), r.pattern.SubexpIndex("value")
	if name < 0 || number < 0 {
		return nil
	}

	for _, match := range r.pattern.FindAllStringSubmatch(line, -1) {
		if p, ok := NewPoint(match[name], match[number], time.Time{}); ok {
			found = append(found, sighting{point: p, name: p.Name})
		}
	}

	return found
}

// HasPattern reports whether the sweep has a pattern of its own.
func (r *Reader) HasPattern() bool { return r.pattern != nil }

// Steps are the newest steps of metrics, by name.
func (r *Reader) Steps() map[string]int64 { return r.records.steps }

// GoOn goes on from the steps of an earlier run.
func (r *Reader) GoOn(steps map[string]int64) { maps.Copy(r.records.steps, steps) }
