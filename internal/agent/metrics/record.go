package metrics

import (
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
)

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

var (
	// splitFields say of which data a record is.
	splitFields = []string{"message", "msg", "event", "type", "set", "dataset", "partition", "subset", "stage", "mode", "phase", "split"}
	// textFields are lines of text in a logger's record.
	textFields = []string{"message", "msg", "event", "text"}
)

// sighting is a metric in a line.
type sighting struct {
	point  berth.MetricPoint // without name, step and time
	name   string            // as the program wrote it
	around string            // the split that the line says; empty = none
	label  bool              // by a label: "Train: acc=0.5"
	step   *int64            // that the job named
	round  bool              // that step is an epoch with a point, which may be rounded
}

// RecordParser reads JSON objects: nested ones, {"step":3,"metrics":{"loss":0.2}}, and flat
// ones, {"epoch":3,"loss":0.2}. It numbers what has no step.
type RecordParser struct {
	steps     map[string]int64
	needed    string // the metric by which trials are ranked
	fractions bool   // epochs come in parts: they name no steps
	anew      bool   // steps begin anew in each epoch: they name no steps of the job

	epoch, step *int64 // of the newest object that named both
}

// NewRecordParser has seen no step yet.
func NewRecordParser() *RecordParser { return &RecordParser{steps: make(map[string]int64)} }

// Parse reads one line. A line that is no object, or holds no metrics, gives nothing.
func (p *RecordParser) Parse(line []byte, at time.Time) (points []berth.MetricPoint) {
	objects, _ := decode(string(line))
	for _, object := range objects {
		for _, s := range p.find(object) {
			s.point.Name, s.point.At, s.point.Step = s.name, at, p.settle(s.name, s)
			points = append(points, s.point)
		}
	}

	return points
}

// find returns the metrics of an object, by name. Of an object in it, too: {"val":
// {"acc": 0.9}} is val/acc.
func (p *RecordParser) find(object map[string]any) (found []sighting) {
	step, rounded := p.stepOf(object)
	around := ""

	for _, field := range splitFields {
		if text, _ := object[field].(string); len(text) < NameBytes && labelOf(text) != "" {
			around = labelOf(text)
		}
	}

	kind, metrics := metricsOf(object)
	add := func(name string, raw any) {
		if point, ok := NewPoint(name, raw, time.Time{}); ok {
			point.Final = kind == typeFinal
			found = append(found, sighting{point: point, name: name, around: around, step: step, round: rounded})
		}
	}

	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		inner, nested := metrics[name].(map[string]any)
		if !nested {
			add(name, metrics[name])
		}

		for _, part := range slices.Sorted(maps.Keys(inner)) {
			add(name+"/"+part, inner[part])
		}
	}

	return found
}

// metricsOf returns a record's type, and its metrics by name: what "metrics" holds, and
// without a type all fields but those with a meaning of their own.
func metricsOf(object map[string]any) (kind string, metrics map[string]any) {
	kind, _ = object["type"].(string)
	nested, ok := object["metrics"].(map[string]any)

	switch {
	case ok && (kind == TypeMetric || kind == typeFinal):
		return kind, nested
	case ok && kind != "", slices.Contains([]string{TypeHello, TypeMemory, TypeError}, kind):
		return kind, nil
	}

	metrics = maps.Clone(object)
	for _, name := range []string{"step", "epoch", "type"} {
		delete(metrics, name)
	}

	if ok {
		delete(metrics, "metrics")
		maps.Copy(metrics, nested)
	}

	return kind, metrics
}

// stepOf is the step that a record names, else its epoch; nil when it names none. Steps that
// are not higher in a later epoch begin anew in each. Of a job that has reported a part of an
// epoch no epoch is a step: others are between.
func (p *RecordParser) stepOf(object map[string]any) (step *int64, rounded bool) {
	step, _ = whole(object["step"])
	epoch, fraction := whole(object["epoch"])

	if step != nil && epoch != nil {
		p.anew = p.anew || p.epoch != nil && *epoch > *p.epoch && *step <= *p.step
		p.epoch, p.step = epoch, step

		if p.anew {
			return nil, false
		}
	}

	if step != nil {
		return step, false
	}

	if p.fractions = p.fractions || fraction; p.fractions {
		return nil, false
	}

	text, _ := object["epoch"].(json.Number)

	return epoch, strings.Contains(text.String(), ".")
}

// settle gives a metric its step. Hugging Face rounds epochs: where one comes again, as 0.0
// in each of the first logs, the epochs are no steps. Of more names than MaxNames it forgets
// the rest, but for the one that is needed.
func (p *RecordParser) settle(name string, s sighting) int64 {
	newest, known := p.steps[name]
	if s.round && known && *s.step <= newest {
		p.fractions, s.step = true, nil
	}

	step := newest + 1
	if s.step != nil {
		step = *s.step
	}

	if known || len(p.steps) <= MaxNames || name == p.needed {
		p.steps[name] = max(newest, step)
	}

	return step
}

// whole is a step as jobs write it; nil when it is none. fraction says that it is a number
// between two steps.
func whole(raw any) (step *int64, fraction bool) {
	v, _ := raw.(json.Number)

	number, err := v.Float64()
	if err != nil || math.Abs(number) >= 1<<53 {
		return nil, false
	}

	if number != math.Trunc(number) {
		return nil, true
	}

	return new(int64(number)), false
}

var (
	// wrapped is a number as NumPy, PyTorch, JAX and TensorFlow print their own.
	wrapped = regexp.MustCompile(`\b[\w.]*(?:[Tt]ensor|[Aa]rray|float\d*|int\d*|Decimal)\(\s*["'\[]?([+-]?[\w.+-]+)["'\]]?(?:,(?:[^()]|\(\))*)?\)`)
	// word is one that Python or JavaScript writes outside of quotes, and JSON lacks; or a text.
	word  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|-?\b(?:True|False|None|nan|inf|NaN|Infinity)\b`)
	json5 = map[string]string{"True": "true", "False": "false", "None": "null"}
)

// objectsOf reads the objects that a line holds, as JSON or as Python prints a dict, and
// returns what is before and after them.
func objectsOf(line string) (objects []map[string]any, before, after string, found bool) {
	from, to := strings.IndexByte(line, '{'), strings.LastIndexByte(line, '}')
	if from < 0 || to < from {
		return nil, "", "", false
	}

	objects, found = decode(line[from : to+1])

	return objects, line[:from], line[to+1:], found
}

// decode reads objects with commas between them.
func decode(text string) (objects []map[string]any, ok bool) {
	text = word.ReplaceAllStringFunc(text, func(w string) string {
		switch {
		case w[0] == '"':
			return w
		case w[0] == '\'':
			return `"` + strings.ReplaceAll(strings.ReplaceAll(w[1:len(w)-1], `\'`, `'`), `"`, `\"`) + `"`
		case json5[w] != "":
			return json5[w]
		default:
			return `"` + w + `"`
		}
	})

	decoder := json.NewDecoder(strings.NewReader("[" + text + "]"))
	decoder.UseNumber()

	return objects, decoder.Decode(&objects) == nil && !decoder.More()
}

// QuoteNonFinite makes JSON of what Python writes for NaN and infinities, which
// encoding/json refuses. Text inside quotes is left alone.
func QuoteNonFinite(line []byte) []byte {
	return word.ReplaceAllFunc(line, func(w []byte) []byte {
		if w[0] == '"' || w[0] == '\'' {
			return w
		}

		return []byte(`"` + string(w) + `"`)
	})
}
