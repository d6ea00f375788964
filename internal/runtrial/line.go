package runtrial

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
)

// lineParser finds metrics in what a job prints, or writes to its metrics file. A line
// has records (forms.go), pairs of a name and a number (pairs.go), or what the spec's own
// pattern finds. Programs write the name of one metric in several ways (names.go).
type lineParser struct {
	pattern     *regexp.Regexp // the spec's own; nil = pairs are looked for
	name, value int            // groups of the pattern
	objective   string         // the metric by which trials are ranked; empty = there is none
	records     *recordParser

	likeness likeness            // of the names that are taken for the objective's now; 0 = none was seen
	doubtful likeness            // from here on a name is doubtful
	turned   bool                // what was taken for the objective before is another metric
	named    bool                // the newest report of the objective named its step
	apart    bool                // Keras' own bars are no word of the script's
	bars     []berth.MetricPoint // of these bars, since they were last taken
	drawn    map[string]barState // by stream
	unread   unreadValues
	doubts   []berth.MetricPoint // the objective's if nobody reports it, since they were last taken
}

// loggedLine is a line of a Python logger: it begins with a level behind a time or a name, or
// as absl writes it. Frameworks in C++ have "I" alone.
var loggedLine = regexp.MustCompile(`^(?:.{0,100}[\s\[|:(-])?(?:DEBUG|INFO|WARN(?:ING)?)\s*[\]:|) \t-]|` +
	`^.{0,60}\[(?:debug|info|warning)\s*\]|^[DIWE]\d{4} [\d:.]+\s+\d+ \S+\.py:\d+\]`)

// newLineParser uses the spec's pattern, which validation has compiled before
// and found to have the groups name and value.
func newLineParser(pattern, objective string) *lineParser {
	l := &lineParser{objective: objective, records: newRecordParser(), doubtful: doubtfulFrom(false), drawn: make(map[string]barState)}
	if pattern != "" {
		if own, err := regexp.Compile(pattern); err == nil {
			l.pattern, l.name, l.value = own, own.SubexpIndex("name"), own.SubexpIndex("value")
		}
	}

	return l
}

// parse reads what a job printed on a stream up to the end of a line, behind which nothing
// comes that could change it. That may be
// several lines: Docker loses the end of one that is longer than its buffer.
func (l *lineParser) parse(stream, text string, at time.Time) []berth.MetricPoint {
	points := l.end(stream, partLine{Data: []byte(text), At: at})

	return append(points, l.over("")...)
}

// over reads what waited of the bars on all streams but one: no more of these comes, or
// something else comes first.
func (l *lineParser) over(but string) (points []berth.MetricPoint) {
	for _, stream := range slices.Sorted(maps.Keys(l.drawn)) {
		if state := l.drawn[stream]; stream != but && state.Drawn != "" {
			points = l.read(points, stream, state.over(nil), state.Time)
			l.drawn[stream] = state
		}
	}

	return points
}

// end reads a line that has ended, of which a part may have been read (begin), or the lines
// of a record.
func (l *lineParser) end(stream string, line partLine) []berth.MetricPoint {
	var (
		points  []berth.MetricPoint
		several gatherer
	)

	bar := line.Bar

	if shown(string(line.Data)) != "" {
		points = l.over(stream)
	}

	take := func(text []byte) {
		bars := l.drawn[stream]
		bars.At, bar = bar, ""
		parts, _, after := rewritten(string(text), bars, true)
		points = l.read(points, stream, parts, line.At)
		l.note(stream, after, line.At)
	}

	for text := range bytes.SplitSeq(line.Data, []byte("\n")) {
		if l.pattern != nil {
			take(text)
		} else {
			several.add(text, take)
		}
	}

	several.release(take)

	return points
}

// begin reads what is certain of a line that has not ended, and returns the rest of it.
func (l *lineParser) begin(stream string, line partLine) ([]berth.MetricPoint, partLine) {
	if line.Depth > 0 { // the rest of a record is to come
		return nil, line
	}

	bars := l.drawn[stream]
	bars.At = line.Bar
	parts, rest, after := rewritten(string(line.Data), bars, false)
	l.note(stream, after, line.At)

	var points []berth.MetricPoint
	if len(parts) > 0 {
		points = l.over(stream)
	}

	return l.read(points, stream, parts, line.At), partLine{Data: []byte(rest), At: line.At, Bar: after.At}
}

// note keeps what is known of the bars on a stream.
func (l *lineParser) note(stream string, bars barState, at time.Time) {
	if bars.Drawn != l.drawn[stream].Drawn {
		bars.Time = at
	}

	l.drawn[stream] = bars
}

// read adds what the parts of a line hold. On standard error frameworks print, too, what
// looks like metrics ("/device:GPU:0"): there a part counts that a Python logger wrote, that
// holds the objective or a record, or what the spec's own pattern finds.
func (l *lineParser) read(points []berth.MetricPoint, stream string, parts []shownPart, at time.Time) []berth.MetricPoint {
	for _, part := range parts {
		found, record := l.find(part.text)

		if part.which != allNames || part.drawn != "" {
			drawn := pairsOf(plain(part.drawn), l.objective).found
			found = slices.DeleteFunc(found, func(f sighting) bool { return !part.counts(f, drawn) })
		}

		if stream == berth.Stderr && l.pattern == nil && !record && !logged(part.text) && !slices.ContainsFunc(found, l.isObjective) {
			continue
		}

		before := l.turned
		l.turned = false
		settled := l.settle(found, at)

		if l.turned {
			other := func(p berth.MetricPoint) bool { return p.Name == l.objective }
			points, l.bars = slices.DeleteFunc(points, other), slices.DeleteFunc(l.bars, other)
		}

		l.turned = l.turned || before

		if l.apart && ownBar(part.text) {
			l.bars = append(l.bars, settled...)
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

// find returns what a line holds, in order. record says that some of it is of a record,
// or that the line is one, maybe without metrics.
func (l *lineParser) find(line string) (found []sighting, record bool) {
	if !strings.HasPrefix(line, "{") {
		if found = l.match(line); len(found) > 0 {
			return found, false
		}
	}

	clean := plain(line)

	objects, before, after, record := objectsOf(clean)
	if !record {
		return append(l.match(line), l.pairs(clean).found...), false
	}

	in := l.pairs(before)
	found = in.found
	best, until := bestLine(clean)

	for _, object := range objects {
		recorded := l.records.find(object)
		l.noteUnread(l.records.unread)

		for i := range recorded {
			name := recorded[i].name.in(in.words.split, in.words.weak)
			if until > len(before) {
				name = name.of(best)
			} else if len(in.words.qualities) > 0 {
				name = name.of(strings.Join(in.words.qualities, " "))
			}

			recorded[i].name = name
		}

		found = append(found, recorded...)

		if slices.ContainsFunc(recorded, l.isObjective) {
			continue
		}

		for _, text := range messages(object) {
			found = append(append(found, l.match(text)...), l.pairs(plain(text)).found...)
		}
	}

	return append(found, l.pairs(after).found...), true
}

// pairs finds pairs in a line, unless the spec has a pattern of its own.
func (l *lineParser) pairs(line string) pairs {
	if l.pattern != nil {
		return pairs{}
	}

	p := pairsOf(line, l.objective)
	l.noteUnread(p.unread)

	return p
}

// noteUnread counts what cannot be read of what is taken for the objective.
func (l *lineParser) noteUnread(unread []unreadPair) {
	for _, u := range unread {
		if like := u.name.like(l.objective); l.objective != "" && like > 0 && like < averaged && (l.likeness == 0 || like <= l.likeness) {
			l.unread.add(u.name.full, u.value)
		}
	}
}

// match finds what the spec's own pattern finds. Its names stand as they are.
func (l *lineParser) match(line string) []sighting {
	if l.pattern == nil || l.name < 0 || l.value < 0 {
		return nil
	}

	var found []sighting

	for _, match := range l.pattern.FindAllStringSubmatchIndex(line, -1) {
		from, to := match[2*l.name], match[2*l.name+1]
		valueFrom, valueTo := match[2*l.value], match[2*l.value+1]

		if from < 0 || valueFrom < 0 {
			continue
		}

		if p, ok := newPoint(line[from:to], line[valueFrom:valueTo], time.Time{}); ok {
			found = append(found, sighting{point: p, name: metricName{full: p.Name}, own: true})
		}
	}

	return found
}

// settle returns what was found in a line, by the names and steps that it has from now on.
// What is most like the objective takes its name; once something is more like it, that is
// the objective, and what had its name has its own name. A doubtful one keeps its own name
// beside that, unless it is the same name in another form.
func (l *lineParser) settle(found []sighting, at time.Time) (points []berth.MetricPoint) {
	for i := range found {
		found[i].likeness = l.likenessOf(found[i])
		if like := found[i].likeness; like > 0 && (l.likeness == 0 || like < l.likeness) {
			if l.likeness > 0 {
				l.turned = true
				delete(l.records.steps, l.objective)
				l.doubts, l.unread = nil, unreadValues{}
			}

			l.likeness = like
		}
	}

	for _, f := range found {
		p := f.point
		p.Name, p.At = f.name.full, at

		taken := f.likeness > 0 && f.likeness == l.likeness
		doubted := taken && f.likeness >= l.doubtful

		if taken && !doubted {
			p.Name = l.objective
		}

		var named bool

		if !doubted || f.likeness > sameLetters {
			p.Step, named = l.records.settle(p.Name, f, l.objective) // the last one of a name stands, as it would on the next line
			points = append(points, p)
		}

		if doubted {
			p.Name = l.objective
			p.Step, named = l.records.settle(p.Name, f, l.objective)
			l.doubts = append(l.doubts, p)
		}

		if taken {
			l.named = named
		}
	}

	return points
}

func (l *lineParser) isObjective(f sighting) bool { return l.likenessOf(f) > 0 }

// likenessOf says how much a metric's name is like the objective's; 0 = it is another.
func (l *lineParser) likenessOf(f sighting) likeness {
	switch {
	case l.objective == "":
		return 0
	case f.own && f.name.full != l.objective:
		return 0
	}

	return f.name.like(l.objective)
}
