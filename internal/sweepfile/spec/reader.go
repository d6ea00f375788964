package spec

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

// maxProblems bounds an answer; the rest is counted.
const maxProblems = 100

// placed is a problem and where it stands in the text.
type placed struct {
	berth.Problem

	offset int
}

// reader collects problems. A pointer gets one problem at most: the first
// problem of a value usually explains the rest.
type reader struct {
	problems []placed
	bad      map[string]bool // pointers with a problem
	dropped  int
}

func newReader() *reader { return &reader{bad: map[string]bool{}} }

func (r *reader) add(offset int, pointer, code, format string, args ...any) {
	switch {
	case r.bad[pointer]:
		return
	case r.full():
		r.dropped++

		return
	}

	r.bad[pointer] = true
	r.problems = append(r.problems, placed{
		Problem: problem(code, pointer, format, args...),
		offset:  offset,
	})
}

func (r *reader) full() bool { return len(r.problems) >= maxProblems }

// clean reports whether the value at the pointer, with everything inside it,
// has no problem.
func (r *reader) clean(pointer string) bool {
	for bad := range r.bad {
		if bad == pointer || strings.HasPrefix(bad, pointer+"/") {
			return false
		}
	}

	return true
}

// excused reports whether a value, or one that contains it, was already
// refused.
func (r *reader) excused(pointer string) bool {
	for pointer != "" {
		if r.bad[pointer] {
			return true
		}

		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}

	return r.bad[""]
}

// sorted returns the problems in the order of the document.
func (r *reader) sorted() []berth.Problem {
	slices.SortStableFunc(r.problems, func(a, b placed) int { return cmp.Compare(a.offset, b.offset) })

	out := make([]berth.Problem, 0, len(r.problems)+1)
	for _, p := range r.problems {
		out = append(out, p.Problem)
	}

	if r.dropped > 0 {
		out = append(out, *problemf(codeMore, "and %d more; mend these first", r.dropped))
	}

	return out
}

// problemf is a problem of the whole document.
func problemf(code, format string, args ...any) *berth.Problem {
	return new(problem(code, "", format, args...))
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// pointer makes an RFC 6901 JSON pointer.
func pointer(path ...string) string {
	var b strings.Builder

	for _, name := range path {
		b.WriteByte('/')

		if name = shorten(name); strings.ContainsAny(name, "~/") {
			name = pointerEscaper.Replace(name)
		}

		b.WriteString(name)
	}

	return b.String()
}
