package metrictext

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/berthml/berth"
)

// MaxNames bounds how many metrics an attempt may have (reliability.md,
// failure 30); further names are dropped, but for the objective's.
const MaxNames = 1000

// Steps gives a metric its next step where the job names none. A run that adopts
// the container goes on from those of the run before, so a line gets the same
// step again.
type Steps map[string]int64

// of is the step of a metric, which the job may have named. Of more names than
// MaxNames it forgets the rest, but for the one that is needed.
func (s Steps) of(name string, named *int64, needed string) int64 {
	step := s[name] + 1
	if named != nil {
		step = *named
	}

	if _, known := s[name]; known || len(s) <= MaxNames || name == needed {
		s[name] = max(s[name], step)
	}

	return step
}

// The types of a record that holds metrics. One without a type does, too.
const (
	TypeMetric = "metric"
	typeFinal  = "final"
)

// The types of the shim's records that hold no metrics (docs/shim.md).
const (
	TypeHello  = "hello"  // a main process began
	TypeError  = "error"  // an out-of-memory ended it
	TypeMemory = "memory" // its framework's peak
)

// reserved are the types of records that hold something else.
var reserved = []string{TypeHello, TypeMemory, TypeError}

// RecordParser reads JSON objects, from the metrics file and from standard
// output alike: nested ones, {"step":3,"metrics":{"loss":0.2}}, and flat ones,
// {"epoch":3,"loss":0.2}.
type RecordParser struct {
	Steps     Steps
	Fractions bool         // epochs come in parts: they name no steps
	Anew      bool         // steps begin anew in each epoch: they name no steps of the job
	unread    []unreadPair // of the newest object

	epoch, step *int64 // of the newest object that named both
}

// NewRecordParser has seen no step yet.
func NewRecordParser() *RecordParser { return &RecordParser{Steps: make(Steps)} }

// Parse reads one line. A line that is no object, or holds no metrics, gives
// nothing.
func (p *RecordParser) Parse(line []byte, at time.Time) []berth.MetricPoint {
	objects, _ := decode(line)

	var points []berth.MetricPoint

	for _, object := range objects {
		for _, f := range p.find(object) {
			f.point.Name, f.point.At = f.name.full, at
			f.point.Step, _ = p.settle(f.name.full, f, "")
			points = append(points, f.point)
		}
	}

	return points
}

// find returns the metrics of an object, by name. Of an object in it, too: {"val":
// {"acc": 0.9}} is val/acc.
func (p *RecordParser) find(object map[string]any) []sighting {
	step, rounded := p.stepOf(object)
	p.unread = nil
	split, weak := splitOf(object)
	kind, metrics := metricsOf(object)
	found := make([]sighting, 0, len(metrics))

	add := func(name metricName, raw any) {
		name = name.in(split, weak)

		if point, ok := NewPoint(name.full, raw, time.Time{}); ok {
			point.Final = kind == typeFinal
			found = append(found, sighting{point: point, name: name, step: step, rounded: rounded})
		} else if raw == nil {
			p.unread = append(p.unread, unreadPair{name, "null"})
		} else if text, is := raw.(string); is && (digit.MatchString(text) || noValue.MatchString(text)) {
			p.unread = append(p.unread, unreadPair{name, text})
		}
	}

	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		inner, nested := metrics[name].(map[string]any)
		if !nested {
			add(metricName{full: name}, metrics[name])

			continue
		}

		for _, part := range slices.Sorted(maps.Keys(inner)) {
			n := metricName{full: name + "/" + part}
			if of, _ := withoutReport(name); splitWord.MatchString(of) { // val_metrics
				n.split, n.bare = of, part
			}

			add(n, inner[part])
		}
	}

	return found
}

// splitFields say of which data a record is, and logged ones say it in a text for people.
var splitFields, loggedFields = []string{"split", "phase", "mode", "subset", "stage", "type", "set", "dataset", "event", "partition"}, []string{"message", "msg"}

// splitOf is the word by which a record says of which data its metrics are; empty = it
// says nothing. In a text of several, such as "train_epoch", it is weak.
func splitOf(object map[string]any) (split string, weak bool) {
	for _, name := range splitFields {
		if word, ok := object[name].(string); ok && splitWord.MatchString(word) {
			return word, false
		}
	}

	for _, name := range slices.Concat(splitFields, loggedFields) {
		text, ok := object[name].(string)
		if !ok || len(text) > numberBytes { // a label is shorter
			continue
		}

		var in lineWords
		if in.pass(strings.ReplaceAll(text, "_", " ")); in.split != "" {
			return in.split, true
		}
	}

	return "", false
}

// metricsOf returns a record's type, and its metrics by name: what "metrics" holds, and
// without a type all fields but those with a meaning of their own. A flat record may have
// any type that is not reserved: many programs log a "type".
func metricsOf(object map[string]any) (kind string, metrics map[string]any) {
	kind, _ = object["type"].(string)
	nested, ok := object["metrics"].(map[string]any)

	switch {
	case ok && (kind == TypeMetric || kind == typeFinal):
		return kind, nested
	case ok && kind != "", slices.Contains(reserved, kind):
		return kind, nil
	}

	for _, name := range []string{"step", "epoch", "type"} {
		delete(object, name)
	}

	if ok {
		delete(object, "metrics")
		maps.Copy(object, nested)
	}

	return kind, object
}

// stepOf is the step that a record names, else its epoch; nil when it names none. Steps
// that are not higher in a later epoch begin anew in each. Of a job that has reported a part of an epoch no epoch is a step: others are between. rounded
// says that the epoch was printed with a point, 1.0: it may be rounded.
func (p *RecordParser) stepOf(object map[string]any) (step *int64, rounded bool) {
	step, _ = whole(object["step"])
	epoch, fraction := whole(object["epoch"])

	if step != nil && epoch != nil {
		p.Anew = p.Anew || p.epoch != nil && *epoch > *p.epoch && *step <= *p.step
		p.epoch, p.step = epoch, step
	}

	switch {
	case step != nil && epoch != nil && p.Anew:
		return nil, false
	case step != nil:
		return step, false
	}

	if p.Fractions = p.Fractions || fraction; p.Fractions {
		return nil, false
	}

	text, _ := object["epoch"].(json.Number)

	return epoch, strings.Contains(text.String(), ".")
}

// settle gives a metric its step. Hugging Face rounds epochs: where one comes again, as
// 0.0 in each of the first logs, the epochs are no steps.
func (p *RecordParser) settle(name string, f sighting, needed string) (step int64, named bool) {
	newest, known := p.Steps[name]
	if f.rounded && known && *f.step <= newest {
		p.Fractions, f.step = true, nil
	}

	return p.Steps.of(name, f.step, needed), f.step != nil
}

// whole is a step as jobs write it; nil when it is none. fraction says that it is a
// number between two steps.
func whole(raw any) (step *int64, fraction bool) {
	v, ok := raw.(json.Number)
	if !ok {
		return nil, false
	}

	number, err := v.Float64()
	if err != nil || math.Abs(number) >= 1<<53 {
		return nil, false
	}

	if number != math.Trunc(number) {
		return nil, true
	}

	return new(int64(number)), false
}

// NameBytes is the longest metric name that is kept.
const NameBytes = 200

// NewPoint makes a metric point of a decoded JSON value: a json.Number, or a text that
// is one, as QuoteNonFinite makes of NaN and the infinities. Its step is zero.
func NewPoint(name string, raw any, at time.Time) (berth.MetricPoint, bool) {
	p := berth.MetricPoint{Name: name, At: at, Status: berth.MetricFinite}
	if name == "" || len(name) > NameBytes || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return p, false
	}

	var text string

	switch v := raw.(type) {
	case json.Number:
		text = v.String()
	case string: // many programs write numbers of NumPy as texts
		if read, rest, found := readNumber(v); found && (rest == "" || rest == "%") {
			text = read
		}
	default:
		return p, false
	}

	number, status, ok := numberOf(text)
	p.Value, p.Status = number, status

	return p, ok
}

// numberOf reads a number as programs print it; ok is false for what is none. One too
// large for a float64 is infinite.
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

var (
	bareNonFinite = regexp.MustCompile(`-?\b(?:Infinity|NaN)\b`)
	quotedText    = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// QuoteNonFinite makes JSON of what Python writes for NaN and infinities, which
// encoding/json refuses. Text inside quotes is left alone.
func QuoteNonFinite(line []byte) []byte {
	if !bytes.Contains(line, []byte("NaN")) && !bytes.Contains(line, []byte("Infinity")) {
		return line
	}

	return outsideQuotes(line, func(text []byte) []byte { return bareNonFinite.ReplaceAll(text, []byte(`"$0"`)) })
}
