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
	number    = `[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|(?i:nan|inf(?:inity)?))`
	mostWords = 6  // of a name
	nearby    = 40 // bytes of a text in parentheses
)

var (
	// valued is a number after a name, or a fraction of whole numbers, and a text in parentheses
	// behind it: 9900/10000, 71.2 (70.1), 0.9 (val).
	valued = regexp.MustCompile(`^[ \t*]*(` + number + `)(?:/(\d+))?(?:%? +\( *([^()%]{1,40}?) *\))?`)
	// ratio is how far something is, such as 31/60. That of epochs says nothing of batches.
	ratio = regexp.MustCompile(`(?i)(epochs?|fold|run|trial|seed|episode|gen|generation)?[ \[(:]*(\d+)/(\d+)`)
)

// batches returns how many batches of how many are done; all = 0 when a line does not say.
func batches(line string) (done, all int) {
	for _, match := range ratio.FindAllStringSubmatch(line, -1) {
		if match[1] == "" {
			done, _ = strconv.Atoi(match[2])
			all, _ = strconv.Atoi(match[3])

			break
		}
	}

	return done, all
}

// isOpenBar reports whether a line is a progress bar of Rich or Keras that is not full: its values
// are of the batches so far. The last drawing of one of tqdm counts, unless another bar is below
// it (moved): it may be over epochs.
func isOpenBar(line string, moved bool) bool {
	bar := strings.ContainsAny(line, "━╸╺") || strings.Contains(line, "[=") || strings.Contains(line, "[>") || strings.Contains(line, "[.")
	if !moved && (!bar || strings.Contains(line, "%|")) {
		return false
	}

	done, all := batches(line)

	return done < all
}

// pairs returns the metrics of a text by the one grammar: name=number, name: number, and the
// objective's own name, a space and a number. label is the data set that the line names before
// the text; pairs returns the one that it names after it.
func (r *Reader) pairs(text, label string) ([]sighting, string) {
	var (
		found []sighting
		list  []string // the words of the name so far
		gap   bool     // more than a space is behind them: the next word begins another name
	)

	for text != "" {
		first, size := utf8.DecodeRuneInString(text)
		word := wordOf(text)
		rest := text[size:]

		switch {
		case first == '=', first == ':':
			name, v := nameOf(list), valueAt(rest)

			if s, ok := r.pair(name, label, text[:1], rest, v); ok {
				found, size = append(found, s), 1+v.length
			} else if first == '=' { // net=small acc
				size += len(wordOf(rest))
			}

			if v.number != "" || rest == "" || strings.ContainsAny(rest[:1], " \t[{") { // not a logger's "train:"
				label = cmp.Or(labelOf(name, v.number), label)
			}

			list = nil
		case first == '{': // train {'acc': 0.9}
			label = cmp.Or(labelOf(nameOf(list), ""), label)
			list = nil
		case first == '(': // Accuracy (val):
			inside, behind, _ := strings.Cut(text[1:min(len(text), nearby)], ")")
			if len(list) == 0 || behind == "" || behind[0] != ':' && behind[0] != '=' {
				list = nil

				break
			}

			list = append(list, splits[strings.ToLower(inside)])
			size += len(inside) + 1
		case word != "":
			size = len(word)

			if v := valueAt(text); len(list) > 0 && hasLetter(list[len(list)-1]) {
				if s, ok := r.pair(nameOf(list), label, " ", text, v); ok {
					found, list, size = append(found, s), nil, v.length

					break
				}
			}

			if gap || len(list) > 0 && r.target.endsBefore(list) {
				list = nil
			}

			list = append(list[max(len(list)-mostWords, 0):], word)
			gap = false
		case strings.HasPrefix(text, "'s "): // LightGBM's "valid_0's auc"
			size = len("'s")
		case strings.ContainsRune(" \t*`\"'│|", first):
			gap = gap || first != ' ' || strings.HasPrefix(rest, " ")
		default:
			list = nil
		}

		text = text[size:]
	}

	return found, label
}

// pair returns the pair of a name and a value, and notes one of the objective that cannot be
// read. sign is the character between name and value.
func (r *Reader) pair(name, label, sign, text string, v value) (s sighting, ok bool) {
	if name == "" || v.number == "" && !v.unclear {
		return s, false
	}

	s.name = within(cmp.Or(v.split, label), name)
	rank := r.target.rank(s.name)

	switch {
	case rank > 0 && sign != " " && v.unclear:
		r.unread = true

		return s, false
	case v.number == "", sign == " " && (rank <= 0 || !strings.ContainsAny(v.number, ".nN") && v.length < len(text)): // "reward 200" at the line's end
		return s, false
	case rank <= 0 && (v.over != "" || counting[strings.ToLower(name)] || sign == ":" && isWhole(v.number) && text[0] != ' '): // main:42, of a logger
		return s, false
	}

	open := false

	if v.mean != "" {
		if done, all := batches(r.shown); all > 0 { // of the batches so far
			v.number, open = v.mean, done < all-1
		}
	}

	s.point.Value, s.point.Status, _ = finite(v.number)

	if over, err := strconv.ParseFloat(v.over, 64); err == nil {
		s.point.Value /= over

		return s, s.point.Value <= 1 // nor 0/0
	}

	return s, !open
}

// value is a number of a line, with its neighbours.
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
	if text == "" || strings.IndexByte(" \t*+-.nNiI"+digits, text[0]) < 0 { // spares most of the time
		return v
	}

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
