package runtrial

import (
	"regexp"
	"strings"
)

var (
	// kerasBar is a bar of Keras with its counter, richBar one of Rich (Lightning). Keras
	// prints it anew for each batch, on a line of its own where there is no terminal.
	kerasBar = regexp.MustCompile(`(\d+)/(\d+|Unknown)\s+(?:[━╸╺─]|\[[=>.]+\])`)
	richBar  = regexp.MustCompile(`[━╸╺]\s+(\d+)/(\d+)\b`)
	tqdmBar  = regexp.MustCompile(`\d+%\|[^|]*\|\s*(\d+)/(\d+) \[`)
	// slowBar has steps of a second and more: each may be an epoch.
	slowBar = regexp.MustCompile(`\d\.\d+s/\w`)
	// ownLine is what Keras prints of an epoch with verbose=2: "90/90 - 3s - 30ms/step - loss: 0.25".
	ownLine      = regexp.MustCompile(`^\s*\d+/(?:\d+|Unknown) - \d+(?:\.\d+)?(?:s|ms|us) - `)
	otherCounter = regexp.MustCompile(`(?:^|[\s\[(:])(\d+)/(\d+)(?:$|[\s\]):,])`)
	epochCounter = regexp.MustCompile(`(?i)\bep(?:och)?s?\b\W{0,3}\d+(?:/\d+)?`)
)

// barBytes of a line are searched for a bar.
const barBytes = 1 << 10

// progress is how far a part of a line says that the job is.
type progress struct {
	epoch   string // "Epoch 2/10"; empty = it names none
	counter string // of the bar: "31/60"; empty = there is none
	whole   bool   // the bar is at its end
	keras   bool   // drawn anew for each batch, so it counts at its end only
	slow    bool   // each step takes a second and more
}

func progressOf(part string) progress {
	part = part[:min(len(part), barBytes)]
	if !strings.Contains(part, "/") {
		return progress{epoch: epochCounter.FindString(part)}
	}

	p := progress{epoch: epochCounter.FindString(part)}

	for _, bar := range []*regexp.Regexp{richBar, kerasBar, tqdmBar, otherCounter} {
		if bar == otherCounter {
			part = strings.Replace(part, p.epoch, "", 1)
		}

		if match := bar.FindStringSubmatch(part); match != nil {
			p.counter, p.whole = match[1]+"/"+match[2], match[1] == match[2]
			p.keras = bar == richBar || bar == kerasBar
			p.slow = bar == tqdmBar && slowBar.MatchString(part)

			break
		}
	}

	return p
}

// ownBar reports whether Keras itself printed a part of a line: under the names of fit it
// prints what evaluate finds, too.
func ownBar(part string) bool {
	part = part[:min(len(part), barBytes)]

	return strings.Contains(part, "/") && (kerasBar.MatchString(part) || ownLine.MatchString(part))
}

func (p progress) String() string { return p.epoch + " " + p.counter }

// rewritten returns the parts of a line that count, of those that a program wrote over
// each other by carriage returns, and the part before the last of them. Of a line that has
// not ended it returns the rest, too: the newest parts, of which it cannot tell yet. bar
// is where the newest part was that it looked at, before and after.
func rewritten(line, bar string, ended bool) (count []string, rest, newBar string) {
	texts := strings.Split(line, "\r")
	parts := make([]int, 0, len(texts)) // those that are not empty

	for i := range texts {
		if i == len(texts)-1 && !ended {
			rest = texts[i]

			break
		}

		if shown(texts[i]) != "" {
			parts = append(parts, i)
		}
	}

	if !ended && len(parts) > 0 { // it may be the last one
		rest = texts[parts[len(parts)-1]] + "\r" + rest
	}

	for i, part := range parts {
		part := shown(texts[part])
		p := progressOf(part)

		if i == len(parts)-1 {
			if ended && (!p.keras || p.whole) {
				count = append(count, part)
			}

			break
		}

		if p.counts(bar, progressOf(shown(texts[parts[i+1]]))) {
			count = append(count, part)
		}

		bar = p.String()
	}

	return count, rest, bar
}

// counts reports whether a part counts over which the next one was written. A fast bar
// shows each batch; it counts at its end, and when the next epoch begins.
func (p progress) counts(before string, next progress) bool {
	switch {
	case p.counter == "", next.epoch != p.epoch:
		return !p.keras || p.whole
	case p.whole:
		return next.counter != p.counter
	default:
		return p.slow && p.String() != before && !strings.HasPrefix(p.counter, "0/")
	}
}
