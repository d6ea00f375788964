package failure

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	// rankPrefix is what torchrun puts before each line of a worker.
	rankPrefix = regexp.MustCompile(`^\[(?:rank|default)\d+\]: ?`)
	// exceptionLine is the line of a traceback with the exception: its class, mostly with
	// its module, begins with a capital letter or ends as one does (socket.timeout).
	exceptionLine = regexp.MustCompile(`^(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*|timeout|error|gaierror)(?::|$)`)
	// graphError is the exception of a Keras program, which says what is wrong lines below,
	// before the node of the graph where it happened.
	graphError = regexp.MustCompile(`Graph execution error:?\s*$`)
	graphNode  = regexp.MustCompile(`^\s*\[\[\{\{node `)
	// bar is a progress bar of Keras, tqdm or pip.
	bar = regexp.MustCompile(`[━█▏▎▍▌▋▊▉╸╺]|\d+/\d+ \[[=>.]+\]|\d+%\|.*\| \d+/`)
)

const (
	tracebackHead = "Traceback (most recent call last)"
	causedHead    = "The above exception was the direct cause of the following exception"
)

// lastWords is what says why a program ended: the exception of the last Python
// traceback with what it was raised from, else the last line that is neither blank nor a
// progress bar.
func (e Evidence) lastWords() string {
	last, exception := e.lastLines()
	if exception == "" {
		exception = last
	}

	if exception == "" {
		return "it printed nothing"
	}

	words := quote(exception)
	if why := e.graphReason(); why != "" && graphError.MatchString(exception) {
		words += " " + quote(why)
	}

	if cause := e.cause(); cause != "" && quote(cause) != words {
		words += " (raised from " + quote(cause) + ")"
	}

	return words
}

// lastLines returns the last line that is not blank, before any progress bar, and the
// exception of the last Python traceback. Lines of both streams may be between those of
// a traceback.
func (e Evidence) lastLines() (last, exception string) {
	barred, other, inTraceback := "", "", false

	for _, line := range e.words() {
		switch {
		case bar.MatchString(line):
			barred = line
		default:
			last = line
		}

		switch {
		case strings.HasPrefix(line, tracebackHead):
			inTraceback, other = true, ""
		case !inTraceback || unicode.IsSpace(rune(line[0])):
		case exceptionLine.MatchString(line):
			exception, other, inTraceback = line, "", false
		case other == "":
			other = line
		}
	}

	if inTraceback && other != "" { // an exception class by another rule
		exception = other
	}

	if last == "" {
		last = barred
	}

	return last, exception
}

// cause is the exception from which that of the last traceback was raised by `raise …
// from …`, the innermost of several.
func (e Evidence) cause() string {
	innermost, exception, inTraceback, caused := "", "", false, false

	for _, line := range e.words() {
		switch {
		case strings.HasPrefix(line, causedHead):
			caused = true

			if innermost == "" {
				innermost = exception
			}
		case strings.HasPrefix(line, tracebackHead):
			if !caused {
				innermost = ""
			}

			inTraceback, caused = true, false
		case inTraceback && !unicode.IsSpace(rune(line[0])) && exceptionLine.MatchString(line):
			exception, inTraceback = line, false
		}
	}

	return innermost
}

// graphReason is the line before the last node of a graph.
func (e Evidence) graphReason() string {
	before, why := "", ""

	for _, line := range e.words() {
		if graphNode.MatchString(line) {
			why = before
		}

		before = line
	}

	return why
}

// words are the lines of the log that are not blank, as a terminal shows them in the
// end, without what torchrun puts before them.
func (e Evidence) words() []string {
	words := make([]string, 0, len(e.LogTail))

	for _, line := range e.LogTail {
		line = strings.TrimRight(line, "\r")
		line = rankPrefix.ReplaceAllString(line[strings.LastIndexByte(line, '\r')+1:], "")

		if strings.TrimSpace(line) != "" {
			words = append(words, line)
		}
	}

	return words
}
