package metrictext

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/berthml/berth/internal/failure"
)

var (
	// wrapped is a number as NumPy, PyTorch, JAX and TensorFlow print their own.
	wrapped = regexp.MustCompile(`\b(?:\w+\.)*(?:tensor|Tensor|Array|array|b?float\d*|u?int\d+|Decimal)\(\s*["'\[]?\s*` +
		`([+-]?(?:[\d.]+(?:[eE][+-]?\d+)?|nan|inf))["'\]]?(?:,(?:[^()]|\(\))*)?\)` +
		`|<tf\.\w+: [^<>]*\bnumpy=([+-]?(?:[\d.]+(?:[eE][+-]?\d+)?|nan|inf))[^<>]*>`)
	wrappers = []string{"ensor", "rray", "float", "int", "Decimal"}
	// pythonText is one text of a Python dict as repr writes it, without escapes.
	pythonText = regexp.MustCompile(`'([^'"\\]*)'`)
	pythonWord = regexp.MustCompile(`\b(?:True|False|None|nan|inf)\b`)
	// place is where a logger was called, as loguru writes it: "| train:main:42 - ".
	place     = regexp.MustCompile(`^(.{0,100}\|\s*)[\w.]+:[\w.<>]+:\d+( - )`)
	fullWidth = strings.NewReplacer("：", ":", "＝", "=", "−", "-")
)

var pythonWords = map[string]string{"True": "true", "False": "false", "None": "null", "nan": "NaN", "inf": "Infinity"}

// byteOrderMark begins a file of some editors and of PowerShell.
const byteOrderMark = "\uFEFF"

// Shown is what a terminal shows of a text without line ends: no colours.
func Shown(text string) string {
	text = strings.TrimPrefix(text, byteOrderMark)
	if strings.Contains(text, "\x1b") {
		text = failure.WithoutColours(text)
	}

	return strings.TrimSpace(text)
}

// plain is a line with its numbers and signs as most programs write them, and without the
// place where it was logged.
func plain(line string) string {
	if strings.Contains(line, "(") && slices.ContainsFunc(wrappers, func(w string) bool { return strings.Contains(line, w) }) {
		line = wrapped.ReplaceAllString(line, "$1$2")
	}

	if strings.Contains(line, "|") {
		line = place.ReplaceAllString(line, "$1$2")
	}

	return fullWidth.Replace(line)
}

// objectsOf reads the objects that a line holds, as JSON or as Python prints a dict, and
// returns what is before and after them. found says that there are some, or that the line
// is the beginning of one of which the rest was lost, maybe in the middle of a number.
func objectsOf(line string) (objects []map[string]any, before, after string, found bool) {
	from, to := strings.IndexByte(line, '{'), strings.LastIndexByte(line, '}')

	switch {
	case from < 0:
		return nil, "", "", false
	case to < from:
		return nil, "", "", from == 0 && len(line) > 1 && !strings.ContainsAny(line[len(line)-1:], ",{[(")
	}

	text := []byte(line[from : to+1])

	objects, ok := decode(text)
	if !ok {
		objects, ok = decode(ofPython(text))
	}

	if !ok {
		return nil, "", "", false
	}

	return objects, line[:from], line[to+1:], true
}

// decode reads objects with commas between them.
func decode(text []byte) (objects []map[string]any, ok bool) {
	decoder := json.NewDecoder(strings.NewReader("[" + string(QuoteNonFinite(text)) + "]"))
	decoder.UseNumber()

	return objects, decoder.Decode(&objects) == nil && !decoder.More()
}

// messages are the lines of text in a logger's record, which may say more.
func messages(object map[string]any) []string {
	var texts []string

	for _, name := range []string{"message", "msg", "event", "text"} {
		if text, ok := object[name].(string); ok {
			texts = append(texts, strings.Split(text, "\n")...)
		}
	}

	return texts
}

// ofPython makes JSON of a dict as Python prints it.
func ofPython(dict []byte) []byte {
	return outsideQuotes(pythonText.ReplaceAll(dict, []byte(`"$1"`)), func(text []byte) []byte {
		return pythonWord.ReplaceAllFunc(text, func(word []byte) []byte { return []byte(pythonWords[string(word)]) })
	})
}

// outsideQuotes changes what is not a text of JSON.
func outsideQuotes(line []byte, change func([]byte) []byte) []byte {
	out := make([]byte, 0, len(line))
	at := 0

	for _, span := range append(quotedText.FindAllIndex(line, -1), []int{len(line), len(line)}) {
		out = append(append(out, change(line[at:span[0]])...), line[span[0]:span[1]]...)
		at = span[1]
	}

	return out
}
