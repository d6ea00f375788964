package metrics

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berthml/berth"
)

// number is one at the start of a text, or a fraction of whole ones.
var number = regexp.MustCompile(`^([+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:nan|inf(?:inity)?)))(?:/(\d+))?`)

// numberAt returns the number at the start of a text; empty = there is none.
func numberAt(text string) (whole, first, over string) {
	if text == "" || strings.IndexByte("0123456789+-.nNiI", text[0]) < 0 { // spares most of the time
		return "", "", ""
	}

	match := number.FindStringSubmatchIndex(text)
	if match == nil {
		return "", "", ""
	}

	return text[:match[1]], text[:match[3]], text[max(match[4], 0):max(match[5], 0)]
}

// value is a number of a line, with what is around it.
type value struct {
	number string // empty = there is none that can be read
	over   string // the second number of a fraction: 9900/10000
	mean   string // the number in parentheses behind it: 71.2 (70.1)
	split  string // the word in parentheses behind it: 0.9 (val)
	length int
	ends   bool // behind it the line or its field ends
	digits bool // they are there, and may be what cannot be read
	more   bool // another number follows: "train, val acc: 0.99, 0.85"
}

// valueAt reads the value at the start of a text, behind spaces.
func valueAt(text string) (v value) {
	rest := strings.TrimLeft(text, " \t*")

	whole, first, over := numberAt(rest)
	if whole == "" {
		return v
	}

	rest = rest[len(whole):]
	v.digits = whole[len(whole)-1] <= '9' && !strings.HasPrefix(rest, "%|")

	if !endsNumber(rest) || over != "" && !isWhole(first) {
		return v
	}

	v.number, v.over, v.length = first, over, len(text)-len(rest)
	behind := strings.TrimLeft(strings.TrimPrefix(rest, "%"), " \t")
	v.ends = behind == "" || strings.ContainsAny(behind[:1], ",;|)]") || strings.HasPrefix(behind, "│")

	const most = 40 // in parentheses

	if end := strings.IndexByte(behind[:min(len(behind), most)], ')'); end > 0 && behind[0] == '(' {
		inside := strings.TrimSpace(behind[1:end])

		if splits[strings.ToLower(inside)] != "" {
			v.split, behind = inside, behind[end+1:]
			v.length = len(text) - len(behind)
		} else if whole, _, _ := numberAt(inside); whole == inside {
			v.mean = inside
		}
	}

	behind = strings.TrimPrefix(strings.TrimLeft(behind, ",;/&| "), "and ")
	if next, _, _ := numberAt(behind); next != "" && next[0] <= '9' && next[0] != '+' {
		behind = behind[len(next):]
		v.more = endsNumber(behind) && !startsName(strings.TrimLeft(behind, " "))
	}

	return v
}

// endsNumber reports whether what follows digits leaves them a number: not 3s, 1.2.3, 12:30,
// 2026-01-01, 1,234 or 0.5 * x.
func endsNumber(rest string) bool {
	r, size := utf8.DecodeRuneInString(rest)
	next, _ := utf8.DecodeRuneInString(rest[size:])

	switch {
	case rest == "":
		return true
	case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r), strings.ContainsRune("_/\\@#&^~-:", r):
		return false
	case r == '.':
		return size == len(rest) || next == '.' || next == ' '
	case r == ',':
		return !unicode.IsDigit(next)
	case r == '%':
		return next != '|' || startsName(rest[2:]) // how far a progress bar is
	}

	behind := strings.TrimLeft(rest, " \t")

	return !strings.HasPrefix(behind, "* ") && !strings.HasPrefix(behind, "=") && !strings.HasPrefix(behind, "->") && !strings.HasPrefix(behind, "→")
}

// batches returns how many batches of how many are done, as "31/60" says behind no word for
// epochs, and whether in brackets; all = 0 when a line does not say.
func batches(line string) (done, all int, brackets bool) {
	for i, c := range []byte(line) {
		if c != '/' {
			continue
		}

		before, behind := strings.TrimRight(line[:i], digits), strings.TrimLeft(line[i+1:], digits)
		done, err := strconv.Atoi(line[len(before):i])
		all, none := strconv.Atoi(line[i+1 : len(line)-len(behind)])
		label := strings.TrimRight(before, " [(:")

		if err == nil && none == nil && !runs[strings.ToLower(label[strings.LastIndexAny(label, " |")+1:])] {
			return done, all, strings.HasSuffix(strings.TrimRight(before, " "), "[")
		}
	}

	return 0, 0, false
}

// bars are parts of the progress bars of Rich and Keras.
var bars = []string{"━", "╸", "╺", "[=", "[>", "[."}

// isOpenBar reports whether a line is a progress bar that is not full: its values are of the
// batches so far. The last drawing of one of tqdm counts, unless another bar is below it: it may
// be over epochs.
func isOpenBar(line string, moved bool) bool {
	bar := moved && strings.Contains(line, "%|") || slices.ContainsFunc(bars, func(part string) bool { return strings.Contains(line, part) })
	if !bar || strings.Contains(line, "%|") && !moved {
		return false
	}

	done, all, _ := batches(line)

	return done < all
}

// nameWindow is where the name before a number is looked for, so that a long line takes no more
// than its length.
const nameWindow = 2 * NameBytes

// pairs returns what a text has of the one grammar: name=number, name: number, and the
// objective's own name with a space and a number. around is what it says about a name behind it.
func (r *Reader) pairs(text string) (found []sighting, around string) {
	end := 0 // of the pair before
	done, all, meters := batches(text)

	for i := 0; i < len(text); i++ {
		sign := text[i] == '=' || text[i] == ':'
		before, behind := text[max(end, i-nameWindow):i], text[i:]

		if !sign && !r.target.standsBefore(before, behind) {
			continue
		}

		name := r.target.nameBefore(before)
		if name == "" {
			continue
		}

		if sign {
			behind = behind[1:]
		}

		v := valueAt(behind)
		full := within(around, name)

		if v.split != "" {
			full = within(splits[strings.ToLower(v.split)], name)
		}

		rank := r.rankOf(full)
		if sign && rank <= 0 && isWhole(v.number) && (v.number != "" || behind == "" || strings.ContainsAny(behind[:1], " \t[{")) {
			if label := labelOf(name); label != "" { // "Test set: ", "Best epoch: 3"
				around = label
			}
		}

		if !r.isPair(name, text[i:], rank, v) {
			continue
		}

		end = i + len(text[i:]) - len(behind) + v.length
		i = end - 1

		if first, _, two := strings.Cut(name, " "); two && !isWhole(v.number) && labelOf(first) != "" {
			around = labelOf(first) // "val loss: 0.4 acc: 0.9"
		}

		if v.mean != "" && meters {
			if v.number = v.mean; done < all-1 { // the mean of the batches so far
				continue
			}
		}

		if p, ok := pointOf(v); ok {
			found = append(found, sighting{point: p, name: full})
		}
	}

	return found, around
}

// standsBefore reports whether the objective's last word and a space stand before a number.
func (t target) standsBefore(before, behind string) bool {
	if t.last == "" || before == "" || behind[0] == ' ' || before[len(before)-1] != ' ' && before[len(before)-1] != '\t' {
		return false
	}

	before = strings.TrimRight(before, " \t│|*")
	from := len(before) - len(t.last)

	return from >= 0 && strings.EqualFold(before[from:], t.last) && number.MatchString(behind)
}

// isPair reports whether a value is the name's that a text stands behind, and notes one of the
// objective that cannot be read.
func (r *Reader) isPair(name, text string, rank int, v value) bool {
	sign := text[0] == '=' || text[0] == ':'

	switch {
	case rank > 0 && sign && v.digits && (v.number == "" || v.more):
		r.unread = true

		return false
	case v.number == "", rank <= 0 && (!sign || v.over != "" || counting[strings.ToLower(name)]):
		return false
	case rank <= 0 && text[0] == ':' && isWhole(v.number) && text[1] != ' ': // main:42, of a logger
		return false
	default:
		return sign || v.ends || strings.ContainsAny(v.number, ".nN")
	}
}

// pointOf makes a point of a value, which may be a fraction of whole numbers.
func pointOf(v value) (p berth.MetricPoint, ok bool) {
	p.Value, p.Status = finite(v.number)
	if v.over == "" {
		return p, true
	}

	whole, err := strconv.ParseFloat(v.over, 64)
	p.Value /= whole

	return p, err == nil && p.Value <= 1 // not of 0/0
}
