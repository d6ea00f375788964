package argv

import (
	"fmt"
	"strings"

	"github.com/berthml/berth"
)

// MaxBytes bounds a rendered command. It is Linux's limit for one argument
// (MAX_ARG_STRLEN, execve(2)); all of them together stay far below its limit of
// a quarter of the stack.
const MaxBytes = 128 << 10

// Error says which element of a command cannot be rendered for a trial, and why.
type Error struct {
	Element int    // index into the command; -1 = the command as a whole
	Name    string // of the parameter at fault; empty = none
	Stage   string // whose command it is; empty = the trial's own
	Reason  string
}

func (e *Error) Error() string {
	if e.Element < 0 {
		return "rendering command: " + e.Reason
	}

	return fmt.Sprintf("rendering command element %d: %s", e.Element, e.Reason)
}

// Render makes the argument vector of one trial: every {{name}} becomes its
// value. An element that names an inactive parameter is left out whole. It
// refuses a value that would turn its element into an option by beginning it
// with "-". The error is KindInvalid and holds an *Error.
func Render(s berth.Spec, a berth.Assignment) ([]string, error) {
	argv, problem := renderAll(s, a)
	if problem != nil {
		return nil, berth.Errorf(berth.KindInvalid, "%w", problem)
	}

	return argv, nil
}

// Environment renders the values of environment_variables in the same way; a value may begin
// with "-". A variable that names an inactive parameter is left out. The error is KindInvalid.
func Environment(s berth.Spec, a berth.Assignment) (map[string]string, error) {
	declared, env := declaredBy(s), make(map[string]string, len(s.EnvironmentVariables))

	for name, value := range s.EnvironmentVariables {
		text, _, active, problem := fill(value, declared, a)
		if problem != nil {
			return nil, berth.Errorf(berth.KindInvalid, "rendering environment_variables.%s: %s", name, problem.Reason)
		}

		if active {
			env[name] = text
		}
	}

	return env, nil
}

func declaredBy(s berth.Spec) map[string]bool {
	declared := make(map[string]bool, len(s.Parameters))
	for _, p := range s.Parameters {
		declared[p.Name] = true
	}

	return declared
}

func renderAll(s berth.Spec, a berth.Assignment) ([]string, *Error) {
	declared := declaredBy(s)
	argv, size := make([]string, 0, len(s.Command)), 0

	for i, element := range s.Command {
		text, active, problem := render(element, declared, a)

		switch {
		case problem != nil:
			problem.Element = i

			return nil, problem
		case i == 0 && (!active || text == ""):
			return nil, &Error{Element: i, Reason: "no program is left to run"}
		case !active:
			continue
		}

		if size += len(text) + 1; size > MaxBytes {
			return nil, &Error{Element: -1, Reason: fmt.Sprintf("it is longer than %d KiB", MaxBytes>>10)}
		}

		argv = append(argv, text)
	}

	if len(argv) == 0 {
		return nil, &Error{Element: -1, Reason: "it is empty"}
	}

	return argv, nil
}

func render(element string, declared map[string]bool, a berth.Assignment) (text string, active bool, problem *Error) {
	text, dashed, active, problem := fill(element, declared, a)
	if dashed != "" {
		return "", false, &Error{Name: dashed, Reason: fmt.Sprintf(
			"the value %s of %q would be read as an option; write --%s={{%s}}", shorten(a[dashed].String()), dashed, dashed, dashed)}
	}

	return text, active, problem
}

// fill puts values in the place of a text's placeholders. dashed is the parameter whose value
// begins the text with "-"; not active = the text names an inactive parameter.
func fill(element string, declared map[string]bool, a berth.Assignment) (text, dashed string, active bool, problem *Error) {
	parts, broken := Parse(element)
	if broken != "" {
		return "", "", false, &Error{Reason: fmt.Sprintf("no placeholder begins at %q", shorten(broken))}
	}

	var b strings.Builder

	for _, p := range parts {
		if p.Name == "" {
			b.WriteString(p.Literal)

			continue
		}

		v, ok := a[p.Name]
		if !ok {
			if !declared[p.Name] {
				return "", "", false, &Error{Name: p.Name, Reason: fmt.Sprintf("there is no parameter %q", p.Name)}
			}

			return "", "", false, nil
		}

		value := v.String()
		if b.Len() == 0 && strings.HasPrefix(value, "-") {
			dashed = p.Name
		}

		b.WriteString(value)
	}

	return b.String(), dashed, true, nil
}

// shorten cuts a text for a message.
func shorten(text string) string {
	const limit = 60

	if runes := []rune(text[:min(len(text), 4*limit)]); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}

	return text
}
