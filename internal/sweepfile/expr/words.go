package expr

import (
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

var (
	logic       = map[string]bool{"or": true, "||": true, "and": true, "&&": true}
	comparisons = map[string]bool{"==": true, "!=": true, "<": true, "<=": true, ">": true, ">=": true, "in": true}
)

// roundDown replaces // by a / and a blank, as the library takes // for a
// comment, and returns where it did, in characters. Texts in quotes stay.
func roundDown(source string) (string, map[int]bool) {
	runes, floors := []rune(source), map[int]bool{}
	quote := rune(0)

	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; {
		case quote != 0 && r == '\\':
			i++
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
		case r == '"' || r == '\'' || r == '`':
			quote = r
		case r == '/' && i+1 < len(runes) && runes[i+1] == '/':
			runes[i+1], floors[i] = ' ', true
		}
	}

	return string(runes), floors
}

// check lets through the words that doc.go lists, and returns the parameters
// among them in order of appearance, each once.
//
// A chain such as 1 < a < 2 is refused for more than taste: the library puts
// the middle into its tree twice, so chains in chains would take time that
// doubles with every level.
func check(source string, scope Scope) ([]string, error) {
	tokens, err := lexer.Lex(file.NewSource(source))
	if err != nil {
		return nil, refused(err)
	}

	var (
		names    []string
		compared = []bool{false} // whether there was a comparison, by open bracket
	)

	for i, t := range tokens {
		inner := len(compared) - 1

		switch {
		case !allowed(t):
			return nil, invalid("has %q at character %d, which means nothing here", t.Value, t.From+1)
		case t.Is(lexer.EOF) && i == 0:
			return nil, invalid("is empty")
		case t.Is(lexer.EOF) && inner > 0:
			return nil, invalid("ends before a bracket is closed")
		case t.Is(lexer.EOF) && tokens[i-1].Is(lexer.Operator):
			return nil, invalid("ends too early")
		case t.Is(lexer.Identifier):
			call := i+1 < len(tokens) && tokens[i+1].Is(lexer.Bracket, "(")
			if err := known(t, call, scope); err != nil {
				return nil, err
			}

			if _, ok := scope[t.Value]; ok && !call && !slices.Contains(names, t.Value) {
				names = append(names, t.Value)
			}
		case t.Is(lexer.Operator) && comparisons[t.Value]:
			if compared[inner] {
				return nil, invalid("chains comparisons at character %d; write a < b and b < c", t.From+1)
			}

			compared[inner] = true
		case t.Is(lexer.Operator, "and", "&&", "or", "||", ","):
			compared[inner] = false
		case t.Is(lexer.Bracket, "(", "["):
			compared = append(compared, false)
		case t.Is(lexer.Bracket) && inner > 0:
			compared = compared[:inner]
		}
	}

	return names, nil
}

// allowed says whether a word is one of ours.
func allowed(t lexer.Token) bool {
	switch t.Kind {
	case lexer.Operator:
		_, arithmetic := functions[t.Value]

		return arithmetic || logic[t.Value] || comparisons[t.Value] || t.Is(t.Kind, "not", "!", ",")
	case lexer.Bracket:
		return t.Is(t.Kind, "(", ")", "[", "]")
	case lexer.Bytes:
		return false
	default:
		return true
	}
}

// known refuses a name that is no parameter, truth value or function.
func known(t lexer.Token, call bool, scope Scope) error {
	if call {
		if names := callable(); !slices.Contains(names, t.Value) {
			return invalid("calls %q at character %d, which is no function; there are: %s", t.Value, t.From+1, strings.Join(names, ", "))
		}

		return nil
	}

	if _, ok := scope[t.Value]; ok || t.Value == "true" || t.Value == "false" {
		return nil
	}

	names := slices.Sorted(maps.Keys(scope))
	if len(names) > 10 {
		names = append(names[:10], "…")
	}

	return invalid("uses %q, which is no parameter; there are: %s", t.Value, strings.Join(names, ", "))
}
