package metrictext

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// heading is a line of nothing but a split: "Validation:", "----- Test set -----".
var heading = regexp.MustCompile(`^(?:[^\pL\d\s]{2,}\s*)?(\pL+)((?:\s\pL+)*)(?:\s*:|\s*[^\pL\d\s]{2,})$`)

// head gives metrics the split of the heading above them. That holds up to another one, or
// a line without metrics.
func (l *LineParser) head(stream, text string, found []sighting) {
	state := l.Drawn[stream]
	if len(found) == 0 {
		state.Heading = headingOf(text)
		l.Drawn[stream] = state
	}

	inHeading(state.Heading, found)
}

// inHeading gives metrics the split of a heading.
func inHeading(heading string, found []sighting) {
	for i := range found {
		if !found[i].own {
			found[i].name = found[i].name.in(heading, true)
		}
	}
}

func headingOf(text string) string {
	if len(text) > numberBytes || strings.HasSuffix(text, "...") {
		return ""
	}

	if last, _ := utf8.DecodeLastRuneInString(text); unicode.IsLetter(last) || unicode.IsDigit(last) { // most lines, and the pattern is costly
		return ""
	}

	match := heading.FindStringSubmatch(text)
	if match == nil || !splitWord.MatchString(match[1]) {
		return ""
	}

	for word := range strings.FieldsSeq(match[2]) {
		if !nouns[strings.ToLower(word)] {
			return ""
		}
	}

	return match[1]
}
