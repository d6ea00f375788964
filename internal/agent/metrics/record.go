package metrics

import (
	"cmp"
	"encoding/json"
	"errors"
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

// splitFields are the fields that name the data set of a record.
var splitFields = []string{"type", "set", "subset", "stage", "mode", "phase", "split"}

// sighting is a metric in a line.
type sighting struct {
	point berth.MetricPoint // without name, step and time
	name  string            // as the program wrote it, with the data that the line says
	step  *int64            // that the job named
}

// inRecord returns the metrics of an object, by name: those in "metrics", else all fields but the ones
// with a meaning of their own. Of an object in it, too: {"val": {"acc": 0.9}} is val/acc.
func (r *Reader) inRecord(object map[string]any) (found []sighting) {
	kind, _ := object["type"].(string)
	if kind == TypeHello || kind == TypeMemory || kind == TypeError {
		return nil
	}

	step, label := r.stepOf(object), ""

	for _, field := range splitFields {
		text, _ := object[field].(string)
		label = cmp.Or(splits[strings.ToLower(text)], label)
	}

	metrics, nested := object["metrics"].(map[string]any)
	if !nested {
		metrics = maps.Clone(object)
		for _, name := range []string{"step", "epoch", "type"} {
			delete(metrics, name)
		}
	}

	add := func(name string, raw any) {
		if point, ok := NewPoint(name, raw, time.Time{}); ok {
			point.Final = kind == typeFinal
			found = append(found, sighting{point: point, name: within(label, name), step: step})
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

// stepOf is the step that a record names, else its epoch; nil when it names none. Steps that
// are not higher in a later epoch begin again in each.
func (r *Reader) stepOf(object map[string]any) *int64 {
	step, epoch := whole(object["step"]), whole(object["epoch"])

	if step != nil && epoch != nil {
		r.again = r.again || r.epoch != nil && *epoch > *r.epoch && *step <= *r.step
		r.epoch, r.step = epoch, step

		if r.again {
			return nil
		}
	}

	return cmp.Or(step, epoch)
}

// settle gives a metric its step: the one that is named, else the next one. Of more names than
// MaxNames it forgets the rest, but for the objective.
func (r *Reader) settle(name string, named *int64) int64 {
	newest, known := r.steps[name]

	step := newest + 1
	if named != nil {
		step = *named
	}

	if known || len(r.steps) <= MaxNames || name == r.target.name {
		r.steps[name] = max(newest, step)
	}

	return step
}

// whole is a step as jobs write it; nil when it is none. One with a decimal point is none: Hugging
// Face writes parts of epochs, and rounds them.
func whole(raw any) *int64 {
	v, _ := raw.(json.Number)

	step, err := strconv.ParseInt(v.String(), 10, 54)
	if err != nil {
		return nil
	}

	return &step
}

var (
	// wrapped is a number as NumPy, PyTorch, JAX and TensorFlow print their own.
	wrapped = regexp.MustCompile(`\b[\w.]*(?:[Tt]ensor|[Aa]rray|float\d*|int\d*|Decimal)\(\s*["'\[]?([+-]?[\w.+-]+)["'\]]?(?:,(?:[^()]|\(\))*)?\)`)
	// word is one that Python or JavaScript writes outside of quotes, and JSON lacks; or a text.
	word  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|-?\b(?:True|False|None|nan|inf|NaN|Infinity)\b`)
	json5 = map[string]string{"True": "true", "False": "false", "None": "null"}
)

// decode reads an object, as JSON or as Python prints a dict.
func decode(text string) (object map[string]any, ok bool) {
	if !strings.HasPrefix(text, "{") {
		return nil, false
	}

	decoder := json.NewDecoder(strings.NewReader(asJSON(text)))
	decoder.UseNumber()

	return object, decoder.Decode(&object) == nil && !decoder.More()
}

// asJSON makes JSON of what Python writes for a dict, for NaN and for infinities, which
// encoding/json refuses. Text inside quotes is left alone.
func asJSON(text string) string {
	return word.ReplaceAllStringFunc(text, func(w string) string {
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
}

// QuoteNonFinite makes JSON of a record with NaN and infinities as Python writes them.
func QuoteNonFinite(line []byte) []byte { return []byte(asJSON(string(line))) }

// NameBytes is the longest metric name that is kept.
const NameBytes = 200

// NewPoint makes a metric point of a decoded JSON value: a json.Number, or a text that is a
// number, as many programs write those of NumPy. Its step is zero.
func NewPoint(name string, raw any, at time.Time) (berth.MetricPoint, bool) {
	p := berth.MetricPoint{Name: name, At: at, Status: berth.MetricFinite}
	if name == "" || len(name) > NameBytes || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return p, false
	}

	text, _ := raw.(string)
	if v, is := raw.(json.Number); is {
		text = v.String()
	}

	var ok bool

	p.Value, p.Status, ok = finite(strings.TrimSuffix(text, "%"))

	return p, ok
}

// finite reads a number, and returns 0 and its status for one that is not finite. One too large
// is infinite.
func finite(text string) (value float64, status berth.MetricStatus, ok bool) {
	if strings.EqualFold(text, "-nan") { // of C
		text = "nan"
	}

	value, err := strconv.ParseFloat(text, 64)

	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), strings.ContainsAny(text, "xXpP_"):
		return 0, "", false
	case math.IsNaN(value):
		return 0, berth.MetricNaN, true
	case math.IsInf(value, 1):
		return 0, berth.MetricPosInfinity, true
	case math.IsInf(value, -1):
		return 0, berth.MetricNegInfinity, true
	default:
		return value, berth.MetricFinite, true
	}
}
