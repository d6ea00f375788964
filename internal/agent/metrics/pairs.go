package metrics

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/berthml/berth"
)

var (
	// openBar is the counter of a progress bar: Keras' 31/60 ━━━, Rich's ━━━ 31/60, tqdm's 31/60 [00:01<.
	openBar = regexp.MustCompile(`(?i)(epochs? +)?(\d+)/(\d+) *(?:[━╸╺]|\[[=>.]|\[\d+:\d\d[^\]]*\]?)|[━╸╺] +(\d+)/(\d+)`)
	// batches counts them in a line of meters: "Test: [ 9/48]". Behind an epoch it does not.
	batches = regexp.MustCompile(`(?i)((?:epoch|fold|run|trial|seed|episode|repeat|repetition|gen|generation)s?\W{0,4})?\[ *(\d+)/(\d+)\b[^\]]*\]`)
)

// withoutOpenBar leaves out a progress bar that is not full: its values are of the batches so
// far. What is printed behind a drawing of tqdm stays. The last drawing of a bar that tqdm takes away
// counts, unless that bar is moved: another one is below.
func withoutOpenBar(line string, moved bool) string {
	if !strings.Contains(line, "/") || !strings.Contains(line, "━") && !strings.Contains(line, "%|") && !strings.Contains(line, "[") {
		return line
	}

	var at []int

	for _, match := range openBar.FindAllStringSubmatchIndex(line, -1) {
		if match[2] < 0 { // of no epochs
			at = match
		}
	}

	if at == nil {
		return line
	}

	group := func(i int) string { return line[max(at[2*i], 0):max(at[2*i+1], 0)] }
	if group(2)+group(4) == group(3)+group(5) {
		return line
	}

	behind := strings.TrimSpace(line[at[1]:])
	if tqdm := strings.Contains(line, "%|"); tqdm && behind == "" && !moved {
		return line
	} else if tqdm {
		return behind
	}

	return ""
}

// meters reports whether a line counts batches, and whether it is at the last one.
func meters(line string) (counts, last bool) {
	if !strings.Contains(line, "/") || !strings.Contains(line, "[") {
		return false, false
	}

	for _, match := range batches.FindAllStringSubmatch(line, 4) {
		if match[1] == "" {
			n, _ := strconv.Atoi(match[2])
			all, _ := strconv.Atoi(match[3])

			return true, n >= all-1
		}
	}

	return false, false
}

// nameWindow is where the name before a number is looked for, so that a long line takes no more
// than its length.
const nameWindow = 2 * NameBytes

// pairs returns what a text has of the one grammar: name=number, name: number, and the
// objective's own name with a space and a number. around is the split that holds behind it.
func (r *Reader) pairs(text string) (found []sighting, around string) {
	end, label := 0, false // of the pair before
	counts, last := meters(text)

	for i := 0; i < len(text); i++ {
		sign := text[i] == '=' || text[i] == ':'
		if !sign && !r.mayFollow(text, i) {
			continue
		}

		before := text[max(end, i-nameWindow):i]
		if !sign { // in a table
			before = strings.TrimRight(before, " \t│|")
		}

		name, inside := nameBefore(before)
		if name == "" {
			continue
		}

		from := i
		if sign {
			from++
		}

		v := valueAt(text[from:])
		s := sighting{name: r.target.withoutFillers(name), around: cmp.Or(inside, v.split, around), label: label}
		rank := r.rankOf(s)
		whole := strings.Trim(v.number, "0123456789") == ""

		if sign && whole && rank == 0 && (from == len(text) || v.number != "" || strings.ContainsAny(text[from:from+1], " \t[{")) {
			if split := cmp.Or(labelOf(name), aimOf(name)); split != "" { // "Test set: ", "Best epoch: 3"
				around, label = split, true
			}
		}

		if !r.isPair(pair{name: name, before: strings.TrimSuffix(before, name), behind: text[from:], sign: sign, whole: whole, rank: rank, value: v}) {
			continue
		}

		end, i = from+v.length, from+v.length-1

		if v.mean != "" && counts {
			if v.number = v.mean; !last { // the mean of the batches so far
				continue
			}
		}

		if first, _, two := strings.Cut(name, " "); two && !whole && splits[strings.ToLower(strings.TrimRight(first, "._0123456789"))] != "" {
			around, label = first, false // "val loss: 0.4 acc: 0.9"
		}

		if p, ok := pointOf(v.number, v.over); ok {
			s.point = p
			found = append(found, s)
		}
	}

	return found, around
}

// pair is a name and a number as they stand in a text.
type pair struct {
	name   string
	before string // of the text
	behind string // its sign
	sign   bool   // = or :; else a space
	whole  bool   // the number, if there is one
	rank   rank
	value  value
}

// isPair reports whether the number is the name's, and notes a value of the objective that
// cannot be read.
func (r *Reader) isPair(p pair) bool {
	rest := strings.TrimLeft(p.behind[p.value.length:], " ")

	switch {
	case p.sign && p.whole && p.value.number != "" && p.behind[0] != ' ' && strings.HasSuffix(p.before, ":"): // main:42, of a logger
		return false
	case p.rank > 0 && p.sign && p.value.digits && (p.value.number == "" || p.value.more):
		r.unread = true

		return false
	case p.value.number == "", p.rank == 0 && (!p.sign || counting[strings.ToLower(p.name)] || p.value.over != ""):
		return false
	case !p.sign && !p.value.ends && !strings.ContainsAny(p.value.number, ".nN"):
		return false
	default: // mAP@0.5:0.95 = 0.4
		return !p.sign || !strings.Contains(p.name, "@") || rest == "" || !strings.ContainsAny(rest[:1], ":=")
	}
}

// mayFollow reports whether at a place in a text a number begins behind a space, which may
// follow the objective's name.
func (r *Reader) mayFollow(text string, i int) bool {
	return r.target.name != "" && i > 1 && (text[i-1] == ' ' || text[i-1] == '\t') && text[i] != ' ' && strings.IndexByte("0123456789.+-nNiI", text[i]) >= 0 &&
		scanNumber(text[i:]) != ""
}

// pointOf makes a point of a number, or of a fraction of whole numbers.
func pointOf(number, over string) (p berth.MetricPoint, ok bool) {
	if p, ok = NewPoint("-", number, time.Time{}); !ok || over == "" {
		return p, ok
	}

	whole, _, _ := numberOf(over)
	if whole < p.Value || whole == 0 {
		return p, false
	}

	p.Value /= whole

	return p, true
}

// row reads the columns of a table whose header has the objective, with spaces, commas or
// bars between them: what fastai and pandas print.
func (r *Reader) row(line string, pairs bool) (found []sighting) {
	if r.target.name == "" || pairs || r.columns == nil && r.target.in(line) == 0 {
		if pairs {
			r.columns = nil
		}

		return nil
	}

	fields := strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" \t,;|│┃", c) })
	if len(fields) == 0 {
		return nil
	}

	if r.columns != nil && len(fields) == len(r.columns) && scanNumber(fields[0]) != "" {
		var step *int64

		for i, name := range r.columns {
			if counting[strings.ToLower(name)] {
				step, _ = whole(json.Number(fields[i]))
			} else if p, ok := NewPoint("-", fields[i], time.Time{}); ok {
				found = append(found, sighting{point: p, name: name})
			}
		}

		for i := range found {
			found[i].step = step
		}

		return found
	}

	r.columns = nil

	for _, name := range fields {
		if !startsName(name) {
			return nil
		}
	}

	for _, name := range fields {
		if len(fields) > 1 && r.target.rank(name, "", false) > 0 {
			r.columns = fields
		}
	}

	return nil
}
