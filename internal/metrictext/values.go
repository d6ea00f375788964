package metrictext

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	plainNumber = regexp.MustCompile(`^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|(?i:nan|inf(?:inity)?))`)
	// commas and digits may be directly behind a number: thousands, decimals or a list.
	commas    = regexp.MustCompile(`^(?:,\d+)+(?:\.\d+)?(?:[eE][+-]?\d+)?`)
	thousands = regexp.MustCompile(`^[+-]?[1-9]\d{0,2}(?:(?:,\d{3}){2,}(?:\.\d+)?|,\d{3}\.\d+)(?:[eE][+-]?\d+)?$`)
	// oneComma is of thousands before a slash: 9,913/10,000. Elsewhere it may be decimal.
	oneComma = regexp.MustCompile(`^[1-9]\d{0,2},\d{3}$`)
	// decimal is no list of whole numbers: nobody writes 0,05 or 0,2512 for two of them.
	decimal = regexp.MustCompile(`^[+-]?(?:0,\d{2,}|\d+,\d{4,}|\d+,\d+[eE][+-]?\d+)$`)
	points  = regexp.MustCompile(`^[+-]?[1-9]\d{0,2}(?:\.\d{3})+$`) // 1.234, maybe of 1.234,56

	// before may be a quote, a bracket and a sign that the value is rounded.
	before = regexp.MustCompile("^[\"'`]?(?:[\\[(]\\s*)?[~≈]?")
	// behindNumber may follow a value: the end, a space or a sign, but nothing by which the
	// digits are a part of something else: 3s, 1.2.3, 12:30, 2026-01-01.
	behindNumber = regexp.MustCompile(`^(?:$|[^\pL\pN\pM_.:/\\=@#&^~+*-]|\.{3}|\.+(?:$|\s)|:+(?:$|\s)|-+>|\+(?:/?-|$|\s|\d+\.\d+(?:$|\s))|\*+(?:$|[\s|,;)]))`)
	// howFar a progress bar is follows its description: "train: 100%|███", "0%|   | 0/3".
	howFar = regexp.MustCompile(`^%\|(?:[█▏▎▍▌▋▊▉#]|\d*#| *(?:\||$))`)
	// fraction follows the first number of 9913/10000, which (99%) may follow. Numbers with a
	// point are two values.
	fraction = regexp.MustCompile(`^/(\d+(?:,\d{3})*)\b(?:\s?\(\d+(?:\.\d+)?%\))?`)
	// arrow stands between the value of before and the newest.
	arrow = regexp.MustCompile(`^\s*(?:-+>|=+>|[→⟶➜➔⇒])\s*`)
	digit = regexp.MustCompile(`^[+-]?\.?\d`)
	// ofFile ends the name of a file that has a value in it: "val_loss=0.31.pt".
	ofFile = regexp.MustCompile(`^\.(?:pth?|ckpt|keras|h5|hdf5|weights|safetensors|bin|onnx|pkl|pickle|joblib|json|tar|zip)\b`)
	// noValue says that a metric has none now.
	noValue = regexp.MustCompile(`^\s*(?:None|null|N/A|n/a)\b`)
)

// closing ends what an array of one begins with.
var closing = map[byte]string{'[': "]", '(': ")"}

// numberBytes is the longest number that is read, with what is around it.
const numberBytes = 80

// readNumber reads a number at the start of a text, in the form that numberOf takes. ok is
// false where there is none, or where its comma may be of a list: 1,2.
func readNumber(text string) (number, rest string, ok bool) {
	number = plainNumber.FindString(text[:min(len(text), numberBytes)])
	rest = text[len(number):]

	if number == "" || !strings.HasPrefix(rest, ",") {
		return number, rest, number != ""
	}

	behind := commas.FindString(rest[:min(len(rest), numberBytes)])
	whole := number + behind

	switch {
	case behind == "":
		return number, rest, true
	case thousands.MatchString(whole), oneComma.MatchString(whole) && strings.HasPrefix(rest[len(behind):], "/"):
		return strings.ReplaceAll(whole, ",", ""), rest[len(behind):], true
	case decimal.MatchString(whole):
		return strings.Replace(whole, ",", ".", 1), rest[len(behind):], true
	default: // a list of numbers with points
		return number, rest, strings.Contains(number, ".") && !points.MatchString(number)
	}
}

// value is what is behind the sign of a pair.
type value struct {
	number string // as numberOf takes it; empty = there is none that can be read
	over   string // the second number of a fraction
	length int    // with what is around it
	digits bool   // there are digits, which may be what cannot be read
}

// valueAtStart reads the value at the start of a text.
func valueAtStart(text string) (v value) {
	rest := strings.TrimLeft(text, " \t*")
	opened := before.FindString(rest)
	rest = rest[len(opened):]
	v.digits = digit.MatchString(rest)

	number, rest, ok := readNumber(rest)
	if !ok {
		return v
	}

	if open := strings.IndexAny(opened, "[("); open >= 0 { // an array of one
		if rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " "), closing[opened[open]]); !ok {
			return v
		}
	}

	if to := arrow.FindString(rest); to != "" {
		newest, behind, ok := readNumber(rest[len(to):])
		if ok && strings.Contains(newest, ".") == strings.Contains(number, ".") && behindNumber.MatchString(behind) {
			number, rest = newest, behind
		}
	}

	if parts := fractionAt(rest); parts != nil && !strings.Contains(strings.TrimRight(number, ".0"), ".") {
		v.over, rest = strings.ReplaceAll(parts[1], ",", ""), rest[len(parts[0]):]
	}

	if howFar.MatchString(rest) || ofFile.MatchString(rest) {
		v.digits = false

		return v
	}

	if behindNumber.MatchString(rest) {
		v.number, v.length = number, len(text)-len(rest)
	}

	return v
}

func fractionAt(rest string) []string {
	if !strings.HasPrefix(rest, "/") {
		return nil
	}

	return fraction.FindStringSubmatch(rest[:min(len(rest), numberBytes)])
}

// UnreadValues counts values of the objective that are there and cannot be read: an older
// one would be the result without a word.
type UnreadValues struct {
	Times int    `json:"times"`
	First string `json:"first"` // its name with the value

	None string `json:"none,omitempty"` // the newest report, if that says that there is no value
}

const (
	firstBytes = 4 << 10 // of the first are kept: a secret in it is hidden only where it is whole
	shownBytes = 60      // are shown
)

// Add counts a value; what it is of, and the value as it was printed. A report without a value
// is noted while it is the newest: others may be between two validations.
func (u *UnreadValues) Add(name, value string) {
	shown := name + ": " + strings.Join(strings.Fields(value)[:1], "")

	if noValue.MatchString(value) {
		u.None = shown

		return
	}

	if u.Times++; u.Times == 1 {
		u.First = shown
	}
}

// Note says what could not be read; empty when all was. What it quotes of the program
// goes through hide first.
func (u *UnreadValues) Note(hide func(string) string) string {
	if u == nil {
		return ""
	}

	quoted := func(text string) string {
		text = hide(text)

		return strings.ToValidUTF8(text[:min(len(text), shownBytes)], "")
	}

	const what = "of its objective could not be read and did not count"

	var notes []string

	switch u.Times {
	case 0:
	case 1:
		notes = append(notes, fmt.Sprintf("a value %s: %q; write numbers such as 0.91", what, quoted(u.First)))
	default:
		notes = append(notes, fmt.Sprintf("%d values %s, such as %q; write numbers such as 0.91", u.Times, what, quoted(u.First)))
	}

	if u.None != "" {
		notes = append(notes, fmt.Sprintf("the newest report of its objective has no value and did not count: %q", quoted(u.None)))
	}

	return strings.Join(notes, "; ")
}
