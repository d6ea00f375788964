package spec

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
)

func (c *checker) checkCommand() {
	command := c.spec.Command

	switch {
	case len(command) == 0:
		c.add("/command", codeCmd, "write the command as a list, one argument per element, such as [python3, train.py]")
	case command[0] == "":
		c.add("/command/0", codeCmd, "the first element is the program; it cannot be empty")
	}

	size := 0
	for _, element := range command {
		size += len(element) + 1
	}

	if size > maxCommandBytes {
		c.add("/command", codeCmdSize, "the command has %d bytes; at most %d are passed; put data into a file or dataset",
			size, maxCommandBytes)

		return
	}

	if w := c.spec.Workdir; w != "" && (!path.IsAbs(w) || path.Clean(w) != w) {
		c.add("/workdir", codeWorkdir, "write an absolute path without .. or a slash at the end, such as /app")
	}

	if !c.reader.clean("/parameters") {
		return // the names are not known
	}

	parameters := c.byName()
	absent := c.maybeAbsent()

	for i, element := range command {
		c.checkElement("/command/"+strconv.Itoa(i), element, parameters, absent)
	}
}

func (c *checker) byName() map[string]berth.Parameter {
	out := make(map[string]berth.Parameter, len(c.spec.Parameters))
	for _, p := range c.spec.Parameters {
		out[p.Name] = p
	}

	return out
}

func (c *checker) checkElement(at, element string, parameters map[string]berth.Parameter, absent map[string]bool) {
	parts, broken := parseTemplate(element)
	if broken != "" {
		c.add(at, codeTemplate, "%q begins no placeholder; write {{name}} with the name of a parameter", shorten(broken))

		return
	}

	for i, part := range parts {
		if part.name == "" {
			continue
		}

		p, ok := parameters[part.name]

		switch {
		case !ok:
			c.add(at, codeTemplateParam, "there is no parameter %q%s", part.name, c.suggestName(part.name))
		case i == 0 && dashes(p):
			c.add(at, codeArgDash, "a value of %q begins with - and would be read as an option; write --%s={{%s}}",
				p.Name, p.Name, p.Name)
		case i == 0 && absent[p.Name]:
			c.add(at, codeCond, "%q is not in every trial, and then this element is left out; write --%s={{%s}} "+
				"so that its option goes with it", p.Name, p.Name, p.Name)
		}
	}
}

func (c *checker) suggestName(wrong string) string {
	names := make([]string, 0, len(c.spec.Parameters))
	for _, p := range c.spec.Parameters {
		names = append(names, p.Name)
	}

	if near := nearest(wrong, names); near != "" {
		return "; did you mean " + strconv.Quote(near) + "?"
	}

	return "; declare it under parameters"
}

// dashes says whether a value of p can be seen to begin with "-". Derived
// values are only known when a trial is rendered.
func dashes(p berth.Parameter) bool {
	values := p.Values
	if p.Value != nil {
		values = append(slices.Clip(values), *p.Value)
	}

	for _, v := range values {
		if strings.HasPrefix(v.String(), "-") {
			return true
		}
	}

	return p.Searched() && p.Min != nil && *p.Min < 0
}
