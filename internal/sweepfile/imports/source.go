package imports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/berthml/berth"
)

// advice says what to do instead of keys that many files have.
var advice = map[string]string{
	"project": "Berth has no projects; labels: {project: NAME} keeps it", "entity": "Berth has no teams; labels: {team: NAME} keeps it",
	"strict":    "asha has one rule: of each eta trials at a step one goes on",
	"namespace": "Berth has no namespaces", "primaryPodLabels": "a trial is one container", "retain": "Berth keeps logs and results",
	"env":       "write environment_variables: {NAME: \"{{parameter}}\"}, or secrets",
	"resources": "Berth measures memory; resources: {device: gpu, cpus: N, memory: SIZE} fixes more. A trial has one GPU",
	"volumes":   "datasets mount an administrator's data: datasets: [{name: NAME, target: /path}]", "volumeMounts": "see volumes", "workingDir": "write workdir: /path",
	"configMap":       "import reads a template within the Experiment",
	"filter":          "write metrics.pattern with the groups name and value, such as (?P<name>\\w+)=(?P<value>\\S+), if the lines are unusual",
	"trainingService": "Berth's hosts take its place", "trialCodeDirectory": "the image holds the code; `berth init SCRIPT` writes a Dockerfile",
	"trialGpuNumber": "write resources: {device: gpu} or {device: cpu}. A trial has one GPU", "maxExperimentDuration": "write limits: {max_duration: 10h}",
}

// lose adds a loss, each once.
func (d *draft) lose(key, format string, args ...any) {
	loss := Loss{Key: oneLine(key), Instead: oneLine(fmt.Sprintf(format, args...))}
	if !slices.Contains(d.losses, loss) {
		d.losses = append(d.losses, loss)
	}
}

// oneLine is a text that a comment can hold.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }), " ")
}

// parse reads one document of YAML; JSON is YAML.
func parse(text []byte) (*yaml.Node, error) {
	var first, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return &first, nil // nothing but comments
	} else if err != nil {
		return nil, plainError(err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("a second document begins; one file holds one sweep")
	}
	return first.Content[0], nil
}

// plainError is an error of the library without types of Go.
func plainError(err error) error {
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), " into ")
	return errors.New(strings.TrimSpace(strings.TrimPrefix(text, "unmarshal errors:")))
}

// decode reads an object, and lists the keys that into, a pointer to a struct, does not have.
// The first error stays in the draft.
func (d *draft) decode(n *yaml.Node, key string, into any) {
	d.matchKeys(n, reflect.TypeOf(into).Elem(), key)
	if err := n.Decode(into); err != nil && d.err == nil {
		d.err = plainError(err)
	}
}

// matchKeys writes keys as the library looks for them: max_iter and maxIter are the field
// MaxIter. It lists the keys without a field. It does not look into any, number and Node.
func (d *draft) matchKeys(n *yaml.Node, t reflect.Type, key string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for i, item := range n.Content {
			d.matchKeys(item, t.Elem(), fmt.Sprintf("%s[%d]", key, i))
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Map:
		for name, value := range pairs(n) {
			d.matchKeys(value, t.Elem(), key+"."+name)
		}
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct && t != reflect.TypeFor[yaml.Node]():
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, value := n.Content[i], n.Content[i+1]
			path := strings.TrimPrefix(key+"."+name.Value, ".")
			field, known := t.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, strings.ReplaceAll(name.Value, "_", "")) })
			switch {
			case name.Value == "<<": // merges another object
				d.matchKeys(value, t, key)
			case known:
				name.Value = strings.ToLower(field.Name)
				d.matchKeys(value, field.Type, path)
			case value.Tag != "!!null":
				d.lose(path, "%s", cmp.Or(advice[name.Value], "Berth has no such setting"))
			}
		}
	}
}

// pairs yields the keys and values of an object in the order of the file.
func pairs(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

// number is a number, with or without quotes; whole = without point and exponent.
type number struct {
	float float64
	whole bool
}

// UnmarshalYAML reads a finite number.
func (v *number) UnmarshalYAML(n *yaml.Node) error {
	f, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("line %d: %q is not a finite number", n.Line, n.Value)
	}
	*v = number{float: f, whole: !strings.ContainsAny(n.Value, ".eE")}
	return nil
}

// or is the number, or a default where there is none.
func (v *number) or(fallback float64) float64 {
	if v == nil {
		return fallback
	}
	return v.float
}

// MarshalJSON writes the number.
func (v *number) MarshalJSON() ([]byte, error) { return json.Marshal(v.float) }

// value is a value. A list or an object becomes its JSON, and null the text None, as
// Python would print it.
func (d *draft) value(key string, n *yaml.Node) (v berth.Value) {
	var plain any
	_ = n.Decode(&plain)           // an unreadable one is null
	text, _ := json.Marshal(plain) //nolint:errchkjson // with .inf in it, it is empty
	switch tag := n.ShortTag(); {
	case tag != "!!str" && json.Unmarshal([]byte(n.Value), &v) == nil, json.Unmarshal(text, &v) == nil: // the first keeps 2.0
		return v
	case plain == nil:
		d.lose(key, "a value cannot be null: the program gets the text None")
		return berth.StringValue("None")
	default:
		d.lose(key, "a value is one number, text or Boolean: the program gets lists and objects as text, such as [64, 32], and must read that")
		return berth.StringValue(string(text))
	}
}
