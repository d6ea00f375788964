package script

// How a guessed parameter is written.

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
)

// doubles are half, once and twice a default, within the flag's bounds.
func (g Guess) doubles(f Flag, usual int64, why string) (Guess, bool) {
	at := int64(positive(f, float64(usual)))

	return g.whole(f, []int64{at / 2, at, at * 2}, why), true
}

// whole searches those of some numbers that the script takes.
func (g Guess) whole(f Flag, numbers []int64, why string) Guess {
	if done, ok := g.ofChoices(f, true); ok {
		return done
	}

	var values berth.Values

	for _, v := range numbers {
		if v >= 1 && f.allows(float64(v)) {
			values = append(values, berth.IntValue(v))
		}
	}

	if len(values) == 0 {
		return g.unknown(f)
	}

	return g.choose(values, f.Default, true, why)
}

// fewChoices are all searched; of more, those that would be guessed without them.
const fewChoices = 8

// ofChoices searches what the script lists, where that is little.
func (g Guess) ofChoices(f Flag, memory bool) (Guess, bool) {
	if len(f.Choices) == 0 || len(f.Choices) > fewChoices {
		return g, false
	}

	if len(f.Choices) == 1 {
		return g.unknown(f), true
	}

	return g.choose(f.Choices, f.Default, memory, "the script's choices"), true
}

// choose is a categorical parameter.
func (g Guess) choose(values berth.Values, usual *berth.Value, memory bool, why string) Guess {
	texts := make([]string, len(values))
	listed := false

	for i, v := range values {
		texts[i] = yaml(v)
		listed = listed || usual != nil && v.String() == usual.String()
	}

	line := "{name: " + g.Name + ", type: categorical, values: [" + strings.Join(texts, ", ") + "]"
	if listed {
		line += defaultText(usual)
	}

	if memory {
		g.sizes = len(values)
	}

	g.Parameters, g.Why, g.Searched = []string{fmt.Sprintf("%s, memory: %t}", line, memory)}, why, true

	return g
}

// float is a range, within the flag's own bounds; a range that is none is the default.
func (g Guess) float(f Flag, low, high float64, log bool, why string) Guess {
	if len(f.Choices) > 0 {
		if done, ok := g.ofChoices(f, false); ok {
			return done
		}

		return g.unknown(f)
	}

	if f.Min != nil && *f.Min > low || f.Max != nil && *f.Max < high {
		low, high = max(low, *cmp.Or(f.Min, &low)), min(high, *cmp.Or(f.Max, &high))
		why += ", within the script's bounds"
	}

	if low >= high || log && low <= 0 {
		return g.unknown(f)
	}

	line := "{name: " + g.Name + ", type: float, min: " + decimal(low) + ", max: " + decimal(high)
	if log {
		line += ", log: true"
	}

	if f.Default != nil {
		if at, ok := f.Default.Number(); ok && at >= low && at <= high {
			line += ", default: " + decimal(at)
		}
	}

	g.Parameters, g.Why, g.Searched = []string{line + "}"}, why, true

	return g
}

func defaultText(v *berth.Value) string {
	if v == nil {
		return ""
	}

	return ", default: " + yaml(*v)
}

// allows reports whether a number is one that the script takes.
func (f *Flag) allows(v float64) bool {
	if len(f.Choices) > 0 && !slices.ContainsFunc(f.Choices, func(c berth.Value) bool { n, ok := c.Number(); return ok && n == v }) {
		return false
	}

	return (f.Min == nil || v >= *f.Min) && (f.Max == nil || v <= *f.Max)
}

// positive is the default of a flag, or else's.
func positive(f Flag, other float64) float64 {
	if f.Default != nil {
		if v, ok := f.Default.Number(); ok && v > 0 && v < math.MaxInt32 {
			return v
		}
	}

	return other
}

// round keeps one significant digit: what is guessed is not exact.
func round(v float64) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 0, 64), 64)
	if err != nil {
		return v
	}

	return out
}

// decimal writes a number without an exponent, where people can read that.
func decimal(v float64) string {
	if size := math.Abs(v); size != 0 && (size < 1e-9 || size > 1e9) {
		return berth.FloatValue(v).String()
	}

	return strconv.FormatFloat(v, 'f', -1, 64)
}
