package berth

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is the class of an error. Each transport maps the kinds once:
// api/errors.go to HTTP, activities/errors.go to Temporal.
type Kind string

// The closed set of kinds.
const (
	KindInvalid     Kind = "invalid"       // the caller's input is wrong and stays wrong
	KindNotFound    Kind = "not_found"     // no such thing
	KindConflict    Kind = "conflict"      // the thing is in a state that forbids this
	KindExhausted   Kind = "exhausted"     // a limit is reached; later may work
	KindOutOfMemory Kind = "out_of_memory" // a reservation was too small
	KindFenced      Kind = "fenced"        // a newer lease owns the attempt
	KindCanceled    Kind = "canceled"      // a person or the sweep stopped it
	KindUnavailable Kind = "unavailable"   // a part Berth depends on does not answer; try again
	KindInternal    Kind = "internal"      // our fault
)

// Error is an error with a kind. Its text is fit for the user: lower case, it
// names the value and, where there is one, the fix. Make one with Errorf.
type Error struct {
	Kind Kind
	err  error
}

func (e *Error) Error() string { return e.err.Error() }

func (e *Error) Unwrap() error { return e.err }

// Errorf returns an *Error of the given kind. A %w operand stays reachable for
// errors.Is and errors.As.
func Errorf(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, err: fmt.Errorf(format, args...)}
}

// KindOf returns the kind of the first *Error in err's chain: KindInvalid for
// a SpecError, KindInternal otherwise.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}

	if _, ok := errors.AsType[*SpecError](err); ok {
		return KindInvalid
	}

	return KindInternal
}

// Problem is one thing wrong with a sweep spec.
type Problem struct {
	Code    string `json:"code"`    // stable, such as E_LOG_RANGE; the list is docs/errors.md
	Pointer string `json:"pointer"` // RFC 6901 JSON pointer into the document, such as /parameters/0/min
	Message string `json:"message"` // the problem, and the text to write instead
}

// SpecError holds every problem of a refused spec, in document order.
type SpecError struct {
	Problems []Problem
	Wire     bool // the document is unreadable (HTTP 400 rather than 422)
}

func (e *SpecError) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	lines = append(lines, fmt.Sprintf("the sweep spec has %d problem(s)", len(e.Problems)))

	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("  %s %s: %s", p.Code, p.Pointer, p.Message))
	}

	return strings.Join(lines, "\n")
}
