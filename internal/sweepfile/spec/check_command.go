package spec

import (
	"cmp"
	"path"
	"strconv"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/argv"
)

func (c *checker) checkCommand() {
	if len(c.spec.Command) == 0 {
		c.add("/command", codeCmd, "write the command as a list, one argument per element, such as [python3, train.py]")
	}

	if w := c.spec.Workdir; w != "" && (!path.IsAbs(w) || path.Clean(w) != w) {
		c.add("/workdir", codeWorkdir, "write an absolute path without .. or a slash at the end, such as /app")
	}

	c.checkArguments("/command", c.spec.Command)
}

// checkArguments checks the command of trials, or of a stage.
func (c *checker) checkArguments(at string, command []string) {
	if len(command) > 0 && command[0] == "" {
		c.add(at+"/0", codeCmd, "the first element is the program; it cannot be empty")
	}

	parameters := c.byName()

	if size := argv.Longest(command, parameters); size > argv.MaxBytes {
		c.add(at, codeCmdSize, "the command and its values can have %s; at most %s are passed; put data into a file",
			berth.BytesText(int64(size)), berth.BytesText(argv.MaxBytes))

		return
	}

	if !c.reader.clean("/parameters") {
		return // the names are not known
	}

	absent := c.maybeAbsent()

	for i, element := range command {
		c.checkElement(at, i, element, parameters, absent)
	}
}

func (c *checker) byName() map[string]berth.Parameter {
	out := make(map[string]berth.Parameter, len(c.spec.Parameters))
	for _, p := range c.spec.Parameters {
		out[p.Name] = p
	}

	return out
}

const (
	noPlaceholder = "%q begins no placeholder; write {{name}} with the name of a parameter"
	noParameter   = "there is no parameter %q%s"
)

func (c *checker) checkElement(of string, i int, element string, parameters map[string]berth.Parameter, absent map[string]bool) {
	at := of + "/" + strconv.Itoa(i)

	parts, broken := argv.Parse(element)
	if broken != "" {
		c.add(at, codeTemplate, noPlaceholder, shorten(broken))

		return
	}

	for _, p := range argv.Leading(parts, parameters) {
		if argv.CanDash(p) {
			c.add(at, codeArgDash, "a value of %q begins with - and would be read as an option; write --%s={{%s}}",
				p.Name, p.Name, p.Name)
		}
	}

	empty := i == 0 && element != "" // checkArguments reports a literally empty one

	for j, part := range parts {
		p, ok := parameters[part.Name]
		empty = empty && ok && argv.CanBeEmpty(p)

		switch {
		case part.Name == "":
		case !ok:
			c.add(at, codeTemplateParam, noParameter, part.Name, c.suggestName(part.Name))
		case i == 0 && absent[p.Name]:
			c.add(at, codeCond, "%q is not in every trial, and the others would have no program; name the program without it", p.Name)
		case j == 0 && absent[p.Name]:
			c.add(at, codeCond, "%q is not in every trial, and then this element is left out; write --%s={{%s}} "+
				"so that its option goes with it", p.Name, p.Name, p.Name)
		}
	}

	if empty {
		c.add(at, codeCmd, "the first element is the program, and with these values it can be empty; leave the empty value out")
	}
}

func (c *checker) suggestName(wrong string) string {
	names := make([]string, 0, len(c.spec.Parameters))
	for _, p := range c.spec.Parameters {
		names = append(names, p.Name)
	}

	return cmp.Or(didYouMean(wrong, names), "; declare it under parameters")
}
