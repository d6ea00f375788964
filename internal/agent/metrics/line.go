package metrics

import (
	"cmp"
	"maps"
	"regexp"
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
	rank    rank // of the names that are the objective's now; 0 = none was seen
	known   map[[2]string]rank
	columns []string        // of a table; nil = the line before was of none
	source  map[string]bool // by stream: the next line may be one of a program's source
	line    int             // how many were read
	unread  bool            // the line has a value of the objective that cannot be read
	moved   bool            // it has a bar above another one
	open    map[string]*openRecord
}

// Place is a line that a value came from.
type Place struct {
	Line int // from 1; 0 = there is none
	Text string
}

// NewReader uses the sweep's pattern, which validation has compiled before and found to have
// the groups name and value. Names of parameters are no metrics.
func NewReader(pattern, objective string, parameters ...string) *Reader {
	r := &Reader{target: newTarget(objective), ignored: make(map[string]bool), source: make(map[string]bool), open: make(map[string]*openRecord)}
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
	r.records, r.known, r.columns, r.line = NewRecordParser(), make(map[[2]string]rank), nil, 0
	r.records.needed = r.target.name
}

// Read returns the metrics of a line, by the names and steps that they have from now on.
// What is nearest to the objective's name takes it; once something nearer comes, that is the
// objective. Of several in a line that are equally near the last counts, such as LightGBM's
// valid_1: one step has no two values.
func (r *Reader) Read(stream, line string, at time.Time) (points []berth.MetricPoint) {
	r.line++

	if r.isSource(stream, line) {
		return nil
	}

	r.moved = strings.Contains(line, "\x1b[A")

	for _, line := range r.gather(stream, Shown(line)) {
		points = append(points, r.read(stream, line, at)...)
	}

	return points
}

// read returns the metrics of a line, or of a record of several.
func (r *Reader) read(stream, line string, at time.Time) (points []berth.MetricPoint) {
	r.unread = false
	found, counts := r.find(stream, line)
	last := -1

	for i, s := range found {
		rank := r.rankOf(s)
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
	} else if counts {
		r.Near.add(r.target, line)

		if r.unread {
			if r.Near.Values++; r.Near.Values == 1 {
				r.Near.Value = line
			}
		}
	}

	for i, s := range found {
		name := s.name
		if s.around != "" && (labelOf(s.around) == "" || partsOf(name, nil).split == "") {
			name = s.around + " " + name
		}

		switch {
		case i == last:
			name = r.target.name
		case name == r.target.name, r.ignored[failure.PlainName(s.name)] || len(name) > NameBytes:
			continue
		}

		p := s.point
		p.Name, p.At, p.Step = name, at, r.records.settle(name, s)
		points = append(points, p)
	}

	return points
}

// rankOf says how near a metric is to the objective. The names of a pattern are so as well.
func (r *Reader) rankOf(s sighting) rank {
	key := [2]string{s.around, s.name}
	if s.label {
		key[0] += ":"
	}

	near, found := r.known[key]
	if !found {
		near = r.target.rank(s.name, s.around, s.label)

		if len(r.known) < namesKnown {
			r.known[key] = near
		}
	}

	return near
}

// Shown is what a terminal shows of a line: what is behind its last carriage return, without
// colours.
func Shown(line string) string {
	line = strings.TrimRight(strings.TrimPrefix(line, "\uFEFF"), " \r\n")
	for at := strings.LastIndexByte(line, '\r'); at >= 0; at = strings.LastIndexByte(line, '\r') {
		if behind := strings.TrimSpace(withoutColours(line[at+1:])); behind != "" {
			line = behind

			break
		}

		line = line[:at]
	}

	return strings.TrimSpace(withoutColours(line))
}

func withoutColours(text string) string {
	if !strings.Contains(text, "\x1b") {
		return text
	}

	return failure.WithoutColours(text)
}

// isSource reports whether a line is one of the program's source, which Python shows
// indented behind a warning.
func (r *Reader) isSource(stream, line string) bool {
	was := r.source[stream]
	r.source[stream] = r.pattern == nil && (strings.Contains(line, ".py:") && strings.Contains(line, "Warning: ") ||
		strings.Contains(line, `File "`) && strings.Contains(line, ", line "))

	return was && strings.HasPrefix(line, "  ")
}

// loggedLine is a line of a Python logger: it begins with a level behind a time or a name, or
// as absl writes it. Frameworks in C++ have "I" alone.
var loggedLine = regexp.MustCompile(`^(?:.{0,100}[\s\[|:(-])?(?:DEBUG|INFO|WARN(?:ING)?)\s*[\]:|) \t-]|` +
	`^.{0,60}\[(?:debug|info|warning)\s*\]|^[DIWE]\d{4} [\d:.]+\s+\d+ \S+\.py:\d+\]`)

// find returns what a line holds, in order. counts is false for a line that never counts: a
// bar that is not full, or one of standard error, where frameworks print, too, what looks
// like metrics ("/device:GPU:0"). There a line counts that a Python logger wrote, or that
// holds the objective or a record.
func (r *Reader) find(stream, line string) (found []sighting, counts bool) {
	if r.pattern != nil {
		return r.match(line), true
	}

	if line = withoutOpenBar(line, r.moved); line == "" {
		return nil, false
	}

	if strings.Contains(line, "(") && strings.ContainsAny(line, "=:") {
		line = wrapped.ReplaceAllString(line, "$1")
	}

	objects, before, after, record := objectsOf(line)

	switch {
	case record:
		found = r.inObjects(objects, before, after)
	case strings.HasPrefix(line, "{") && !strings.Contains(line, "}"): // of which the rest is lost, maybe in a number
		return nil, false
	default:
		found, _ = r.pairs(line)
		if row := r.row(line, len(found) > 0); row != nil {
			found = row
		}
	}

	if stream == berth.Stderr && !record && !loggedLine.MatchString(line) || strings.Contains(line, "NCCL INFO") {
		for _, s := range found {
			if r.rankOf(s) > 0 {
				return found, true
			}
		}

		return nil, r.target.in(line) > 0
	}

	return found, true
}

// inObjects returns the metrics of records, and of the text around them.
func (r *Reader) inObjects(objects []map[string]any, before, after string) []sighting {
	found, around := r.pairs(before)
	if name, _ := nameBefore(before); around == "" {
		around = cmp.Or(labelOf(name), aimOf(name))
	}

	for _, object := range objects {
		recorded := r.records.find(object)
		ranked := false

		for i := range recorded {
			if recorded[i].around == "" {
				recorded[i].around = around
			}

			ranked = ranked || r.rankOf(recorded[i]) > 0
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
