package spec

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/argv"
)

// ownVariable is the variable that holds one value, as a shell would name it.
var ownVariable = regexp.MustCompile(`TRIAL_PARAM_\w+`)

// checkReached refuses a parameter of several values that no program gets: its trials would
// differ by chance alone, and one of them would be called the best.
func (c *checker) checkReached() {
	if len(c.spec.Command) == 0 || !c.reader.clean("/command") || !c.reader.clean("/environment_variables") || !c.reader.clean("/parameters") {
		return
	}

	reached := reachedNames(c.spec)

	for i, p := range c.spec.Parameters {
		if p.Searched() && len(p.Values) != 1 && !reached[p.Name] {
			c.add("/parameters/"+strconv.Itoa(i), codeParamUnused, "no program gets the value of %q: write {{%s}} in command or "+
				"environment_variables, or pass /trial/in/params.json, which holds all values", p.Name, p.Name)
		}
	}
}

// reachedNames are the parameters that commands and environment_variables pass,
// directly or through derived values and conditions.
func reachedNames(s berth.Spec) map[string]bool {
	texts := slices.AppendSeq(slices.Clone(s.Command), maps.Values(s.EnvironmentVariables))
	for _, stage := range s.Stages {
		texts = append(texts, stage.Command...)
	}

	all := strings.Join(texts, "\n")
	everyOne := strings.Contains(all, "/trial/in/params.json") || strings.Contains(all, "TRIAL_PARAMS_FILE") // the file of all values
	variables := ownVariable.FindAllString(all, -1)
	reached := map[string]bool{}

	for _, name := range argv.Names(texts) {
		reached[name] = true
	}

	for _, p := range s.Parameters {
		if everyOne || slices.Contains(variables, "TRIAL_PARAM_"+strings.ToUpper(p.Name)) {
			reached[p.Name] = true
		}
	}

	uses := usesOf(s.Parameters, func(int, error) {})

	for known := -1; known != len(reached); {
		known = len(reached)

		for _, p := range s.Parameters {
			if !reached[p.Name] {
				continue
			}

			for _, name := range slices.AppendSeq(uses[p.Name], maps.Keys(p.When)) {
				reached[name] = true
			}
		}
	}

	return reached
}
