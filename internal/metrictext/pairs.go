package metrictext

import (
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/berthml/berth"
)

var (
	// sourceFile is where a logger was called: train.py:12.
	sourceFile = regexp.MustCompile(`\.(?:py|ipynb|cc|cpp|cu|c|h|go|rs)$`)
	// thresholds end the name of a mean over them: mAP@0.5:0.95. Behind the first one comes the
	// last, and another sign.
	thresholds     = regexp.MustCompile(`@\.?\d[\d.]*:\.?\d[\d.]*\s*$`)
	firstThreshold = regexp.MustCompile(`@\.?\d[\d.]*$`)
	lastThreshold  = regexp.MustCompile(`^\.?\d[\d.]*\s*[:=]`)
	// listed is behind the first of several names: "precision, recall, f1", "train/val acc".
	// moreValues are the others, behind the first of their values.
	listed     = regexp.MustCompile(`\pL[^\s,/&]*(?:\s*[,/&]|\s+and\s)\s*[\pL\s_-]*$`)
	moreValues = regexp.MustCompile(`^\s*[,/|]?\s*[+-]?\d*\.\d+(?:$|[\s,;)/|])`)
	// bothSplits are directly before the name of two values: "train and val acc". A comma or a bar
	// may part something else, where otherValue, the second one, is not there.
	bothSplits = regexp.MustCompile(`(?i)(?:^|[^\pL\d_])(?:train(?:ing)?|val(?:id(?:ation)?)?|dev|test(?:ing)?|eval(?:uation)?)(?:\s*([/&,|])\s*|\sand\s)` +
		`(?:train(?:ing)?|val(?:id(?:ation)?)?|dev|test(?:ing)?|eval(?:uation)?)[\s_-]*$`)
	otherValue = regexp.MustCompile(`^%?\s*(?:[,;/|&-]|and\b)\s*[+-]?(?:\d*\.\d+%?|\d+%)(?:$|[\s,;)/|&])`)
	// meanBehind is the mean that meters print behind the newest value, in a line that counts
	// batches: "Test: [ 9/48] Loss: 0.8 (0.9)". Elsewhere that may be a deviation.
	meanBehind = regexp.MustCompile(`^\s?\(\s*(\d[\d.eE+-]*)\s*\)`)
	// batches is a counter of them, unless a word before it says what it counts.
	batches = regexp.MustCompile(`(?i)(epochs?\W{0,3}|\b(?:fold|cv|trial|seed|run|repeat|repetition|episode|gen(?:eration)?)s?\W{0,3}|\b(?:round|task)s?\s{0,3})?\[\s*(\d+)/(\d+)\b`)
	// behindValue may be the split of a value: "acc: 0.9 (val)".
	behindValue = regexp.MustCompile(`^\s?\(\s*(\pL+)\s*\)`)
)

// mostCounters stand before a metric: of runs, folds, epochs and batches.
const mostCounters = 4

// valueOfTwo is none: it cannot be told which one is meant.
var valueOfTwo = value{digits: true}

// pairs are the pairs of a name and a number in a line.
type pairs struct {
	found  []sighting
	unread []unreadPair
	words  lineWords // that hold behind the line
}

// unreadPair is a name behind which are digits that are no number, or which says that it has
// no value.
type unreadPair struct {
	name  metricName
	value string
}

// pairsOf finds name=value and name: value in a line, also of JSON and of Python's dict
// that are broken. Time is linear in the line.
func pairsOf(line, objective string) (p pairs) {
	best, until := bestLine(line)
	end := 0     // of the pair before
	two := false // two values were behind a name, for one split each

	for at := 0; ; {
		next := strings.IndexAny(line[at:], "=:")
		if next < 0 {
			p.words.pass(line[end:])

			return p
		}

		sign := at + next
		at = sign + 1

		if name := line[max(end, sign-numberBytes):sign]; strings.Contains(name, "@") && firstThreshold.MatchString(name) && lastThreshold.MatchString(line[at:]) {
			continue
		}

		printed, inParentheses, from, ok := nameAtEnd(line[end:sign], objective)
		if !ok {
			continue
		}

		value := valueAtStart(line[at:])

		switch whole := strings.Trim(value.number, "0123456789") == ""; {
		case whole && splitWord.MatchString(printed) && printed != objective: // Val: [3/10] loss: 0.4
			continue
		case value.number == "" && !value.digits:
			none := noValue.FindString(line[at:min(len(line), at+numberBytes)])
			if none == "" || splitWord.MatchString(printed) {
				continue
			}

			value.length = len(none)
		case moreValues.MatchString(line[at+value.length:]) && listed.MatchString(line[end:end+from]):
			two = two || splitsAtEnd(line[max(end, end+from-numberBytes):end+from]) != nil // and no list of metrics
			value = valueOfTwo
		default:
			others := otherValue.MatchString(line[at+value.length:])
			if split := splitsAtEnd(line[max(end, end+from-numberBytes) : end+from]); split != nil && (others || split[1] != "," && split[1] != "|") {
				two, value = true, valueOfTwo
			} else if two && others { // "train/val loss: 0.1/0.4, acc: 90%/80%"
				value = valueOfTwo
			}
		}

		if split := behindValue.FindStringSubmatch(line[at+value.length:]); split != nil && inParentheses == "" && splitWord.MatchString(split[1]) {
			inParentheses = split[1]
			value.length += len(split[0])
		}

		running := false

		if mean := meanBehind.FindStringSubmatch(line[at+value.length:]); mean != nil && value.number != "" {
			if counts, last := batchOf(line[:min(at, barBytes)]); counts {
				value.number, running = mean[1], !last
				value.length += len(mean[0])
			}
		}

		p.words.pass(line[end : end+from])

		if quote := line[end+from]; quote == '"' || quote == '\'' {
			p.words.others, p.words.phrase = nil, nil
		}

		s := sighting{name: p.words.name(printed, inParentheses)}
		if whole := strings.Trim(value.number, "0123456789") == ""; whole && (value.number != "" || value.digits) && !strings.HasPrefix(strings.ToLower(p.words.split), "train") && !counting[strings.ToLower(printed)] {
			p.words.weak = true // valid tokens: 512
		}

		if value.number == "" {
			p.unread = append(p.unread, unreadPair{s.name, line[at:min(len(line), at+firstBytes)]})
			at += value.length
			end = at

			continue
		}

		at += value.length

		if running {
			s.name = s.name.of("running")
		}

		if best != "" && sign < until {
			s.name = s.name.of(best)
		} else if only := onlyBest.FindStringSubmatch(line[at:]); only != nil && end == 0 && inFront.MatchString(line[:from]) {
			s.name = s.name.of(only[1])
		}

		end = at

		if value.over != "" && s.name.like(objective) == 0 && !strings.HasSuffix(line[:at], "%)") {
			continue // Epoch: 3/10
		}

		if s.point, ok = NewPoint(s.name.full, value.number, time.Time{}); !ok {
			continue
		}

		if value.over != "" {
			whole, _, _ := numberOf(value.over)
			if s.point.Status != berth.MetricFinite || whole < s.point.Value || whole == 0 {
				continue
			}

			s.point.Value /= whole
		}

		p.found = append(p.found, s)
	}
}

// splitsAtEnd finds bothSplits. The costly pattern is tried where the last word ends as
// one of its words does.
func splitsAtEnd(text string) []string {
	end := strings.TrimRight(text, "\t\n\f\r _-")
	if end == "" || !strings.ContainsAny(end[len(end)-1:], "ngldvtNGLDVT") {
		return nil
	}

	return bothSplits.FindStringSubmatch(text)
}

// batchOf reports whether a text counts batches, and is at the last one, counted from 0 or
// from 1.
func batchOf(text string) (counts, last bool) {
	for _, match := range batches.FindAllStringSubmatch(text, mostCounters) {
		if match[1] == "" {
			n, _, _ := numberOf(match[2])
			all, _, _ := numberOf(match[3])

			return true, n >= all-1
		}
	}

	return false, false
}

// nameAtEnd is the name of a metric at the end of a text, and what stands behind it in
// parentheses. It has a letter, and begins not in the middle of a word ("l'acc", "@1").
func nameAtEnd(text, objective string) (name, inParentheses string, from int, ok bool) {
	text = strings.TrimRight(text, " \t*`")

	if tail := text[max(len(text)-numberBytes, 0):]; strings.Contains(tail, "@") {
		if at := thresholds.FindStringIndex(tail); at != nil {
			over := tail[at[0]:]
			name, inParentheses, from, ok = nameAtEnd(strings.TrimSuffix(text, over), objective)

			return name + over, inParentheses, from, ok
		}
	}

	if before, inside, found := parenthesized(text); found {
		inParentheses, text = inside, strings.TrimRight(before, " \t*`")
	}

	if last := len(text) - 1; last > 0 && (text[last] == '"' || text[last] == '\'') {
		inside := text[max(last-NameBytes, 0):last]
		if open := strings.LastIndexByte(inside, text[last]); open >= 0 {
			name = inside[open+1:]
			first, _ := utf8.DecodeRuneInString(name)

			return name, inParentheses, last - len(name) - 1, startsName(first) && !strings.ContainsAny(name, "=:{}")
		}

		text = text[:last]
	}

	from = len(text)

	for from > 0 && len(text)-from <= NameBytes {
		r, size := utf8.DecodeLastRuneInString(text[:from])
		if !inName(r) {
			break
		}

		from -= size
	}

	if i := strings.LastIndexByte(text[from:], '|'); i >= 0 && text[from:] != objective { // a logger's: INFO|loss
		from += i + 1
	}

	start := strings.IndexFunc(text[from:], func(r rune) bool { return startsName(r) || unicode.IsDigit(r) })
	if start < 0 || !strings.ContainsFunc(text[from:], startsName) {
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
	return startsName(r) || unicode.IsNumber(r) || unicode.IsMark(r) || strings.ContainsRune("./|@-", r)
}
