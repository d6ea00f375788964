package expr

import (
	"strings"
	"unicode/utf8"
)

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenNumber
	tokenText
	tokenName
	tokenOperator
)

// token is one word of the source; offset is its first byte.
type token struct {
	kind   tokenKind
	text   string
	offset int
}

type lexer struct {
	source string
	at     int
}

// operators, longest first.
var operators = []string{
	"**", "//", "==", "!=", "<=", ">=", "&&", "||",
	"+", "-", "*", "/", "%", "<", ">", "!", "(", ")", ",",
}

// words are the operators that are spelled as names.
var words = map[string]string{"and": "&&", "or": "||", "not": "!"}

func (l *lexer) next() (token, error) {
	for l.at < len(l.source) && strings.IndexByte(" \t\r\n", l.source[l.at]) >= 0 {
		l.at++
	}

	start := l.at
	if start == len(l.source) {
		return token{kind: tokenEnd, offset: start}, nil
	}

	c := l.source[start]

	switch {
	case isDigit(c), c == '.' && start+1 < len(l.source) && isDigit(l.source[start+1]):
		return l.number(), nil
	case isLetter(c):
		for l.at < len(l.source) && (isLetter(l.source[l.at]) || isDigit(l.source[l.at])) {
			l.at++
		}

		name := l.source[start:l.at]
		if op, ok := words[name]; ok {
			return token{kind: tokenOperator, text: op, offset: start}, nil
		}

		return token{kind: tokenName, text: name, offset: start}, nil
	case c == '"' || c == '\'':
		return l.quoted(c)
	}

	for _, op := range operators {
		if strings.HasPrefix(l.source[start:], op) {
			l.at += len(op)

			return token{kind: tokenOperator, text: op, offset: start}, nil
		}
	}

	r, _ := utf8.DecodeRuneInString(l.source[start:])

	return token{}, invalid("has %q at character %d, which means nothing here", r, start+1)
}

// number takes digits, one point and an exponent; the parser checks the rest.
func (l *lexer) number() token {
	start := l.at

	for l.at < len(l.source) {
		c := l.source[l.at]
		sign := (c == '+' || c == '-') && (l.source[l.at-1]|0x20) == 'e'

		if !isDigit(c) && c != '.' && c|0x20 != 'e' && !sign {
			break
		}

		l.at++
	}

	return token{kind: tokenNumber, text: l.source[start:l.at], offset: start}
}

// quoted takes a text without escapes, as no choice needs them.
func (l *lexer) quoted(quote byte) (token, error) {
	start := l.at

	end := strings.IndexByte(l.source[start+1:], quote)
	if end < 0 {
		return token{}, invalid("has a text at character %d that never ends; close it with %c", start+1, quote)
	}

	l.at = start + end + 2

	return token{kind: tokenText, text: l.source[start+1 : start+1+end], offset: start}, nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
