package runtrial

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// defaultPattern finds name=value and name: value (Katib's, with NaN, infinities
// and a name that starts with a letter), also of JSON and of Python's dict, where
// names and numbers may be in quotes. A full stop may end the sentence.
var defaultPattern = regexp.MustCompile(
	`["']?(?P<name>[A-Za-z_][\w./|-]*)["']?\s*[=:]\s*["']?` +
		`(?P<value>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?i:nan|inf(?:inity)?))["']?(?:$|[\s,;|)\]}%]|\.(?:$|\s))`)

var (
	// colours are the control sequences of a terminal (ECMA-48, section 5.4).
	colours = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]")
	// noValue follows digits that are no metric's value: the first of 1,234.56, and how
	// far a progress bar is ("train: 100%|███").
	noValue = regexp.MustCompile(`^(?:,\d{3}(?:\D|$)|%\|)`)
	// splitWord is a word that says of which data a metric is, as in "Val Loss: 0.4".
	splitWord = regexp.MustCompile(`(?i)(?:^|[^\w])(train|training|val|valid|validation|dev|test|eval)[ \t]+["']?$`)
	// pythonText is one text of a Python dict as repr writes it, without escapes.
	pythonText = regexp.MustCompile(`'([^'"\\]*)'`)
	pythonWord = regexp.MustCompile(`\b(?:True|False|None|nan|inf)\b`)
)

var pythonWords = map[string]string{"True": "true", "False": "false", "None": "null", "nan": "NaN", "inf": "Infinity"}

// lineParser finds metrics in what a job prints.
type lineParser struct {
	pattern     *regexp.Regexp
	name, value int
	objective   string        // the metric by which trials are ranked; empty = there is none
	records     *recordParser // for lines that hold JSON objects
}

// newLineParser uses the spec's pattern, which validation has compiled before
// and found to have the groups name and value.
func newLineParser(pattern, objective string) *lineParser {
	re := defaultPattern

	if pattern != "" {
		if custom, err := regexp.Compile(pattern); err == nil {
			re = custom
		}
	}

	return &lineParser{
		pattern: re, name: re.SubexpIndex("name"), value: re.SubexpIndex("value"), objective: objective, records: newRecordParser(),
	}
}

// parse reads what a job printed on a stream up to the end of a line. That may be
// several lines: Docker loses the end of one that is longer than its buffer. On
// standard error frameworks print, too, what looks like metrics ("/device:GPU:0"): there
// a line counts that holds the objective or a record, or what the spec's own pattern finds.
func (l *lineParser) parse(stream, text string, at time.Time) []berth.MetricPoint {
	var points []berth.MetricPoint

	for line := range strings.SplitSeq(text, "\n") {
		line = shown(line)

		found, record := l.record(line, at)
		if !record {
			found = l.search(line, at)
			if stream == berth.Stderr && l.pattern == defaultPattern && !slices.ContainsFunc(found, l.isObjective) {
				continue
			}

			for i := range found { // the last one of a name stands, as it would on the next line
				found[i].Step = l.records.steps.of(found[i].Name, nil)
			}
		}

		points = append(points, found...)
	}

	return points
}

func (l *lineParser) isObjective(p berth.MetricPoint) bool { return p.Name == l.objective }

// shown is what a terminal shows of a line in the end: the part behind the last
// carriage return, without colours.
func shown(line string) string {
	line = strings.TrimRight(line, "\r")
	line = line[strings.LastIndexByte(line, '\r')+1:]

	return strings.TrimSpace(colours.ReplaceAllString(line, ""))
}

// record reads a line that is an object, or that ends with one behind other words, as
// JSON or as Python prints a dict. is says that the line holds nothing else.
func (l *lineParser) record(line string, at time.Time) (points []berth.MetricPoint, is bool) {
	from, to := strings.IndexByte(line, '{'), strings.LastIndexByte(line, '}')

	switch {
	case from < 0:
		return nil, false
	case to < from: // the rest of a record was lost, maybe in the middle of a number
		return nil, from == 0 && len(line) > 1
	}

	object := []byte(line[from : to+1])
	if !json.Valid(quoteNonFinite(object)) {
		object = ofPython(object)
	}

	points = l.records.parse(object, at)

	return points, len(points) > 0 || from == 0 && json.Valid(quoteNonFinite(object))
}

// ofPython makes JSON of a dict as Python prints it.
func ofPython(dict []byte) []byte {
	return outsideQuotes(pythonText.ReplaceAll(dict, []byte(`"$1"`)), func(text []byte) []byte {
		return pythonWord.ReplaceAllFunc(text, func(word []byte) []byte { return []byte(pythonWords[string(word)]) })
	})
}

// search finds what the pattern finds; the steps are not set.
func (l *lineParser) search(line string, at time.Time) []berth.MetricPoint {
	if l.name < 0 || l.value < 0 {
		return nil
	}

	var points []berth.MetricPoint

	for _, match := range l.pattern.FindAllStringSubmatchIndex(line, -1) {
		from, to := match[2*l.name], match[2*l.name+1]
		valueFrom, valueTo := match[2*l.value], match[2*l.value+1]

		if from < 0 || valueFrom < 0 || l.pattern == defaultPattern && (noValue.MatchString(line[valueTo:]) || strings.HasSuffix(line[from:to], ".py")) {
			continue // train.py:12 is where a logger was called
		}

		if p, ok := newPoint(l.named(line, from, to), line[valueFrom:valueTo], at); ok {
			points = append(points, p)
		}
	}

	return points
}

// named is the name of a metric in a line. A word before it may say of which data it
// is: "Train Loss: 0.1 | Val Loss: 0.4" has two metrics. It is the objective if that
// differs in case and in what is between its words only.
func (l *lineParser) named(line string, from, to int) string {
	name := line[from:to]
	if l.pattern != defaultPattern {
		return name
	}

	if word := splitWord.FindStringSubmatch(line[:from]); word != nil {
		name = word[1] + " " + name
	}

	if l.objective != "" && failure.PlainName(name) == failure.PlainName(l.objective) {
		return l.objective
	}

	return name
}

// outsideQuotes changes what is not a text of JSON.
func outsideQuotes(line []byte, change func([]byte) []byte) []byte {
	var out []byte

	at := 0

	for _, span := range append(quotedText.FindAllIndex(line, -1), []int{len(line), len(line)}) {
		out = slices.Concat(out, change(line[at:span[0]]), line[span[0]:span[1]])
		at = span[1]
	}

	return out
}
