package metrics

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	number = `[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|(?i:nan|inf(?:inity)?))`
	// nameWindow is where the name before a number is looked for, so that a long line takes no
	// more than its length.
	nameWindow = 2 * NameBytes
)

var (
	// valued is a number behind a name, or a fraction of whole ones, and what is in parentheses
	// behind it: 9900/10000, 71.2 (70.1), 0.9 (val).
	valued = regexp.MustCompile(`^[ \t*]*(` + number + `)(?:/(\d+))?(?:%? +\( *([^()%]{1,40}?) *\))?`)
	// ratio is how far something is, such as 31/60. That of epochs says nothing of batches.
	ratio = regexp.MustCompile(`(?i)(epochs?|fold|run|trial|seed|episode|gen|generation)?[ \[(:]*(\d+)/(\d+)`)
)

// batches returns how many batches of how many are done; all = 0 when a line does not say.
func batches(line string) (done, all int) {
	if !strings.Contains(line, "/") {
		return 0, 0
	}

	for _, match := range ratio.FindAllStringSubmatch(line, -1) {
		if match[1] == "" {
			done, _ = strconv.Atoi(match[2])
			all, _ = strconv.Atoi(match[3])

			return done, all
		}
	}

	return 0, 0
}

// isOpenBar reports whether a line is a progress bar of Rich or Keras that is not full: its values
// are of the batches so far. The last drawing of one of tqdm counts, unless another bar is below
// it (moved): it may be over epochs.
func isOpenBar(line string, moved bool) bool {
	if !moved && (strings.Contains(line, "%|") || !strings.ContainsAny(line, "━╸╺") && !strings.Contains(line, "[=") && !strings.Contains(line, "[.")) {
		return false
	}

	done, all := batches(line)

	return done < all
}

// pairs returns what a text has of the one grammar: name=number, name: number, and the
// objective's own name with a space and a number. label is what the text, or what is before it, says
// of the names behind.
func (r *Reader) pairs(text, label string) ([]sighting, string) {
	var found []sighting

	end := 0 // of the pair before
	done, all := batches(text)

	for i := 0; i < len(text); i++ {
		sign := text[i] == '=' || text[i] == ':'
		before, behind := text[max(end, i-nameWindow):i], text[i:]

		if text[i] == '{' { // train {'acc': 0.9}
			label = cmp.Or(labelOf(nameBefore(before, r.target.own), ""), label)
		}

		if !sign && !r.target.standsBefore(before, behind) {
			continue
		}

		name := nameBefore(before, r.target.own)
		if name == "" {
			continue
		}

		if sign {
			behind = behind[1:]
		}

		v := valueAt(behind)
		s := sighting{name: within(label, name)}

		if v.split != "" {
			s.name = within(v.split, name)
		}

		if v.number != "" || behind == "" || strings.ContainsAny(behind[:1], " \t[{") { // not a logger's "train:"
			label = cmp.Or(labelOf(name, v.number), label)
		}

		if !r.isPair(name, text[i:], r.target.rank(s.name), v) {
			continue
		}

		end = len(text) - len(behind) + v.length
		i = end - 1

		if v.mean != "" && all > 0 {
			if v.number = v.mean; done < all-1 { // the mean of the batches so far
				continue
			}
		}

		s.point.Value, s.point.Status, _ = finite(v.number)

		if over, err := strconv.ParseFloat(v.over, 64); err == nil {
			if s.point.Value /= over; !(s.point.Value <= 1) { // nor 0/0
				continue
			}
		}

		found = append(found, s)
	}

	return found, label
}

// isPair reports whether a value belongs to the name before the text, and notes one of the
// objective that cannot be read.
func (r *Reader) isPair(name, text string, rank int, v value) bool {
	sign := text[0] == '=' || text[0] == ':'

	switch {
	case rank > 0 && sign && v.unclear:
		r.unread = true

		return false
	case v.number == "", rank <= 0 && (!sign || v.over != "" || counting[strings.ToLower(name)]):
		return false
	case rank <= 0 && text[0] == ':' && isWhole(v.number) && text[1] != ' ': // main:42, of a logger
		return false
	default:
		return sign || strings.ContainsAny(v.number, ".nN")
	}
}

// value is a number of a line, with what is around it.
type value struct {
	number  string // empty = there is none that can be read
	over    string // the second number of a fraction: 9900/10000
	mean    string // the number in parentheses behind it: 71.2 (70.1)
	split   string // the word in parentheses behind it: 0.9 (val)
	length  int
	unclear bool // it is a part of something else, or another number follows: "train, val acc: 0.99, 0.85"
}

// valueAt reads the value at the start of a text, behind spaces.
func valueAt(text string) (v value) {
	match := valued.FindStringSubmatch(text)
	if match == nil {
		return v
	}

	rest := text[len(match[0]):]
	inside := match[3]

	if v.unclear = strings.ContainsAny(match[1], digits); !endsNumber(rest) || match[2] != "" && !isWhole(match[1]) {
		return v
	}

	v.number, v.over, v.length = match[1], match[2], len(match[0])
	v.split = splits[strings.ToLower(inside)]

	if _, _, ok := finite(inside); ok {
		v.mean = inside
	}

	rest = strings.TrimPrefix(strings.TrimLeft(rest, "%,;/&| "), "and ")
	next := valued.FindString(rest)
	behind := strings.TrimLeft(rest[len(next):], " ")
	v.unclear = next != "" && next[0] <= '9' && next[0] != '+' && endsNumber(rest[len(next):]) && !hasLetter(behind[:min(len(behind), 1)])

	return v
}

// endsNumber reports whether what follows digits leaves them a number: not 3s, 1.2.3, 12:30,
// 2026-01-01, 1,234 or 0.4 -> 0.3.
func endsNumber(rest string) bool {
	r, size := utf8.DecodeRuneInString(rest)
	next, _ := utf8.DecodeRuneInString(rest[size:])

	switch {
	case rest == "":
		return true
	case r == ',', r == '.':
		return size == len(rest) || !unicode.IsDigit(next) && (r == ',' || next == ' ')
	case r == '%':
		return next != '|' // how far a bar is
	case !strings.ContainsRune(" \t;|)]}>+±*\"'│", r):
		return false
	}

	behind := strings.TrimLeft(rest, " \t")

	return !strings.HasPrefix(behind, "->") && !strings.HasPrefix(behind, "→") && !strings.HasPrefix(behind, "* ") && !strings.HasPrefix(behind, "=")
}
