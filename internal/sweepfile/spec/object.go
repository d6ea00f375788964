package spec

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

// object reads the members of one object. A member that is absent or null
// yields the zero value; one of the wrong type yields it and a problem. Each
// accessor makes its name known, so that finish can refuse the others.
type object struct {
	*reader

	node    *document.Node // nil when the value was no object
	pointer string
	known   []string
}

// open starts reading n as an object; n may be nil.
func (r *reader) open(n *document.Node, pointer string) *object {
	o := &object{reader: r, pointer: pointer}

	if n != nil && r.is(n, pointer, document.Object) {
		o.node = n
	}

	return o
}

// is checks the kind of a value.
func (r *reader) is(n *document.Node, pointer string, want document.Kind) bool {
	if n.Kind == want {
		return true
	}

	hint := ""

	switch {
	case want == document.String && (n.Kind == document.Number || n.Kind == document.Bool):
		hint = fmt.Sprintf("; quote it: %q", shorten(n.Text))
	case want == document.List && n.Kind == document.String:
		hint = "; write [" + shorten(strings.Join(strings.Fields(n.Text), ", ")) + "]"
	case want == document.List && n.Kind == document.Object:
		hint = "; write one entry per line, each beginning with -"
	}

	r.add(n.Offset, pointer, codeType, "this must be %s, not %s%s", want, n.Kind, hint)

	return false
}

func (o *object) at(name string) string { return o.pointer + pointer(name) }

// field is the first member of that name, nil when absent or null.
func (o *object) field(name string) *document.Node {
	if !slices.Contains(o.known, name) {
		o.known = append(o.known, name)
	}

	if o.node == nil {
		return nil
	}

	for i := range o.node.Fields {
		if f := &o.node.Fields[i]; f.Name == name && f.Value.Kind != document.Null {
			return &f.Value
		}
	}

	return nil
}

// fieldOf is field for a member that must have a kind.
func (o *object) fieldOf(name string, want document.Kind) *document.Node {
	if n := o.field(name); n != nil && o.is(n, o.at(name), want) {
		return n
	}

	return nil
}

func (o *object) object(name string) *object { return o.open(o.field(name), o.at(name)) }

func (o *object) text(name string) string {
	if n := o.fieldOf(name, document.String); n != nil {
		return n.Text
	}

	return ""
}

func (o *object) truth(name string) bool {
	n := o.fieldOf(name, document.Bool)

	return n != nil && n.Text == "true"
}

// maybe is truth that tells false from nothing written, which is nil.
func (o *object) maybe(name string) *bool {
	n := o.fieldOf(name, document.Bool)
	if n == nil {
		return nil
	}

	truth := n.Text == "true"

	return &truth
}

// enum reads one of the words; the first is the default.
func (o *object) enum(name, code string, words ...string) string {
	n := o.fieldOf(name, document.String)

	switch {
	case n == nil:
		return words[0]
	case !slices.Contains(words, n.Text):
		o.add(n.Offset, o.at(name), code, "%q is not known here; write one of %s", shorten(n.Text), strings.TrimPrefix(strings.Join(words, ", "), ", "))
	}

	return n.Text
}

// bounds are inclusive; code is that of a number outside.
type bounds struct {
	min, max int64
	code     string
}

// integer reads a whole number.
func (o *object) integer(name string, in bounds, fallback int64) int64 {
	n := o.fieldOf(name, document.Number)
	if n == nil {
		return fallback
	}

	v, err := strconv.ParseInt(n.Text, 10, 64)

	switch {
	case !whole(n):
		o.add(n.Offset, o.at(name), codeType, "this must be a whole number, not %s", shorten(n.Text))
	case in.min == in.max && v != in.min:
		o.add(n.Offset, o.at(name), in.code, "%s is not read here; write %d", shorten(n.Text), in.min)
	case err != nil || v < in.min || v > in.max:
		o.add(n.Offset, o.at(name), in.code, "%s is out of range; write a whole number from %d to %d",
			shorten(n.Text), in.min, in.max)
	}

	return v
}

// isAuto reports whether a member is absent, null or "auto".
func (o *object) isAuto(name string) bool {
	n := o.field(name)

	return n == nil || n.Kind == document.String && n.Text == auto
}

// integerOrAuto reads a whole number or "auto", which is zero.
func (o *object) integerOrAuto(name string, in bounds) int64 {
	if o.isAuto(name) {
		return 0
	}

	return o.integer(name, in, 0)
}

func (o *object) number(name string) *float64 {
	n := o.fieldOf(name, document.Number)
	if n == nil {
		return nil
	}

	v, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || math.IsNaN(v) {
		v = 0 // walk reported it
	}

	return &v
}

// each calls read for the items of a list.
func (o *object) each(name string, read func(item *document.Node, pointer string)) {
	n := o.fieldOf(name, document.List)
	if n == nil {
		return
	}

	base := o.at(name)
	for i := range n.Items {
		read(&n.Items[i], base+"/"+strconv.Itoa(i))
	}
}

func (o *object) texts(name string) (out []string) {
	o.each(name, func(item *document.Node, pointer string) {
		o.is(item, pointer, document.String)
		out = append(out, item.Text)
	})

	return out
}

// textMap reads an object whose values are texts; an empty one is nil.
func (o *object) textMap(name string) map[string]string {
	n := o.fieldOf(name, document.Object)
	if n == nil || len(n.Fields) == 0 {
		return nil
	}

	out := make(map[string]string, len(n.Fields))

	for i := range n.Fields {
		f := &n.Fields[i]
		o.is(&f.Value, o.at(name)+pointer(f.Name), document.String)
		out[f.Name] = f.Value.Text
	}

	return out
}

func (o *object) values(name string) berth.Values {
	var out berth.Values

	o.each(name, func(n *document.Node, pointer string) { out = append(out, o.scalar(n, pointer)) })

	return out
}

func (o *object) value(name string) *berth.Value {
	n := o.field(name)
	if n == nil {
		return nil
	}

	v := o.scalar(n, o.at(name))

	return &v
}

// scalar reads a parameter value.
func (r *reader) scalar(n *document.Node, pointer string) berth.Value {
	switch n.Kind {
	case document.Bool:
		return berth.BoolValue(n.Text == "true")
	case document.String:
		return berth.StringValue(n.Text)
	case document.Number:
		if v, err := strconv.ParseInt(n.Text, 10, 64); err == nil {
			return berth.IntValue(v)
		}

		v, err := strconv.ParseFloat(n.Text, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			v = 0 // walk reported it
		}

		return berth.FloatValue(v)
	default:
		r.add(n.Offset, pointer, codeType, "a value must be a number, a text or true/false, not %s", n.Kind)

		return berth.Value{}
	}
}

// foreignFields are fields of other programs' files, and what says the same here.
var foreignFields = map[string]string{
	"scale":        "write log: true for a logarithmic scale",
	"distribution": "write min and max, with log: true for a logarithmic scale, or values",
	"gpu":          "write device: gpu",
	"num_gpus":     "write device: gpu",
}

// finish refuses unknown members.
func (o *object) finish() {
	if o.node == nil {
		return
	}

	refused := map[string]bool{}

	for i := range o.node.Fields {
		f := &o.node.Fields[i]
		if slices.Contains(o.known, f.Name) || refused[f.Name] {
			continue
		}

		refused[f.Name] = true

		if o.full() { // spare the search for a neighbour
			o.dropped++

			continue
		}

		hint := cmp.Or(didYouMean(f.Name, o.known), "; there are: "+strings.Join(o.known, ", "))
		if foreign := foreignFields[f.Name]; foreign != "" {
			hint = "; " + foreign
		}

		o.add(f.Offset, o.at(f.Name), codeUnknownField, "there is no field %q here%s", shorten(f.Name), hint)
	}
}
