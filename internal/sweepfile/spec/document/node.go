package document

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxDepth bounds the nesting of lists and objects; MaxNodes their number.
const (
	MaxDepth = 32
	MaxNodes = 200_000
)

// Kind is the type of a node.
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
	Offset int     // of its first byte in the document, behind its byte order mark
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
	line := Line(text, offset)
	start := lineStarts(text, breaks)[line-1]

	return &Error{
		Line:    line,
		Column:  utf8.RuneCountInString(text[start:offset]) + 1,
		Message: fmt.Sprintf(format, args...),
		cause:   cause,
	}
}

// Line is the line, from 1, of a byte of the text, as editors count: a line
// ends with a line feed, a carriage return or both. A byte order mark does not count.
func Line(text string, offset int) int {
	return max(sort.SearchInts(lineStarts(strings.TrimPrefix(text, mark), breaks), offset+1), 1)
}

// What ends a line, beside a carriage return before a line feed.
const (
	breaks     = "\r\n"
	yamlBreaks = "\r\n\u0085\u2028\u2029" // as the YAML library counts
)

// lineStarts are the offsets of each line's first byte.
func lineStarts(text, ends string) []int {
	starts := []int{0}

	for i, r := range text {
		if !strings.ContainsRune(ends, r) || r == '\r' && strings.HasPrefix(text[i+1:], "\n") {
			continue
		}

		starts = append(starts, i+utf8.RuneLen(r))
	}

	return starts
}

var unescaper = strings.NewReplacer("~1", "/", "~0", "~")

// Locate finds the target of a JSON pointer, or the nearest value around a target that
// is not written: where it begins, with its name in an object, and where its value does.
func (n *Node) Locate(pointer string) (begin, value int) {
	begin = n.Offset

	for _, name := range strings.Split(pointer, "/")[1:] {
		at := slices.IndexFunc(n.Fields, func(f Field) bool { return f.Name == unescaper.Replace(name) })
		i, err := strconv.Atoi(name)

		switch {
		case at >= 0:
			n, begin = &n.Fields[at].Value, n.Fields[at].Offset
		case err == nil && i >= 0 && i < len(n.Items):
			n, begin = &n.Items[i], n.Items[i].Offset
		default:
			return begin, n.Offset
		}
	}

	return begin, n.Offset
}

// mark is the byte order mark, which some editors write in front of a text.
const mark = "\ufeff"

// decodeText drops a byte order mark and checks that the text is UTF-8.
func decodeText(data []byte) (string, error) {
	text := strings.TrimPrefix(string(data), mark)
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
