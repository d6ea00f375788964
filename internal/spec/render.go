package spec

import (
	"strings"

	"github.com/berthml/berth"
)

// maxCommandBytes is what Linux takes as one argument (MAX_ARG_STRLEN, execve(2));
// all of them together stay far below its limit of a quarter of the stack.
const maxCommandBytes = 128 << 10

// Render makes the argv of one trial: every {{name}} becomes its value, and
// an element that names an inactive parameter is left out whole. No shell ever
// sees it, so a value is always one element or a part of one. A value that
// would turn its element into an option, by beginning it with "-", is refused;
// write --x={{name}} instead.
func Render(s berth.Spec, a berth.Assignment) ([]string, error) {
	declared := make(map[string]bool, len(s.Parameters))
	for _, p := range s.Parameters {
		declared[p.Name] = true
	}

	argv, size := make([]string, 0, len(s.Command)), 0

	for i, element := range s.Command {
		parts, broken := parseTemplate(element)
		if broken != "" {
			return nil, berth.Errorf(berth.KindInvalid, "rendering command element %d: no placeholder begins at %q", i, shorten(broken))
		}

		text, active, err := renderParts(parts, declared, a)
		if err != nil {
			return nil, berth.Errorf(berth.KindInvalid, "rendering command element %d: %w", i, err)
		}

		if !active {
			continue
		}

		if size += len(text) + 1; size > maxCommandBytes {
			return nil, berth.Errorf(berth.KindInvalid, "rendering command: longer than %d bytes", maxCommandBytes)
		}

		argv = append(argv, text)
	}

	if len(argv) == 0 {
		return nil, berth.Errorf(berth.KindInvalid, "rendering command: nothing is left to run")
	}

	return argv, nil
}

func renderParts(parts []part, declared map[string]bool, a berth.Assignment) (text string, active bool, err error) {
	var b strings.Builder

	dash := false

	for _, p := range parts {
		if p.name == "" {
			b.WriteString(p.literal)

			continue
		}

		v, ok := a[p.name]
		if !ok {
			if !declared[p.name] {
				return "", false, berth.Errorf(berth.KindInvalid, "there is no parameter %q", p.name)
			}

			return "", false, nil
		}

		value := v.String()
		dash = dash || b.Len() == 0 && strings.HasPrefix(value, "-")
		b.WriteString(value)
	}

	if dash {
		return "", false, berth.Errorf(berth.KindInvalid,
			"the value %q would be read as an option; write --x={{name}}", shorten(b.String()))
	}

	return b.String(), true, nil
}
