package runtrial

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/berthml/berth"
)

// steps gives a metric its next step where the job names none. A run that adopts
// the container goes on from those of the run before, so a line gets the same
// step again.
type steps map[string]int64

func (s steps) of(name string, named *int64) int64 {
	step := s[name] + 1
	if named != nil {
		step = *named
	}

	s[name] = max(s[name], step)

	return step
}

// The types of a record that holds metrics. One without a type does, too.
const (
	typeMetric = "metric"
	typeFinal  = "final"
)

// reserved are the types of records that hold something else: the shim's.
var reserved = []string{typeHello, typeMemory, typeError}

// recordParser reads JSON objects, from the metrics file and from standard
// output alike: nested ones, {"step":3,"metrics":{"loss":0.2}}, and flat ones,
// {"epoch":3,"loss":0.2}.
type recordParser struct{ steps steps }

func newRecordParser() *recordParser { return &recordParser{steps: make(steps)} }

// parse reads one line. A line that is no object, or holds no metrics, gives
// nothing.
func (p *recordParser) parse(line []byte, at time.Time) []berth.MetricPoint {
	var object map[string]any
	if json.Unmarshal(quoteNonFinite(line), &object) != nil {
		return nil
	}

	step := stepOf(object)
	kind, metrics := metricsOf(object)
	points := make([]berth.MetricPoint, 0, len(metrics))

	for name, raw := range metrics {
		if point, ok := newPoint(name, raw, at); ok {
			point.Step = p.steps.of(name, step)
			point.Final = kind == typeFinal
			points = append(points, point)
		}
	}

	return points
}

// metricsOf returns a record's type, and its metrics by name: what "metrics"
// holds, else all fields but those with a meaning of their own. A flat record
// may have any type that is not reserved: many programs log a "type".
func metricsOf(object map[string]any) (kind string, metrics map[string]any) {
	kind, _ = object["type"].(string)

	if nested, ok := object["metrics"].(map[string]any); ok {
		if kind == "" || kind == typeMetric || kind == typeFinal {
			return kind, nested
		}

		return kind, nil
	}

	if slices.Contains(reserved, kind) {
		return kind, nil
	}

	for _, name := range []string{"step", "epoch", "type"} {
		delete(object, name)
	}

	return kind, object
}

// stepOf is the step that a record names, else its epoch; nil when it names none.
func stepOf(object map[string]any) *int64 {
	for _, name := range []string{"step", "epoch"} {
		if n, ok := object[name].(float64); ok {
			if step := whole(n); step != nil {
				return step
			}
		}
	}

	return nil
}

// whole is a step as jobs write it; nil when it is none.
func whole(v float64) *int64 {
	if math.IsNaN(v) || math.Abs(v) >= 1<<53 {
		return nil
	}

	n := int64(v)

	return &n
}

// nameBytes is the longest metric name that is kept.
const nameBytes = 200

// newPoint makes a metric point of a decoded JSON value: a number, or a text that
// is one, as quoteNonFinite makes of NaN and the infinities. Its step is zero.
func newPoint(name string, raw any, at time.Time) (berth.MetricPoint, bool) {
	p := berth.MetricPoint{Name: name, At: at, Status: berth.MetricFinite}
	if name == "" || len(name) > nameBytes || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return p, false
	}

	switch v := raw.(type) {
	case float64:
		p.Value = v
	case string: // many programs write numbers of NumPy as texts
		number, status, ok := numberOf(v)
		p.Value, p.Status = number, status

		return p, ok
	default:
		return p, false
	}

	return p, true
}

// numberOf reads a number as programs print it; ok is false for what is none. One too
// large for a float64 is infinite.
func numberOf(text string) (number float64, status berth.MetricStatus, ok bool) {
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

var (
	bareNonFinite = regexp.MustCompile(`-?\bInfinity\b|\bNaN\b`)
	quotedText    = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// quoteNonFinite makes JSON of what Python writes for NaN and infinities, which
// encoding/json refuses. Text inside quotes is left alone.
func quoteNonFinite(line []byte) []byte {
	if !bareNonFinite.Match(line) {
		return line
	}

	return outsideQuotes(line, func(text []byte) []byte { return bareNonFinite.ReplaceAll(text, []byte(`"$0"`)) })
}
