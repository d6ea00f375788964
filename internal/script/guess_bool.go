package script

import (
	"regexp"
	"strings"

	"github.com/berthml/berth"
)

// tuned are switches that change what a model learns. Others, such as --verbose
// or --resume, stay as they are.
var tuned = regexp.MustCompile(`(^|_)(batch_?norm|bn|norm|normalize|layer_norm|augment\w*|nesterov|amsgrad|bias|use_bias|residual|skip|attention|bidirectional|cosine|warmup|mixup|cutmix|standardize|freeze\w*|early_stopping|class_weights?|balanced)$`)

// What the names of a switch's helper parameters end in.
const (
	isOn  = "_is_on"
	isOff = "_is_off"
)

// boolean guesses a flag that is true or false. One that takes no value is
// written by way of a helper parameter: an element that names an inactive
// parameter is left out of the command.
func (g Guess) boolean(f Flag) Guess {
	at := f.Form == FormFalse
	if f.Default != nil {
		at = f.Default.String() == "true"
	}

	name := strings.TrimPrefix(strings.ToLower(strings.ReplaceAll(f.Dest, "-", "_")), "no_")
	g.Left = !tuned.MatchString(name)
	g.Searched = true
	g.Why = "on and off are tried"
	values := berth.Values{berth.BoolValue(false), berth.BoolValue(true)}
	usual := berth.BoolValue(at)

	if g.Left {
		g.Why = "a switch that is seldom searched"
	}

	g.Parameters = []string{"{name: " + g.Name + ", type: categorical, values: [" + yaml(values[0]) + ", " + yaml(values[1]) + "], default: " + yaml(usual) + "}"}

	if f.Form != FormValue {
		g.Elements = nil
	}

	switch f.Form {
	case FormTrue:
		g = g.helper(option(f), isOn, true)
	case FormFalse:
		g = g.helper(option(f), isOff, false)
	case FormPair:
		g = g.helper(option(f), isOn, true)
		if len(f.Negative) > 0 {
			g = g.helper(f.Negative[0], isOff, false)
		}
	}

	if f.Required && g.Left && f.Form == FormValue {
		g.Left = false
	}

	return g
}

// helper adds an empty parameter that is there when the switch has the value,
// and the element that goes with it.
func (g Guess) helper(option, suffix string, when bool) Guess {
	name := g.Name + suffix
	g.Parameters = append(g.Parameters, "{name: "+name+`, type: fixed, value: "", when: {`+g.Name+": "+yaml(berth.BoolValue(when))+"}}")
	g.Elements = append(g.Elements, option+"{{"+name+"}}")

	return g
}
