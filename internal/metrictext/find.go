package metrictext

import (
	"slices"
	"strings"
	"time"
)

// find returns what a line holds, in order. record says that some of it is of a record,
// or that the line is one, maybe without metrics.
func (l *LineParser) find(line string) (found []sighting, record bool) {
	if found = l.match(line); len(found) > 0 {
		return found, false
	}

	clean := plain(line)

	objects, before, after, record := objectsOf(clean)
	if !record && !strings.ContainsAny(clean, "=:") {
		return nil, false // the words of a line without pairs are costly
	}

	if !record {
		return l.pairs(clean).found, false
	}

	in := l.pairs(before)
	found = in.found

	around := strings.Join(in.words.qualities, " ")

	best, until := bestLine(clean)
	if l.best != "" {
		best, until = l.best, len(clean)+1
	}

	for _, object := range objects {
		quality, said := around, messages(object)
		if until > len(before) {
			quality = best
		} else if best, _ := bestLine(strings.Join(said, " ")); best != "" {
			quality = best
		}

		var recorded []sighting
		if l.Pattern == nil {
			recorded = l.Records.find(object)
		}

		named := func(name *metricName) { // by the words around the record, too
			*name = name.about(before).in(in.words.split, in.words.weak)
			if quality != "" {
				*name = name.of(quality)
			}
		}

		for i := range l.Records.unread {
			named(&l.Records.unread[i].name)
		}

		l.noteUnread(l.Records.unread)

		for i := range recorded {
			named(&recorded[i].name)
		}

		found = append(found, recorded...)

		if slices.ContainsFunc(recorded, l.isObjective) {
			continue
		}

		for _, text := range said {
			found = append(append(found, l.match(text)...), l.pairs(plain(text)).found...)
		}
	}

	return append(found, l.pairs(after).found...), true
}

// pairs finds pairs in a text, unless the spec has a pattern of its own.
func (l *LineParser) pairs(line string) pairs {
	if l.Pattern != nil {
		return pairs{}
	}

	p := pairsOf(line, l.Objective)

	if l.best != "" {
		for i := range p.found {
			p.found[i].name = p.found[i].name.of(l.best)
		}

		for i := range p.unread {
			p.unread[i].name = p.unread[i].name.of(l.best)
		}
	}

	l.noteUnread(p.unread)

	return p
}

// noteUnread counts what cannot be read of what is taken for the objective.
func (l *LineParser) noteUnread(unread []unreadPair) {
	for _, u := range unread {
		if like := u.name.like(l.Objective); l.Objective != "" && like > 0 && like < averaged && (l.Likeness == 0 && !noValue.MatchString(u.value) || like <= l.Likeness) {
			l.Unread.Add(u.name.full, u.value)
		}
	}
}

// match finds what the spec's own pattern finds. Its names stand as they are.
func (l *LineParser) match(line string) []sighting {
	if l.Pattern == nil || l.name < 0 || l.value < 0 {
		return nil
	}

	var found []sighting

	for _, match := range l.Pattern.FindAllStringSubmatchIndex(line, -1) {
		from, to := match[2*l.name], match[2*l.name+1]
		valueFrom, valueTo := match[2*l.value], match[2*l.value+1]

		if from < 0 || valueFrom < 0 {
			continue
		}

		if p, ok := NewPoint(line[from:to], line[valueFrom:valueTo], time.Time{}); ok {
			found = append(found, sighting{point: p, name: metricName{full: p.Name}, own: true})
		}
	}

	return found
}
