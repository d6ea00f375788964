package document

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxDepth bounds the nesting of lists and objects; MaxNodes their number.
const (
	MaxDepth = 32
	MaxNodes = 200_000
)

// Kind is what a node is.
type Kind int

// The kinds of JSON.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Object
)

// String is the kind in words for the user.
func (k Kind) String() string {
	return [...]string{"nothing", "true or false", "a number", "a text", "a list", "an object"}[k]
}

// Node is one value of a document.
type Node struct {
	Kind   Kind
	Text   string  // String: the text. Number: as strconv reads it. Bool: true or false
	Offset int     // of its first byte
	Items  []Node  // List
	Fields []Field // Object, in the order of the document; names may repeat
}

// Field is one member of an object.
type Field struct {
	Name   string
	Offset int // of the name
	Value  Node
}

// The ways in which a text is no document.
var (
	ErrSyntax   = errors.New("syntax")
	ErrEncoding = errors.New("encoding") // not UTF-8
	ErrDepth    = errors.New("depth")    // nested too deep, or an alias
	ErrSize     = errors.New("size")     // more than MaxNodes values
)

// Error says why and where a text could not be read. It matches one of the
// sentinels above.
type Error struct {
	Line, Column int // from 1; the column counts characters, and is 0 when only the line is known
	Message      string
	cause        error
}

func (e *Error) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Message)
	}

	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

func (e *Error) Unwrap() error { return e.cause }

// fail makes the error for the byte at offset.
func fail(cause error, text string, offset int, format string, args ...any) error {
	offset = min(max(offset, 0), len(text))
	before := text[:offset]
	start := strings.LastIndexByte(before, '\n') + 1

	return &Error{
		Line:    strings.Count(before, "\n") + 1,
		Column:  utf8.RuneCountInString(before[start:]) + 1,
		Message: fmt.Sprintf(format, args...),
		cause:   cause,
	}
}

// Line is the line, from 1, of a byte of the text.
func Line(text string, offset int) int {
	return strings.Count(text[:min(offset, len(text))], "\n") + 1
}

// decodeText drops a byte order mark and checks that the text is UTF-8.
func decodeText(data []byte) (string, error) {
	text := strings.TrimPrefix(string(data), "\ufeff")
	if utf8.ValidString(text) {
		return text, nil
	}

	for i, r := range text {
		if r != utf8.RuneError {
			continue
		}

		if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
			return "", fail(ErrEncoding, text, i, "the byte 0x%02x is not UTF-8; save the file as UTF-8", text[i])
		}
	}

	return text, nil
}
