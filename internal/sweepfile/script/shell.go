package script

import (
	"regexp"
	"strings"
)

// plain words mean themselves to a shell.
var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// ShellCommand is a command as a person types it: words that a shell would take apart are quoted.
func ShellCommand(words ...string) string {
	quoted := make([]string, len(words))

	for i, word := range words {
		if !plain.MatchString(word) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}

		quoted[i] = word
	}

	return strings.Join(quoted, " ")
}
