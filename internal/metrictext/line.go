package metrictext

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
)

// LineParser finds metrics in what a job prints, or writes to its metrics file. A line
// has records (forms.go), pairs of a name and a number (pairs.go), or what the spec's own
// pattern finds. Programs write the name of one metric in several ways (names.go).
type LineParser struct {
	Pattern     *regexp.Regexp // the spec's own; nil = pairs are looked for
	name, value int            // groups of the pattern
	Objective   string         // the metric by which trials are ranked; empty = there is none
	Records     *RecordParser

	Likeness Likeness            // of the names that are taken for the objective's now; 0 = none was seen
	Doubtful Likeness            // from here on a name is doubtful
	Turned   bool                // what was taken for the objective before is another metric
	Named    bool                // the newest report of the objective named its step
	Apart    bool                // Keras' own bars are no word of the script's
	Bars     []berth.MetricPoint // of these bars, since they were last taken
	Drawn    map[string]BarState // by stream
	Unread   UnreadValues
	Doubts   []berth.MetricPoint // the objective's if nobody reports it, since they were last taken

	source map[string]bool // by stream: the next line may be one of a program's source
	best   string          // the word by which the lines of a record tell of the best; empty = they don't
}

// loggedLine is a line of a Python logger: it begins with a level behind a time or a name, or
// as absl writes it. Frameworks in C++ have "I" alone.
var loggedLine = regexp.MustCompile(`^(?:.{0,100}[\s\[|:(-])?(?:DEBUG|INFO|WARN(?:ING)?)\s*[\]:|) \t-]|` +
	`^.{0,60}\[(?:debug|info|warning)\s*\]|^[DIWE]\d{4} [\d:.]+\s+\d+ \S+\.py:\d+\]`)

// sourceBehind is a line behind which Python shows a line of the program's source.
var sourceBehind = regexp.MustCompile(`:\d+: \w*Warning: |^\s*File ".{1,200}", line \d+`)

// NewLineParser uses the spec's pattern, which validation has compiled before
// and found to have the groups name and value.
func NewLineParser(pattern, objective string) *LineParser {
	l := &LineParser{Objective: objective, Records: NewRecordParser(), Doubtful: DoubtfulFrom(false), Drawn: make(map[string]BarState), source: make(map[string]bool)}
	if pattern != "" {
		if own, err := regexp.Compile(pattern); err == nil {
			l.Pattern, l.name, l.value = own, own.SubexpIndex("name"), own.SubexpIndex("value")
		}
	}

	return l
}

// Parse reads what a job printed on a stream up to the end of a line, behind which nothing
// comes that could change it. That may be several lines: Docker loses the end of one that
// is longer than its buffer.
func (l *LineParser) Parse(stream, text string, at time.Time) []berth.MetricPoint {
	points := l.End(stream, PartLine{Data: []byte(text), At: at})

	return append(points, l.Over("")...)
}

// Over reads what waited of the bars on all streams but one: no more of these comes, or
// something else comes first.
func (l *LineParser) Over(but string) (points []berth.MetricPoint) {
	for _, stream := range slices.Sorted(maps.Keys(l.Drawn)) {
		if stream == but {
			continue
		}

		state := l.Drawn[stream]
		count := state.over(nil)

		if but == "" {
			count = state.gone(count)
		}

		points = l.read(points, stream, count, state.Time)
		l.Drawn[stream] = state
	}

	return points
}

// End reads a line that has ended, of which a part may have been read (Begin), or the lines
// of a record.
func (l *LineParser) End(stream string, line PartLine) []berth.MetricPoint {
	var points []berth.MetricPoint

	several, bar := l.Gatherer(), line.Bar

	if Shown(string(line.Data)) != "" {
		points = l.Over(stream)
	}

	take := func(text []byte) {
		if l.isSource(stream, text) {
			return
		}

		bars := l.Drawn[stream]
		bars.At, bar = bar, ""
		parts, _, after := rewritten(string(text), bars, true)
		points = l.read(points, stream, parts, line.At)
		l.note(stream, after, line.At)
	}

	for text := range bytes.SplitSeq(line.Data, []byte("\n")) {
		if l.Pattern != nil {
			take(text)
		} else {
			several.Add(text, take)
		}
	}

	several.Release(take)

	return points
}

// isSource reports whether a line is one of the program's source, which Python shows
// indented behind a warning.
func (l *LineParser) isSource(stream string, line []byte) bool {
	if len(line) == 0 { // what is behind the last line's end
		return false
	}

	was := l.source[stream]
	l.source[stream] = l.Pattern == nil && (bytes.Contains(line, []byte(", line ")) || bytes.Contains(line, []byte("Warning: "))) &&
		sourceBehind.Match(line[:min(len(line), barBytes)])

	return was && bytes.HasPrefix(line, []byte("  "))
}

// Begin reads what is certain of a line that has not ended, and returns the rest of it.
func (l *LineParser) Begin(stream string, line PartLine) ([]berth.MetricPoint, PartLine) {
	if line.Depth > 0 { // the rest of a record is to come
		return nil, line
	}

	bars := l.Drawn[stream]
	bars.At = line.Bar
	parts, rest, after := rewritten(string(line.Data), bars, false)
	l.note(stream, after, line.At)

	var points []berth.MetricPoint
	if len(parts) > 0 {
		points = l.Over(stream)
	}

	return l.read(points, stream, parts, line.At), PartLine{Data: []byte(rest), At: line.At, Bar: after.At}
}

// note keeps what is known of the bars on a stream.
func (l *LineParser) note(stream string, bars BarState, at time.Time) {
	if bars.Drawn != l.Drawn[stream].Drawn {
		bars.Time = at
	}

	if bars.Held.Text != "" && bars.Held.At.IsZero() {
		bars.Held.At = at
	}

	bars.Heading = l.Drawn[stream].Heading
	l.Drawn[stream] = bars
}

// read adds what the parts of a line hold. On standard error frameworks print, too, what
// looks like metrics ("/device:GPU:0"): there a part counts that a Python logger wrote, that
// holds the objective or a record, or what the spec's own pattern finds.
func (l *LineParser) read(points []berth.MetricPoint, stream string, parts []shownPart, at time.Time) []berth.MetricPoint {
	for _, part := range parts {
		found, record := l.find(part.text)
		at := at

		if part.held.Text == "" {
			l.head(stream, part.text, found)
		} else {
			inHeading(part.held.Heading, found)

			if !part.held.At.IsZero() {
				at = part.held.At
			}
		}

		if part.which != allNames || part.drawn != "" {
			found = part.counted(found, l.Objective)
		}

		if stream == berth.Stderr && l.Pattern == nil && !record && !logged(part.text) && !slices.ContainsFunc(found, l.isObjective) {
			continue
		}

		before := l.Turned
		l.Turned = false
		settled := l.settle(found, at)

		if l.Turned {
			other := func(p berth.MetricPoint) bool { return p.Name == l.Objective }
			points, l.Bars = slices.DeleteFunc(points, other), slices.DeleteFunc(l.Bars, other)
		}

		l.Turned = l.Turned || before

		if l.Apart && ownBar(part.text) {
			l.Bars = append(l.Bars, settled...)
		} else {
			points = append(points, settled...)
		}
	}

	return points
}

// logged reports whether a Python logger wrote a line.
func logged(line string) bool {
	line = line[:min(len(line), barBytes)]

	return loggedLine.MatchString(line) && !strings.Contains(line, "NCCL")
}

// settle returns what was found in a line, by the names and steps that it has from now on.
// What is most like the objective takes its name; once something is more like it, that is
// the objective, and what had its name has its own name. A doubtful one keeps its own name
// beside that, unless it is the same name in another form. Of two that are equally like the
// objective the last counts, such as LightGBM's valid_1's auc: one step has no two values.
func (l *LineParser) settle(found []sighting, at time.Time) (points []berth.MetricPoint) {
	for i := range found {
		found[i].likeness = l.likenessOf(found[i])
		if like := found[i].likeness; like > 0 && (l.Likeness == 0 || like < l.Likeness) {
			if l.Likeness > 0 {
				l.Turned = true
				delete(l.Records.Steps, l.Objective)
				l.Doubts, l.Unread = nil, UnreadValues{}
			}

			l.Likeness = like
		}
	}

	last := "" // of several that are as like it as it
	for _, f := range found {
		if f.likeness > 0 && f.likeness == l.Likeness {
			last = f.name.full
		}
	}

	for _, f := range found {
		p := f.point
		p.Name, p.At = f.name.full, at

		taken := f.likeness > 0 && f.likeness == l.Likeness && f.name.full == last
		doubted := taken && f.likeness >= l.Doubtful

		if taken && !doubted {
			p.Name = l.Objective
		}

		var named bool

		if !doubted || f.likeness > sameLetters {
			p.Step, named = l.Records.settle(p.Name, f, l.Objective) // the last one of a name stands, as it would on the next line
			points = append(points, p)
		}

		if doubted {
			p.Name = l.Objective
			p.Step, named = l.Records.settle(p.Name, f, l.Objective)
			l.Doubts = append(l.Doubts, p)
		}

		if taken {
			l.Named, l.Unread.None = named, ""
		}
	}

	return points
}

func (l *LineParser) isObjective(f sighting) bool { return l.likenessOf(f) > 0 }

// likenessOf says how much a metric's name is like the objective's; 0 = it is another.
func (l *LineParser) likenessOf(f sighting) Likeness {
	switch {
	case l.Objective == "":
		return 0
	case f.own && f.name.full != l.Objective:
		return 0
	}

	return f.name.like(l.Objective)
}
