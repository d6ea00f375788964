package script

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

// Guess is what a sweep file does with one flag.
type Guess struct {
	Name       string // of the parameter
	Parameters []string
	Elements   []string // of the command
	Why        string
	Help       string // the script's own words

	// Left: the flag stays at what the script does without it. What is above
	// stands in the file as a comment, to be taken in.
	Left bool
	// Fill: the script needs a value that only its author knows.
	Fill bool
	// Searched: the search chooses the value.
	Searched bool

	sizes  int  // its values, where each is measured apart; 0 = it does not change the memory
	behind bool // the subcommand, in the command
	last   bool // in the command, as it would take what comes behind it
}

// GuessFlags guesses what to do with each flag, in their order.
func GuessFlags(flags []Flag) []Guess {
	type group struct {
		command string
		number  int
	}

	taken := map[string]bool{}
	set := map[group]bool{}  // one of its flags is in the command
	first := map[group]int{} // of those that must have one: the first of its flags
	shown := make([]Flag, 0, len(flags))
	out := make([]Guess, 0, len(flags))

	for _, f := range flags {
		f, ok := presentable(f)
		if !ok {
			continue
		}

		g := guess(f, parameterName(f, taken))
		g.Help, g.behind = f.Help, f.Command != ""

		of := group{f.Command, f.Group}
		if f.Group > 0 && f.GroupRequired && f.Form != FormValue && !g.Left {
			g.Left = true // where it is off, the group has none
		}

		if f.Group > 0 && !g.Left {
			if set[of] {
				g.Left, g.Why = true, "another flag of its group is set, and they exclude each other"
			}

			set[of] = true
		}

		if _, known := first[of]; f.Group > 0 && f.GroupRequired && !known {
			first[of] = len(out)
		}

		g.Searched = g.Searched && !g.Left
		shown, out = append(shown, f), append(out, g)
	}

	for of, i := range first {
		if !set[of] {
			out[i] = out[i].oneOfGroup(shown[i])
		}
	}

	measureFew(shown, out)

	return out
}

// mostShapes are measured of a first sweep at most: half of its UsualTrials, so
// that the other half shows what a measurement is good for.
const mostShapes = UsualTrials / 2

// measureFew leaves out parameters that change the memory where all of their
// combinations would be more than a first sweep should measure. Those that the
// command cannot do without are taken first, then the others in their order.
func measureFew(flags []Flag, guesses []Guess) {
	shapes := 1

	for _, needed := range []bool{true, false} {
		for i, g := range guesses {
			f := flags[i]
			if !g.Searched || g.sizes == 0 || needed != (f.Required || f.GroupRequired || len(f.Names) == 0) {
				continue
			}

			if !needed && shapes*g.sizes > mostShapes {
				guesses[i].Left, guesses[i].Searched = true, false
				guesses[i].Why = "each of its values is measured apart, which a first sweep has too few trials for; " + g.Why

				continue
			}

			shapes *= g.sizes
		}
	}
}

// oneOfGroup sets a flag of a group of which the script requires one.
func (g Guess) oneOfGroup(f Flag) Guess {
	g.Left, g.Searched = false, false

	switch f.Form {
	case FormValue:
		f.Required = true
		g = g.unknown(f)
	case FormList:
		f.Required = true
		g = g.list(f)
	default:
		g.Parameters, g.Elements = nil, []string{option(f)}
	}

	g.Why = "the first of a group of which the script requires one"

	return g
}

// guess chooses what to do with a flag: by its form, else by its name, else by
// its default.
func guess(f Flag, name string) Guess {
	g := Guess{Name: name, Elements: elements(f, name)}

	switch f.Form {
	case FormTrue, FormFalse, FormPair:
		return g.boolean(f)
	case FormCount, FormConst:
		g.Left, g.Elements = true, []string{option(f)}
		g.Why = "it takes no value; write it into the command to set it"

		return g
	case FormList:
		return g.list(f)
	}

	if why := f.changedByText(); why != "" && !f.Required {
		g.Left, g.Parameters, g.Why = true, []string{"{name: " + g.Name + ", type: fixed, value: " + placeholder + "}"}, why

		return g
	} else if why != "" {
		f.Default = nil
	}

	if f.Computed {
		f.Default = nil
		if !f.Required {
			g = g.unknown(f)
			g.Why = "the script takes it from the machine that it runs on"

			return g
		}
	}

	switch f.Type {
	case TypeNone:
		f.Type = TypeString
	case TypeBool:
		return g.boolean(f)
	case TypeBoolTrap:
		g = g.choose(berth.Values{berth.StringValue(""), berth.StringValue("1")}, nil, false,
			"argparse with type=bool takes every text but the empty one as true, False too")
		g.Left = true

		return g
	case TypeOther:
		return g.unknown(f)
	}

	key := strings.ToLower(strings.ReplaceAll(f.Dest, "-", "_"))

	for _, r := range rules {
		if r.name.MatchString(key) {
			if done, ok := r.apply(g, f); ok {
				return done
			}
		}
	}

	return g.byDefault(f)
}

// changedByText says why a flag must not be passed: the script takes it as a
// text, and its own default, or what it lists, is none.
func (f *Flag) changedByText() string {
	isText := func(v berth.Value) bool { _, ok := v.Any().(string); return ok }

	switch {
	case f.Type == TypeNone && (f.Default != nil && !isText(*f.Default) || slices.ContainsFunc(f.Choices, func(v berth.Value) bool { return !isText(v) })):
		return "the script would take a text, and its default or choices are none: give it a type, such as type=float"
	case f.Type == TypeString && f.Default != nil && !isText(*f.Default):
		return "the script takes a text, and its default is none: give it a type, such as type=float"
	default:
		return ""
	}
}

// option is the flag as it is written, without a value.
func option(f Flag) string {
	if len(f.Names) == 0 {
		return ""
	}

	return f.Names[0]
}

// elements are what passes a value to the script.
func elements(f Flag, name string) []string {
	switch {
	case len(f.Names) == 0:
		return []string{"{{" + name + "}}"}
	case f.ShortOnly:
		return []string{f.Names[0], "{{" + name + "}}"}
	}

	for _, n := range f.Names {
		if strings.HasPrefix(n, "--") {
			return []string{n + "={{" + name + "}}"}
		}
	}

	return []string{f.Names[0] + "={{" + name + "}}"}
}

// placeholder is what stands where only the author knows the value.
const placeholder = "REPLACE-ME"

func (g Guess) list(f Flag) Guess {
	g.Why = "it takes several values, which a search does not vary"

	if !f.Required {
		g.Left = true
	} else {
		g.Fill = true
		g.Why += "; write them into the command"
	}

	g.Elements = []string{placeholder}

	if name := option(f); name != "" {
		g.Elements, g.last = []string{name, placeholder}, true
	}

	return g
}

// fixed keeps one value.
func (g Guess) fixed(v berth.Value, why string) Guess {
	g.Parameters = []string{"{name: " + g.Name + ", type: fixed, value: " + yaml(v) + "}"}
	g.Why = why

	return g
}

// unknown is a flag of which nothing is known but perhaps that it must be there.
func (g Guess) unknown(f Flag) Guess {
	switch {
	case f.Default != nil && !f.Required && len(f.Choices) > 0 && !slices.ContainsFunc(f.Choices, func(c berth.Value) bool { return c.String() == f.Default.String() }):
		g = g.fixed(*f.Default, "its default is none of its choices, and could not be passed")
		g.Left = true

		return g
	case f.Default != nil:
		return g.fixed(*f.Default, "the script's default")
	case f.Required || len(f.Names) == 0 && f.DefaultText == "":
		g = g.fixed(berth.StringValue(placeholder), "the script requires it, and has no default: write its value")
		g.Fill = true

		if len(f.Choices) > 0 {
			g = g.fixed(f.Choices[0], "the first of its choices, as the script requires it")
			for _, c := range f.Choices {
				if slices.Contains(trains, c.String()) {
					g = g.fixed(c, "the one of its choices that trains, as the script requires one")

					break
				}
			}

			g.Fill = false
		}

		if number := f.Type == TypeInt || f.Type == TypeFloat; number && g.Fill {
			g = g.fixed(berth.IntValue(1), g.Why)
			g.Fill = true
		}

		return g
	default:
		g.Left = true
		g = g.fixed(berth.StringValue(placeholder), "the script has no default that could be kept")
		g.Left = true

		return g
	}
}

// byDefault guesses from the type and the default alone.
func (g Guess) byDefault(f Flag) Guess {
	if len(f.Choices) > 0 {
		return g.unknown(f)
	}

	number, isNumber := float64(0), false
	if f.Default != nil {
		number, isNumber = f.Default.Number()
	}

	if f.Type == TypeFloat && isNumber && number > 0 {
		low, high, why := round(number/3), round(number*3), "a third to three times the default"
		if number <= 1 && high > 1 { // it may be a share
			high, why = 1, "a third of the default to 1"
		}

		return g.float(f, low, high, false, why)
	}

	return g.unknown(f)
}

// yaml writes a value as YAML does in a flow.
func yaml(v berth.Value) string {
	text, isText := v.Any().(string)
	if !isText {
		return v.String()
	}

	if plainText.MatchString(text) && !reservedText.MatchString(text) {
		return text
	}

	quoted, err := json.Marshal(text)
	if err != nil {
		return `""`
	}

	return string(quoted)
}

var (
	plainText    = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)
	reservedText = regexp.MustCompile(`(?i)^(true|false|null|yes|no|on|off|y|n|\.nan|\.inf)$`)
)
