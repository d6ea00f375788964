package runtrial

import (
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/berthml/berth"
)

var (
	// number is what a metric's value may be, in quotes or brackets too.
	number = regexp.MustCompile(`^["'` + "`" + `]?(\[\s*)?([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?i:nan|inf(?:inity)?))`)
	// behindNumber may follow a value. A full stop may end the sentence.
	behindNumber = regexp.MustCompile(`^(?:$|[\s,;|)\]}%"'` + "`" + `!<>±…，；。）％]|\.{3}|\.+(?:$|\s)|\+(?:/?-|$|\s)|\*+(?:$|[\s|,;)]))`)
	// noValue follows digits that are no metric's value: the first of 1,234.56, and how
	// far a progress bar is ("train: 100%|███", "0%|   | 0/3").
	noValue = regexp.MustCompile(`^(?:,\d{3}(?:\D|$)|%\|(?:[█▏▎▍▌▋▊▉#]|\d*#| *(?:\||$)))`)
	// fraction follows the first number of 9913/10000, which (99%) may follow.
	fraction = regexp.MustCompile(`^/(\d+(?:\.\d+)?)\b(?:\s?(\(\d+(?:\.\d+)?%\)))?`)
	// sourceFile is where a logger was called: train.py:12.
	sourceFile = regexp.MustCompile(`\.(?:py|ipynb|cc|cpp|cu|c|h|go|rs)$`)
)

// numberBytes is the longest number that is read, with what is before it.
const numberBytes = 80

// pairs are the pairs of a name and a number in a line.
type pairs struct {
	found []sighting
	words lineWords // that hold behind the line
}

// pairsOf finds name=value and name: value in a line, also of JSON and of Python's dict
// that are broken. Time is linear in the line.
func pairsOf(line, objective string) (p pairs) {
	best, until := bestLine(line)
	end := 0 // of the pair before

	for at := 0; ; {
		next := strings.IndexAny(line[at:], "=:")
		if next < 0 {
			p.words.pass(line[end:])

			return p
		}

		sign := at + next
		at = sign + 1

		printed, inParentheses, from, ok := nameAtEnd(line[end:sign], objective)
		if !ok {
			continue
		}

		value, length, over := valueAtStart(line[at:])
		if length == 0 {
			continue
		}

		p.words.pass(line[end : end+from])

		if quote := line[end+from]; quote == '"' || quote == '\'' {
			p.words.others = nil
		}

		s := sighting{name: p.words.name(printed, inParentheses)}
		at += length

		if best != "" && sign < until {
			s.name = s.name.of(best)
		} else if only := onlyBest.FindStringSubmatch(line[at:]); only != nil && end == 0 && inFront.MatchString(line[:from]) {
			s.name = s.name.of(only[1])
		}

		end = at

		if over != "" && s.name.like(objective) == 0 && !strings.HasSuffix(line[:at], "%)") {
			continue // Epoch: 3/10
		}

		if s.point, ok = newPoint(s.name.full, value, time.Time{}); !ok {
			continue
		}

		if over != "" {
			whole, _, _ := numberOf(over)
			if s.point.Status != berth.MetricFinite || whole < s.point.Value || whole == 0 {
				continue
			}

			s.point.Value /= whole
		}

		p.found = append(p.found, s)
	}
}

// nameAtEnd is the name of a metric at the end of a text, and what stands behind it in
// parentheses. It begins with a letter, and not in the middle of a word ("l'acc", "@1").
func nameAtEnd(text, objective string) (name, inParentheses string, from int, ok bool) {
	text = strings.TrimRight(text, " \t*`")

	if before, inside, found := parenthesized(text); found {
		inParentheses, text = inside, strings.TrimRight(before, " \t*`")
	}

	if last := len(text) - 1; last > 0 && (text[last] == '"' || text[last] == '\'') {
		inside := text[max(last-nameBytes, 0):last]
		if open := strings.LastIndexByte(inside, text[last]); open >= 0 {
			name = inside[open+1:]
			first, _ := utf8.DecodeRuneInString(name)

			return name, inParentheses, last - len(name) - 1, startsName(first) && !strings.ContainsAny(name, "=:{}")
		}

		text = text[:last]
	}

	from = len(text)

	for from > 0 && len(text)-from <= nameBytes {
		r, size := utf8.DecodeLastRuneInString(text[:from])
		if !inName(r) {
			break
		}

		from -= size
	}

	if i := strings.LastIndexByte(text[from:], '|'); i >= 0 && text[from:] != objective { // a logger's: INFO|loss
		from += i + 1
	}

	start := strings.IndexFunc(text[from:], startsName)
	if start < 0 {
		return "", "", 0, false
	}

	from += start
	name = strings.TrimRight(text[from:], "./|@-")

	return name, inParentheses, from, !behindWord(text[:from]) && !sourceFile.MatchString(name)
}

// parenthesized splits a text that ends with something short in parentheses.
func parenthesized(text string) (before, inside string, found bool) {
	const most = 40

	if !strings.HasSuffix(text, ")") {
		return "", "", false
	}

	text = text[:len(text)-1]
	low := max(len(text)-most, 0)

	open := strings.LastIndexByte(text[low:], '(')
	if open < 0 || strings.ContainsAny(text[low+open:], "=:)") {
		return "", "", false
	}

	return text[:low+open], strings.TrimSpace(text[low+open+1:]), true
}

// behindWord reports whether a name behind a text is the end of a word.
func behindWord(text string) bool {
	if strings.HasSuffix(text, "@") {
		return true
	}

	before, apostrophe := strings.CutSuffix(text, "'")
	last, _ := utf8.DecodeLastRuneInString(before)

	return apostrophe && unicode.IsLetter(last)
}

func startsName(r rune) bool { return r == '_' || unicode.IsLetter(r) && r != utf8.RuneError }

func inName(r rune) bool {
	return startsName(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("./|@-", r)
}

// valueAtStart is the number at the start of a text, and how long that is with what is
// around the number; 0 = there is none. over is the second number of a fraction.
func valueAtStart(text string) (value string, length int, over string) {
	rest := strings.TrimLeft(text, " \t*")

	match := number.FindStringSubmatchIndex(rest[:min(len(rest), numberBytes)])
	if match == nil {
		return "", 0, ""
	}

	value, rest = rest[match[4]:match[5]], rest[match[1]:]

	if match[2] >= 0 { // an array of one
		rest = strings.TrimLeft(rest, " ")
		if !strings.HasPrefix(rest, "]") {
			return "", 0, ""
		}

		rest = rest[1:]
	}

	if parts := fraction.FindStringSubmatch(rest[:min(len(rest), numberBytes)]); parts != nil {
		over, rest = parts[1], rest[len(parts[0]):]
	}

	if noValue.MatchString(rest) || !behindNumber.MatchString(rest) {
		return "", 0, ""
	}

	return value, len(text) - len(rest), over
}
