package script

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

// maxWhole is the largest size of a number up to which floats have all whole ones.
const maxWhole = 1 << 53

// maxText is the longest text of a script's that a sweep file repeats.
const maxText = 1000

// presentable drops what a sweep file cannot hold: texts with characters that
// cannot be seen, very long ones, and choices that are there twice. ok is false
// for a flag that no command can hold.
func presentable(f Flag) (shown Flag, ok bool) {
	alone := len(f.Names) == 0 || f.ShortOnly // its value is an argument of its own, which must not begin with -
	holds := func(v berth.Value) bool {
		text := v.String()

		return len(text) <= maxText && printable(text) == text && (!alone || !strings.HasPrefix(text, "-"))
	}

	if f.Default != nil && !holds(*f.Default) {
		f.Default = nil
		f.DefaultText = "a text that cannot be shown"
	}

	if f.Default != nil {
		switch _, isNumber := f.Default.Number(); v := f.Default.Any().(type) {
		case float64:
			switch {
			case f.Type != TypeInt:
			case v != math.Trunc(v):
				f.Type = TypeFloat // what it is called is not what it takes
			case math.Abs(v) <= maxWhole:
				f.Default = new(berth.IntValue(int64(v)))
			default:
				f.Default, f.DefaultText = nil, "a number that cannot be shown"
			}
		default:
			if (f.Type == TypeInt || f.Type == TypeFloat) && !isNumber {
				f.Type = TypeOther
			}
		}
	}

	var choices berth.Values

	for _, v := range f.Choices {
		if holds(v) && !slices.ContainsFunc(choices, func(c berth.Value) bool { return c.String() == v.String() }) {
			choices = append(choices, v)
		}
	}

	f.Choices = choices

	if alone && (f.Min == nil || *f.Min < 0) {
		f.Min = new(float64(0))
	}

	cannot := func(name string) bool { return printable(name) != name || strings.Contains(name, "{{") }
	byPosition := len(f.Names) == 0
	f.Names = slices.DeleteFunc(slices.Clone(f.Names), cannot)

	if len(f.Names) == 0 {
		return f, byPosition && (f.Form == FormValue || f.Form == FormList)
	}

	return f, len(f.Negative) == 0 || !cannot(f.Negative[0])
}

var noName = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// maxParameterName is the longest name of a parameter.
const maxParameterName = 64

// parameterName is a name that a sweep file takes, and that no other flag has.
func parameterName(f Flag, taken map[string]bool) string {
	name := noName.ReplaceAllString(strings.TrimLeft(f.Dest, "-"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "p_" + name
	}

	name = name[:min(len(name), maxParameterName-len(isOff)-4)] // room for underscores
	all := func() []string {                                    // a switch has helpers beside it
		upper := strings.ToUpper(name)

		return []string{upper, upper + strings.ToUpper(isOn), upper + strings.ToUpper(isOff)}
	}

	for slices.ContainsFunc(all(), func(n string) bool { return taken[n] }) {
		name = strings.Join([]string{name, ""}, "_") // seldom more than once
	}

	for _, n := range all() {
		taken[n] = true
	}

	return name
}
