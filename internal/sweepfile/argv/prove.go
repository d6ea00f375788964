package argv

import (
	"strings"

	"github.com/berthml/berth"
)

// numberBytes is the longest text of a number: -1.7976931348623157e+308.
const numberBytes = 24

// Leading returns the parameters whose values can begin an element: the first
// placeholder, and each following one as long as everything before it can be
// empty.
func Leading(parts []Part, parameters map[string]berth.Parameter) []berth.Parameter {
	var leading []berth.Parameter

	for _, part := range parts {
		p, ok := parameters[part.Name]
		if !ok { // a literal, or a name that is declared nowhere
			break
		}

		if leading = append(leading, p); !CanBeEmpty(p) {
			break
		}
	}

	return leading
}

// CanBeEmpty reports whether a value of p can be the empty text.
func CanBeEmpty(p berth.Parameter) bool {
	for _, v := range written(p) {
		if v.String() == "" {
			return true
		}
	}

	return false
}

// CanDash reports whether a value of p can be seen to begin with "-". Derived
// values are only known once they are computed.
func CanDash(p berth.Parameter) bool {
	for _, v := range written(p) {
		if strings.HasPrefix(v.String(), "-") {
			return true
		}
	}

	return p.Searched() && p.Min != nil && *p.Min < 0
}

// Longest is the most bytes that a command can render to, the end of each
// element included.
func Longest(command []string, parameters map[string]berth.Parameter) int {
	size := 0

	for _, element := range command {
		parts, _ := Parse(element)
		for _, part := range parts {
			size += len(part.Literal)
			if part.Name != "" {
				size += longest(parameters[part.Name])
			}
		}

		size++
	}

	return size
}

// Sure reports whether every trial of a spec renders, as far as that can be
// said without its values.
func Sure(s berth.Spec) bool {
	parameters := make(map[string]berth.Parameter, len(s.Parameters))
	for _, p := range s.Parameters {
		parameters[p.Name] = p
	}

	for _, stage := range s.Stages {
		if len(stage.Command) > 0 && !sure(stage.Command, parameters) {
			return false
		}
	}

	return sure(s.Command, parameters)
}

func sure(command []string, parameters map[string]berth.Parameter) bool {
	for i, element := range command {
		parts, broken := Parse(element)
		if broken != "" || i == 0 && (len(parts) != 1 || parts[0].Name != "") {
			return false
		}

		for _, p := range Leading(parts, parameters) {
			if p.Type == berth.ParameterDerived || CanDash(p) {
				return false
			}
		}
	}

	return len(command) > 0 && Longest(command, parameters) <= MaxBytes
}

// written are the values that the document lists for a parameter.
func written(p berth.Parameter) berth.Values {
	if p.Value != nil {
		return berth.Values{*p.Value}
	}

	return p.Values
}

func longest(p berth.Parameter) int {
	most := 0
	if p.Type != berth.ParameterCategorical && p.Type != berth.ParameterFixed {
		most = numberBytes
	}

	for _, v := range written(p) {
		most = max(most, len(v.String()))
	}

	return most
}
