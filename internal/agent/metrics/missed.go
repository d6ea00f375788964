package metrics

import (
	"fmt"
	"regexp"
	"strings"
)

// Missed are the lines that have the words of the objective and a number, and that Berth cannot
// read.
type Missed struct {
	First   string // the first of them; empty = there is none
	Pattern string // a metrics.pattern that reads it; empty = there is none
	Value   string // the first line with a value of the objective that is no clear number
	Values  int    // how many such lines there are
}

// Note says which values could not be read; empty when all were. quote makes a line of the program
// fit for a message.
func (m *Missed) Note(quote func(string) string) string {
	if m.Values == 0 {
		return ""
	}

	return fmt.Sprintf("values of its objective could not be read and did not count: %d, such as %q; write numbers such as 0.91", m.Values, quote(m.Value))
}

// miss notes a line without a value of the objective.
func (r *Reader) miss(line string) {
	m := &r.Near

	if r.unread {
		if m.Values++; m.Values == 1 {
			m.Value = line
		}
	}

	if m.First != "" || !r.target.mayBeIn(line) {
		return
	}

	if match := r.target.near.FindStringSubmatch(line); match != nil {
		// The number of "mAP@0.5: 0.61" is a part of the name.
		if m.First = line; !r.unread && strings.ContainsAny(match[2], " \t:=([|") {
			m.Pattern = `(?P<name>` + loosely(match[1]) + `)` + loosely(match[2]) + `(?P<value>[-+.\deE]+)`
		}
	}
}

// nearly finds the words of a name, and what is between them and a number.
func nearly(list []string) *regexp.Regexp {
	patterns := make([]string, len(list))

	for i, word := range list {
		patterns[i] = regexp.QuoteMeta(word)

		for other, split := range splits {
			if split == splits[word] && other != word {
				patterns[i] += "|" + other
			}
		}
	}

	return regexp.MustCompile(`(?i)\b((?:` + strings.Join(patterns, `)[ _./|-]*(?:`) + `))\b(\D{1,40}?)[-+]?\.?\d`)
}

// loosely is a pattern of a text in which spaces may be others.
func loosely(text string) string { return strings.ReplaceAll(regexp.QuoteMeta(text), " ", `\s+`) }
