package metrics

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/berthml/berth"
)

// NameBytes is the longest metric name that is kept.
const NameBytes = 200

// NewPoint makes a metric point of a decoded JSON value: a json.Number, or a text that is a
// number, as quoteNonFinite makes of NaN and the infinities. Its step is zero.
func NewPoint(name string, raw any, at time.Time) (berth.MetricPoint, bool) {
	p := berth.MetricPoint{Name: name, At: at, Status: berth.MetricFinite}
	if name == "" || len(name) > NameBytes || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return p, false
	}

	text := ""

	switch v := raw.(type) {
	case json.Number:
		text = v.String()
	case string: // many programs write numbers of NumPy as texts
		if read := scanNumber(v); strings.TrimSuffix(v[len(read):], "%") == "" {
			text = read
		}
	}

	number, status, ok := numberOf(text)
	p.Value, p.Status = number, status

	return p, ok
}

// numberOf reads a number as programs print it. One too large for a float64 is infinite.
func numberOf(text string) (number float64, status berth.MetricStatus, ok bool) {
	if strings.EqualFold(text, "-nan") { // as C prints it
		text = text[1:]
	}

	number, err := strconv.ParseFloat(text, 64)

	switch {
	case err != nil && !math.IsInf(number, 0), strings.ContainsAny(text, "xX_"): // Go's own forms
		return 0, "", false
	case math.IsNaN(number):
		return 0, berth.MetricNaN, true
	case math.IsInf(number, 1):
		return 0, berth.MetricPosInfinity, true
	case math.IsInf(number, -1):
		return 0, berth.MetricNegInfinity, true
	default:
		return number, berth.MetricFinite, true
	}
}

// scanNumber returns the number at the start of a text; empty = there is none.
func scanNumber(text string) string {
	i := 0
	if i < len(text) && (text[i] == '+' || text[i] == '-') {
		i++
	}

	for _, word := range []string{"infinity", "inf", "nan"} {
		if end := i + len(word); len(text) >= end && strings.EqualFold(text[i:end], word) {
			return text[:end]
		}
	}

	whole := countDigits(text[i:])
	i += whole

	if i < len(text) && text[i] == '.' {
		part := countDigits(text[i+1:])
		if whole+part == 0 {
			return ""
		}

		if i++; part > 0 || whole > 0 {
			whole += part
			i += part
		}
	}

	if whole == 0 {
		return ""
	}

	if i+1 < len(text) && (text[i] == 'e' || text[i] == 'E') {
		sign := 0
		if text[i+1] == '+' || text[i+1] == '-' {
			sign = 1
		}

		if n := countDigits(text[i+1+sign:]); n > 0 {
			i += 1 + sign + n
		}
	}

	return text[:i]
}

func countDigits(text string) (n int) {
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}

	return n
}

// value is a number of a line, with what is around it.
type value struct {
	number string // empty = there is none that can be read
	over   string // the second number of a fraction: 9900/10000
	mean   string // the number in parentheses behind it: 71.2 (70.1)
	length int
	ends   bool   // behind it the line or its field ends
	more   bool   // another number follows: "train, val acc: 0.99, 0.85"
	digits bool   // they are there, and may be what cannot be read
	split  string // the word in parentheses behind it: 0.9 (val)
}

// valueAt reads the value at the start of a text, behind spaces.
func valueAt(text string) (v value) {
	rest := strings.TrimLeft(text, " \t*")
	closing := ""

	for _, pair := range []string{`""`, `''`, "[]", "()"} { // an array of one
		if strings.HasPrefix(rest, pair[:1]) {
			rest, closing = rest[1:], pair[1:]

			break
		}
	}

	number := scanNumber(rest)
	if v.digits = strings.TrimLeft(number, "+-.") != "" && number[len(number)-1] <= '9'; number == "" {
		return v
	}

	rest = rest[len(number):]

	if closing != "" {
		if !strings.HasPrefix(rest, closing) {
			return v
		}

		rest = rest[1:]
	}

	if over := strings.TrimPrefix(rest, "/"); over != rest && !strings.ContainsAny(number, ".eE") {
		if v.over = over[:countDigits(over)]; v.over != "" {
			rest = over[len(v.over):]
		}
	}

	if !endsNumber(rest) {
		return value{digits: v.digits && !strings.HasPrefix(rest, "%|")}
	}

	v.number, v.length = number, len(text)-len(rest)
	behind := strings.TrimLeft(strings.TrimPrefix(rest, "%"), " \t")
	v.ends = behind == "" || strings.ContainsAny(behind[:1], ",;|)]") || strings.HasPrefix(behind, "│")

	if inside, rest, is := cutParentheses(behind); is {
		inside = strings.TrimSpace(inside)

		if splits[strings.ToLower(inside)] != "" {
			v.split, behind = inside, rest
			v.length = len(text) - len(rest)
		} else if inside != "" && scanNumber(inside) == inside {
			v.mean = inside
		}
	}

	behind = strings.TrimPrefix(strings.TrimLeft(behind, ",;/&| "), "and ")
	next := scanNumber(behind)
	v.more = next != "" && next[0] <= '9' && next[0] != '+' && endsNumber(behind[len(next):]) && !startsName(strings.TrimLeft(behind[len(next):], " "))

	return v
}

// cutParentheses splits a text that begins with something short in parentheses.
func cutParentheses(text string) (inside, behind string, found bool) {
	const most = 40

	if !strings.HasPrefix(text, "(") {
		return "", "", false
	}

	end := strings.IndexByte(text[:min(len(text), most)], ')')
	if end < 0 {
		return "", "", false
	}

	return text[1:end], text[end+1:], true
}

// endsNumber reports whether what follows digits leaves them a number: not 3s, 1.2.3, 12:30,
// 2026-01-01, 1,234 or 0.5 * x.
func endsNumber(rest string) bool {
	if rest == "" {
		return true
	}

	next := ""
	if len(rest) > 1 {
		next = rest[1:2]
	}

	switch r, _ := utf8.DecodeRuneInString(rest); {
	case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r), strings.ContainsRune("_/\\=@#&^~-", r):
		return false
	case r == '.':
		return next == "" || next == "." || next == " "
	case r == ':':
		return next == "" || next == " "
	case r == ',':
		return next == "" || next < "0" || next > "9"
	case r == '%':
		return next != "|" || startsName(rest[2:]) // how far a progress bar is
	case r == '*':
		return next == "" || strings.ContainsAny(next, " |,;)")
	}

	behind := strings.TrimLeft(rest, " \t")

	return !strings.HasPrefix(behind, "* ") && !strings.HasPrefix(behind, "->") && !strings.HasPrefix(behind, "→")
}
