package metrictext

import (
	"regexp"
	"strings"
)

var (
	// kerasBar is a bar of Keras with its counter, richBar one of Rich (Lightning). Keras
	// prints it anew for each batch, on a line of its own where there is no terminal.
	kerasBar = regexp.MustCompile(`(\d+)/(\d+|Unknown)\s+(?:[━╸╺─]|\[[=>.]+\])`)
	richBar  = regexp.MustCompile(`[━╸╺]\s+(\d+)/(\d+)\b`)
	// tqdmBar may count in thousands, and not know its total: 1.00k/3.00k, 0/?, 3it.
	tqdmBar     = regexp.MustCompile(`(?:\d+%|:\s?)\|[^|]*\|\s*(\d[\d.]*[kMGTP]?)/(\d[\d.]*[kMGTP]?|\?) \[`)
	tqdmCounter = regexp.MustCompile(`(?:^|[\s:])(\d[\d.]*[kMGTP]?)()[^\s\d/]{1,12} \[\d+:\d+(?::\d+)?, `)
	// epochsBar says that its steps are epochs: by its unit, or by its description.
	epochsBar = regexp.MustCompile(`(?i)\d\s?ep(?:och)?s?/s|s/ep(?:och)?s?\b|\bepochs?\b\W{0,6}\d+%\|`)
	// firstDrawing is tqdm's first one of a bar.
	firstDrawing = regexp.MustCompile(`[\[ ]\?[^\s,\]]{1,12}/s\]$`)
	// ownLine is what Keras prints of an epoch with verbose=2: "90/90 - 3s - 30ms/step - loss: 0.25".
	ownLine      = regexp.MustCompile(`^\s*\d+/(?:\d+|Unknown) - \d+(?:\.\d+)?(?:s|ms|us) - `)
	otherCounter = regexp.MustCompile(`(?:^|[\s\[(:])(\d+)/(\d+)(?:$|[\s\]):,])`)
	// epochCounter names an epoch, and no "Epochs:  33%".
	epochCounter = regexp.MustCompile(`(?i)(\bep(?:och)?s?\b\W{0,3}\d+(?:/\d+)?)(?:$|[^\d%/])`)
)

// counterForms are the counters, the surest first, with signs of which a line has one, and
// a text that it has.
var counterForms = []struct {
	pattern *regexp.Regexp
	signs   string
	text    string
}{{richBar, "━╸╺", ""}, {kerasBar, "━╸╺─[", ""}, {tqdmBar, "|", " ["}, {tqdmCounter, "[", " ["}, {otherCounter, "/", ""}}

// lineAbove is where tqdm leaves the cursor behind the drawing of a bar below another one.
const lineAbove = "\x1b[A"

// barBytes of a line are searched for a bar.
const barBytes = 1 << 10

// progress is how far a part of a line says that the job is.
type progress struct {
	epoch   string // "Epoch 2/10"; empty = it names none
	counter string // of the bar: "31/60"; empty = there is none
	whole   bool   // the bar is at its end
	keras   bool   // drawn anew for each batch, so it counts at its end only
	tqdm    bool
	shown   string // the metrics behind a bar that says that its steps are epochs
	epochs  bool   // it says that its steps are epochs
	of      bool   // its description says of which data it is: "Validation:  33%|"
	about   string // tqdm's description
	first   bool   // tqdm's first drawing
	erased  bool   // tqdm took the bar away: it is at its end, whatever its counter says
	end     int    // of tqdm's drawing, where something is printed behind it; 0 = nothing is
}

func progressOf(part string) progress {
	part = part[:min(len(part), barBytes)]
	if !strings.Contains(part, "/") {
		return progress{epoch: epochOf(part)}
	}

	p := progress{epoch: epochOf(part)}

	for _, form := range counterForms {
		bar := form.pattern
		if !strings.ContainsAny(part, form.signs) || !strings.Contains(part, form.text) {
			continue
		}

		if bar == otherCounter {
			part = strings.Replace(part, p.epoch, "", 1)
		}

		match := bar.FindStringSubmatchIndex(part)
		if bar == otherCounter && match != nil && strings.HasSuffix(strings.TrimRight(part[:match[2]], "( "), "%") { // "Acc: 80.0% (160/200) 2/3"
			part = part[match[5]:]
			match = bar.FindStringSubmatchIndex(part)
		}

		if match == nil {
			continue
		}

		count, all := part[match[2]:match[3]], part[match[4]:match[5]]
		p.counter, p.whole = count+"/"+all, count == all
		p.keras, p.tqdm = bar == richBar || bar == kerasBar, bar == tqdmBar || bar == tqdmCounter
		p.epochs = p.tqdm && p.epoch == "" && epochsBar.MatchString(part)
		p.of = p.tqdm && ofSplit(part[:match[0]])
		p.about, p.first = strings.Trim(part[:match[0]], ": "), p.tqdm && firstDrawing.MatchString(part)

		drawn := part
		if p.tqdm {
			if p.end = behindBracket(part, match[1]); p.end > 0 {
				drawn = part[:p.end]
			}
		}

		if behind := strings.SplitN(drawn[match[1]:], ", ", 3); p.epochs && bar == tqdmBar && len(behind) == 3 {
			p.shown = behind[2]
		}

		break
	}

	return p
}

// postfix is that of a bar_format which has it behind the bracket: a logger's line begins at once.
var postfix = regexp.MustCompile(`^\s?,\s+[\pL_][\w ./-]*\s?[=:]`)

// behindBracket is the end of the bracket that is open at a place, if something that is not of the bar is behind it; 0 = nothing is.
func behindBracket(part string, at int) int {
	for depth := 1; at < len(part)-1; at++ {
		switch part[at] {
		case '[':
			depth++
		case ']':
			depth--
		}

		if depth == 0 && postfix.MatchString(part[at+1:]) {
			return 0
		}

		if depth == 0 {
			return at + 1
		}
	}

	return 0
}

// epochOf returns the counter of epochs in a part of a line. The pattern is tried where a
// word begins like it: on each byte of a line it takes longer than all other rules.
func epochOf(part string) string {
	for at := range len(part) - 1 {
		if part[at]|' ' != 'e' || part[at+1]|' ' != 'p' || at > 0 && wordByte(part[at-1]) {
			continue
		}

		if match := epochCounter.FindStringSubmatch(part[at:]); match != nil {
			return match[1]
		}

		return ""
	}

	return ""
}

// wordByte reports whether \b of a pattern takes a byte for a part of a word.
func wordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b|' ' >= 'a' && b|' ' <= 'z'
}

// ofSplit reports whether a bar's description says that it is over data of validation or
// test. One that says training may be over epochs, too.
func ofSplit(description string) bool {
	for word := range strings.FieldsFuncSeq(description, func(r rune) bool { return !inWord(r) }) {
		if splitWord.MatchString(word) && !strings.HasPrefix(strings.ToLower(word), "train") {
			return true
		}
	}

	return false
}

// ownBar reports whether Keras itself printed a part of a line: under the names of fit it
// prints what evaluate finds, too.
func ownBar(part string) bool {
	part = part[:min(len(part), barBytes)]

	return strings.Contains(part, "/") && (kerasBar.MatchString(part) || ownLine.MatchString(part))
}

func (p progress) String() string { return p.epoch + " " + p.counter }

// open reports whether it cannot be told from a drawing alone that it is its bar's end.
func (p progress) open() bool { return p.tqdm && !p.whole && !p.epochs }

// goesOn reports whether this is a later drawing of the same bar, or the same one again.
func (p progress) goesOn(held progress) bool {
	return p.about == held.about && (held.first || !p.first) && (p.counter == held.counter || !strings.HasPrefix(p.counter, "0/"))
}

// endsEpoch reports whether a bar of an epoch is at its end.
func (p progress) endsEpoch() bool { return p.whole && p.tqdm && p.epoch != "" }
