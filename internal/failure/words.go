package failure

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

var (
	// rankPrefix is torchrun's prefix of each line of a worker.
	rankPrefix = regexp.MustCompile(`^\[(?:rank|default)\d+\]: ?`)
	// colours are the control sequences of a terminal (ECMA-48, section 5.4).
	colours = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]")
	// exceptionLine is the line of a traceback with the exception. Where none reads so, it is the
	// first line that is not indented.
	exceptionLine = regexp.MustCompile(`^[\w.]*(?:Error|Exception|Exit|Interrupt|Iteration|Group|Warning|timeout|error)\b`)
	// saysNothing are exceptions that give the reason in the next lines: two at most (Pydantic).
	saysNothing = regexp.MustCompile(`Exception encountered when calling|ProcessRaisedException|\d+ validation errors? for |:\s*$`)
	// fatal is a line after which only frames of a stack or help follow: a check of C++ code that
	// failed (glog, absl), or wrong flags (absl).
	fatal = regexp.MustCompile(`^FATAL |^(?:[\d-]{10} [\d:.]+: )?F(?:\d{4} [\d:.]+ +\d+)? \S+\.(?:cc|cpp|h):\d+\] *Check failed`)
	// verdict is a last line that says itself that it is the reason.
	verdict = regexp.MustCompile(`^(?:ERROR|FATAL|CRITICAL|Error|Fatal)\b`)
	// badSyntax is the exception of a script that Python cannot read: it has no head of a
	// traceback, and placeInFile is lines above.
	badSyntax   = regexp.MustCompile(`^(?:SyntaxError|IndentationError|TabError)\b`)
	placeInFile = regexp.MustCompile(`^\s*File "([^"]+)", line (\d+)`)
	// wordy is a line with a word in it.
	wordy = regexp.MustCompile(`[[:alpha:]]`)
	// bar is a progress bar of Keras, tqdm or pip.
	bar = regexp.MustCompile(`[━█▏▎▍▌▋▊▉╸╺]|\d+/\d+ \[[=>.]+\]|\d+%\|.*\| \d+/`)
)

const (
	tracebackHead = "Traceback (most recent call last)"
	causedHead    = "The above exception was the direct cause of the following exception"
)

// lastWords is the line that says why a program ended: the first check of its C++ code
// that failed, else the exception of the last Python traceback with its causes, else the
// last line that is neither blank nor a progress bar.
func (e Evidence) lastWords() string {
	lines := e.words()
	if at := slices.IndexFunc(lines, fatal.MatchString); at >= 0 {
		return quote(lines[at])
	}

	last, lastAt := lastLine(lines)
	t := decisive(tracebacks(lines))

	switch {
	case last == "":
		return "it printed nothing"
	case t == nil, lastAt > t.end && verdict.MatchString(last): // or it got over the exception, and says why it gave up
		return quote(last) + placeOf(last, lines[:lastAt])
	}

	words := t.words(lines) + placeOf(t.exception, lines[:t.at])
	if cause := t.cause; cause != "" && quote(cause) != words {
		words += " (raised from " + quote(cause) + ")"
	}

	if lastAt > t.end && last == strings.TrimLeft(last, " \t|+") { // the program may have survived the exception
		words += " (its last line: " + quote(last) + ")"
	}

	return words
}

// placeOf is where Python could not read a script, such as " (/app/train.py, line 3)";
// empty for other exceptions. before are the lines above the exception.
func placeOf(exception string, before []string) string {
	if !badSyntax.MatchString(exception) {
		return ""
	}

	for _, line := range slices.Backward(before) {
		if match := placeInFile.FindStringSubmatch(line); match != nil {
			return " (" + quote(match[1]) + ", line " + match[2] + ")"
		}
	}

	return ""
}

// lastLine is the last line that is neither a progress bar nor a mere rule, and its place;
// a bar when there is no other.
func lastLine(lines []string) (line string, at int) {
	for i, l := range slices.Backward(lines) {
		if !bar.MatchString(l) && wordy.MatchString(l) {
			return l, i
		}

		if line == "" {
			line, at = l, i
		}
	}

	return line, at
}

// traceback is a traceback that Python printed.
type traceback struct {
	exception string // its line
	source    string // the line of the program before it
	at        int    // of the exception, among the lines
	end       int    // of the last line that belongs to it
	cause     string // the innermost exception from which it was raised by `raise … from …`
}

// tracebacks returns the tracebacks that end in an exception. Lines of both streams
// may interrupt a traceback.
func tracebacks(lines []string) (found []traceback) {
	var (
		t      traceback
		other  = -1 // may be an exception class by another rule
		inside bool
		caused bool
	)

	add := func(at int) {
		t.at, t.exception = at, lines[at]
		t.end = at + len(reasonLines(lines, at))

		if caused && len(found) > 0 {
			before := found[len(found)-1]
			t.cause = cmp.Or(before.cause, before.exception)
		}

		found = append(found, t)
		inside, other, caused = false, -1, false
	}

	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, causedHead):
			caused = true
		case strings.Contains(line, tracebackHead):
			t, inside, other = traceback{}, true, -1
		case !inside:
		case strings.TrimLeft(line, " \t│╭╰") != line: // Rich draws a box
			t.source = strings.TrimSpace(line)
		case exceptionLine.MatchString(line):
			add(i)
		case other < 0 && !bar.MatchString(line):
			other = i
		}
	}

	if inside && other >= 0 {
		add(other)
	}

	return found
}

// decisive is the traceback that says why the program ended: the last one, except a
// launcher's, which says only that a worker failed. Nil = none.
func decisive(found []traceback) *traceback {
	for i := range slices.Backward(found) {
		if i == 0 || !strings.Contains(found[i].exception, "ChildFailedError") {
			return &found[i]
		}
	}

	return nil
}

// words returns the exception with its further lines.
func (t *traceback) words(lines []string) string {
	said := []string{quote(t.exception)}
	node := len(lines) - 1 // the last: TensorFlow's warnings, such as "End of sequence", name nodes before it

	for node >= 0 && !strings.Contains(lines[node], "[[{{node ") {
		node--
	}

	switch {
	case node > 0 && strings.HasSuffix(t.exception, "Graph execution error:"): // Keras gives the reason before the node where it happened
		said = append(said, quote(lines[node-1]))
	case t.exception == "AssertionError" && t.source != "":
		said[0] += ": " + quote(t.source)
	default:
		for _, line := range reasonLines(lines, t.at) {
			said = append(said, quote(strings.TrimSpace(line)))
		}
	}

	return strings.Join(said, " ")
}

// reasonLines returns the lines after an exception that give the reason, when its own line does
// not.
func reasonLines(lines []string, at int) []string {
	if !saysNothing.MatchString(lines[at]) {
		return nil
	}

	rest := lines[at+1:]

	return rest[:min(2, len(rest))]
}

// WithoutColours is a text without the control sequences of a terminal.
func WithoutColours(text string) string { return colours.ReplaceAllString(text, "") }

// words are the non-blank lines of the log, as a terminal finally shows them,
// without torchrun's prefix.
func (e Evidence) words() []string {
	words := make([]string, 0, len(e.LogTail))

	for _, line := range e.LogTail {
		line = strings.TrimRight(line, "\r")
		line = WithoutColours(line[strings.LastIndexByte(line, '\r')+1:])
		line = rankPrefix.ReplaceAllString(line, "")

		if strings.TrimSpace(line) != "" {
			words = append(words, line)
		}
	}

	return words
}
