package spec

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/distribution/reference"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

// checker applies the rules that need the whole Spec. It reports by pointer;
// the place in the text is looked up later. It skips a value that the reader
// refused, with everything inside it.
type checker struct {
	spec   berth.Spec
	reader *reader
	root   *document.Node
}

func (c *checker) run() {
	c.checkNames()
	c.checkImage("/image", c.spec.Image)
	c.checkCommand()
	c.checkEnvironment()
	c.checkMounts()
	c.checkParameters()
	c.checkStages()
	c.checkReached()
	c.checkSearch()
	c.checkResources()
	c.checkMetrics()
	c.checkDrawn()
}

func (c *checker) add(pointer, code, format string, args ...any) {
	if c.reader.excused(pointer) {
		return
	}

	if c.reader.full() { // spare the look-up
		c.reader.dropped++

		return
	}

	_, at := c.root.Locate(pointer)
	c.reader.add(at, pointer, code, format, args...)
}

var (
	sweepName  = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{M}\p{N} ._:,+=()-]*$`)
	labelKey   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$`)
	maxName    = 200
	maxEntries = 200 // of environment variables, labels, mounts and parameters
)

func (c *checker) checkNames() {
	switch name := c.spec.Name; {
	case name == "":
		c.add("/name", codeName, "give the sweep a name, such as digits-transfer")
	case utf8.RuneCountInString(name) > maxName:
		c.add("/name", codeName, "the name has %d characters; at most %d are kept", utf8.RuneCountInString(name), maxName)
	case !sweepName.MatchString(name) || strings.HasSuffix(name, " "):
		c.add("/name", codeName,
			"the name must begin with a letter or digit and hold only letters, digits, spaces and . _ - : , + = ( )")
	}

	if len(c.spec.Labels) > maxEntries {
		c.add("/labels", codeTooMany, "there are %d labels; at most %d are kept", len(c.spec.Labels), maxEntries)

		return
	}

	for _, key := range slices.Sorted(maps.Keys(c.spec.Labels)) {
		switch value := c.spec.Labels[key]; {
		case !labelKey.MatchString(key):
			c.add("/labels"+pointer(key), codeLabel,
				"a label's key has 1 to 63 letters, digits and . _ / - and begins and ends with a letter or digit")
		case len(value) > maxName:
			c.add("/labels"+pointer(key), codeLabel, "the value has %d bytes; at most %d are kept", len(value), maxName)
		}
	}
}

// checkImage reads the reference as Docker does.
func (c *checker) checkImage(at, image string) {
	switch _, err := reference.Parse(image); {
	case errors.Is(err, reference.ErrNameContainsUppercase):
		c.add(at, codeImage, "%q must be in lower case, but for its tag", shorten(image))
	case err != nil:
		c.add(at, codeImage, "%q is no image; write [registry/]name[:tag][@sha256:digest], such as tensorflow/tensorflow:2.19.0-gpu", shorten(image))
	}
}

func (c *checker) checkMetrics() {
	m := c.spec.Metrics

	switch {
	case m.Pattern == "":
		return
	case m.Source != berth.MetricsStdout && m.Source != berth.MetricsAuto:
		c.add("/metrics/pattern", codeMetrics, "a pattern reads what the program prints; write source: stdout with it")
	case len(m.Pattern) > 1024:
		c.add("/metrics/pattern", codeMetrics, "the pattern has %d bytes; at most 1024 are read", len(m.Pattern))
	default:
		c.checkPattern(m.Pattern)
	}
}

func (c *checker) checkPattern(pattern string) {
	compiled, err := regexp.Compile(pattern)

	switch {
	case err != nil:
		c.add("/metrics/pattern", codeMetrics, "the pattern is no regular expression (RE2): %v", err)
	case compiled.SubexpIndex("name") < 0 || compiled.SubexpIndex("value") < 0:
		c.add("/metrics/pattern", codeMetrics,
			`the pattern needs the groups name and value, such as (?P<name>\w+)=(?P<value>\S+)`)
	}
}
