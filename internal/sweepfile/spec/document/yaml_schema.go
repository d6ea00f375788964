package document

import (
	"regexp"
	"strconv"
	"strings"
)

// resolve gives an unquoted scalar its kind by the core schema of YAML 1.2.
func resolve(n *Node, text string) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		n.Kind = Null

		return
	case "true", "True", "TRUE", "false", "False", "FALSE":
		n.Kind, n.Text = Bool, strings.ToLower(text)

		return
	}

	if number, ok := number(text); ok {
		n.Kind, n.Text = Number, number

		return
	}

	n.Kind, n.Text = String, text
}

// decimal matches a number of the core schema without its sign.
var decimal = regexp.MustCompile(`^(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// number turns a YAML number into one that JSON could hold. Infinities and
// NaN come back as .inf and .nan, which no reader of numbers accepts.
func number(text string) (string, bool) {
	unsigned := strings.TrimLeft(text, "+-")
	if len(text)-len(unsigned) > 1 || unsigned == "" {
		return "", false
	}

	switch unsigned {
	case ".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN":
		return strings.ToLower(text), unsigned == text || strings.HasSuffix(strings.ToLower(text), "inf")
	}

	if unsigned == text && len(text) > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'o') {
		v, err := strconv.ParseUint(text, 0, 63)
		if err != nil || strings.Contains(text, "_") {
			return "", false
		}

		return strconv.FormatUint(v, 10), true
	}

	if !decimal.MatchString(unsigned) {
		return "", false
	}

	return strings.TrimPrefix(text, "+"), true
}
