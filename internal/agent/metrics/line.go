package metrics

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// MaxNames bounds how many metrics an attempt may have (reliability.md, failure 30); further
// names are dropped, but for the objective's.
const MaxNames = 1000

// Reader finds metrics in the lines that a job prints, or writes to its metrics file: a
// record, pairs of a name and a number, rows of a table, or what the sweep's own pattern
// finds (docs/job-contract.md).
type Reader struct {
	Restarted bool   // a nearer name took the objective's place; its user sets it to false
	From      Place  // of the newest value of the objective
	Near      Missed // lines that seem to have the objective

	Counted atomic.Bool // the newest value of the objective named no step: that is the number of the report

	pattern *regexp.Regexp // the sweep's own; nil = there is none
	target  target
	ignored map[string]bool  // plain names of the sweep's own parameters
	rank    int              // of the names that are the objective's now; 0 = none was seen
	columns []string         // of a table; nil = the line before was of none
	line    int              // how many were read
	inside  string           // the label of a record that goes over several lines: "train": {
	shown   string           // the line
	steps   map[string]int64 // the newest, by name
	again   bool             // steps begin again in each epoch: they name no steps of the job
	epoch   *int64           // of the newest record that named both
	step    *int64
	unread  bool // the line has a value of the objective that cannot be read
}

// Place is a line that a value came from.
type Place struct {
	Line int // from 1; 0 = there is none
	Text string
}

// NewReader uses the sweep's pattern, which validation has compiled before and found to have
// the groups name and value. Names of parameters are no metrics.
func NewReader(pattern, objective string, parameters ...string) *Reader {
	r := &Reader{target: newTarget(objective), ignored: make(map[string]bool)}
	if own, err := regexp.Compile(pattern); err == nil && pattern != "" {
		r.pattern = own
	}

	for _, name := range parameters {
		r.ignored[failure.PlainName(name)] = true
	}

	r.Restart()

	return r
}

// Restart forgets all lines: the program writes its file again from the start.
func (r *Reader) Restart() {
	r.steps, r.again, r.epoch, r.columns, r.inside, r.line = make(map[string]int64), false, nil, nil, "", 0
}

// Read returns the metrics of a line. The nearest name so far is the objective; of several
// equally near in a line the last counts, such as LightGBM's valid_1.
func (r *Reader) Read(stream, line string, at time.Time) (points []berth.MetricPoint) {
	r.line++
	r.unread = false
	r.shown = Shown(line)
	found, sure := r.find(r.shown, strings.Contains(line, "\x1b[A"))
	last := -1

	for i, s := range found {
		rank := r.target.rank(s.name)
		if rank > 0 && (r.rank == 0 || rank < r.rank) {
			if r.rank > 0 {
				r.Restarted = true
				r.Near.Values = 0
				delete(r.steps, r.target.name)
			}

			r.rank = rank
		}

		if rank > 0 && rank == r.rank {
			last = i
		}
	}

	if last >= 0 {
		r.From = Place{r.line, r.shown}
	} else {
		r.miss(r.shown)
	}

	// Frameworks print to standard error what looks like metrics: "/device:GPU:0".
	if stream == berth.Stderr && last < 0 && !sure {
		return nil
	}

	for i, s := range found {
		name := s.name

		switch {
		case i == last:
			name = r.target.name
			r.Counted.Store(s.step == nil)
		case name == r.target.name, r.ignored[failure.PlainName(name)], len(name) > NameBytes:
			continue
		}

		p := s.point
		p.Name, p.At, p.Step = name, at, r.settle(name, s.step)
		points = append(points, p)
	}

	return points
}

// Shown is what a terminal shows of a line: what is behind its last carriage return, without
// colours.
func Shown(line string) string {
	if strings.Contains(line, "\x1b") {
		line = failure.WithoutColours(line)
	}

	line = strings.TrimSpace(line)

	return strings.TrimSpace(line[strings.LastIndexByte(line, '\r')+1:])
}

// find returns what a line holds, in order; sure = it is a record, or the sweep's pattern found it.
func (r *Reader) find(line string, moved bool) (found []sighting, sure bool) {
	if r.pattern != nil {
		return r.match(line), true
	}

	if isOpenBar(line, moved) {
		return nil, false
	}

	if strings.Contains(line, "(") {
		line = wrapped.ReplaceAllString(line, "$1")
	}

	if object, record := decode(line); record {
		r.columns = nil

		return r.inRecord(object), true
	}

	found, label := r.pairs(line, r.inside)

	switch {
	case strings.HasSuffix(line, "{"):
		r.inside = label
	case strings.HasPrefix(line, "}"):
		r.inside = ""
	}

	if len(found) == 0 {
		return r.row(line), false
	}

	r.columns = nil

	return found, false
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

// row reads the columns of a table whose header has the objective, with spaces, commas or
// bars between them: what fastai and pandas print.
func (r *Reader) row(line string) (found []sighting) {
	columns := r.columns
	r.columns = nil

	if columns == nil && !r.target.mayBeIn(line) {
		return nil
	}

	fields := strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" \t,;|│┃", c) })
	values := make([]sighting, len(fields))
	numbers := 0

	for i, field := range fields {
		if p, ok := NewPoint("-", field, time.Time{}); ok {
			values[i].point = p
			numbers++
		}
	}

	if numbers == 0 && len(fields) > 1 && slices.ContainsFunc(fields, func(name string) bool { return r.target.rank(name) > 0 }) {
		r.columns = fields
	}

	if numbers == 0 || len(fields) != len(columns) || values[0].point.Status == "" {
		return nil
	}

	r.columns = columns

	for i, name := range columns {
		if values[i].point.Status != "" && !counting[strings.ToLower(name)] {
			values[i].name = name
			found = append(found, values[i])
		}
	}

	return found
}

// Steps are the newest steps of metrics, by name.
func (r *Reader) Steps() map[string]int64 { return r.steps }

// GoOn goes on from the steps of an earlier run.
func (r *Reader) GoOn(steps map[string]int64) { maps.Copy(r.steps, steps) }
