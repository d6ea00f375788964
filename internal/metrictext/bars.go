package metrictext

import (
	"regexp"
	"slices"
	"strings"
	"time"
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

// counterForms are the counters, the surest first, with signs of which a line has one.
var counterForms = []struct {
	pattern *regexp.Regexp
	signs   string
}{{richBar, "━╸╺"}, {kerasBar, "━╸╺─["}, {tqdmBar, "|"}, {tqdmCounter, "["}, {otherCounter, "/"}}

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
		if !strings.ContainsAny(part, form.signs) {
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

func epochOf(part string) string {
	match := epochCounter.FindStringSubmatch(part)
	if match == nil {
		return ""
	}

	return match[1]
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

// BarState is what is known of the bars on a stream.
type BarState struct {
	At    string    `json:"-"`               // where the newest part of the line was (partLine)
	Drawn string    `json:"drawn,omitempty"` // the newest end of an epoch's bar, as it was drawn: it may be drawn again
	Time  time.Time `json:"time,omitzero"`   // when it was
	Again bool      `json:"again,omitempty"` // it was drawn again
	Ended bool      `json:"ended,omitempty"` // a bar was at its end
	Shown string    `json:"shown,omitempty"` // by the newest drawing of a bar over epochs
	Cut   string    `json:"cut,omitempty"`   // where a bar was when something was printed behind its drawing
	Held  heldBar   `json:"held,omitzero"`   // a drawing that was its bar's end, unless that goes on
	Above string    `json:"above,omitempty"` // the newest drawing of a bar that is below no other

	Heading string `json:"heading,omitempty"` // the split that a line said by itself
}

// over ends what is known of the end of an epoch's bar. Where it was not drawn again, its
// metrics of validation are no older ones.
func (b *BarState) over(count []shownPart) []shownPart {
	if b.Drawn != "" && !b.Again {
		count = append(count, shownPart{text: b.Drawn, which: validated})
	}

	b.Drawn, b.Again = "", false

	return count
}

// heldBar is a drawing of a bar of which it is not known yet whether it was the end.
type heldBar struct {
	Text    string     `json:"text"`
	At      time.Time  `json:"at,omitzero"`
	Heading string     `json:"heading,omitempty"` // of the lines before it
	Below   bool       `json:"below,omitempty"`   // it is below another bar
	Which   whichNames `json:"which,omitempty"`   // that have not counted yet
}

// gone ends what is known of a bar that does not go on.
func (b *BarState) gone(count []shownPart) []shownPart {
	if b.Held.Text != "" {
		count = append(count, shownPart{text: b.Held.Text, which: b.Held.Which, held: b.Held})
	}

	b.Held = heldBar{}

	return count
}

// drawnAnew ends what is known of the held bar where another one is drawn, or the same one anew.
// A drawing of the bar above it that says nothing new tells nothing of it.
func (b *BarState) drawnAnew(p progress, below bool, count []shownPart) []shownPart {
	above := p.about + p.String()
	if b.Held.Text != "" && (below || !b.Held.Below || b.Above != above) {
		if !p.goesOn(progressOf(b.Held.Text)) {
			count = b.gone(count)
		}

		b.Held = heldBar{}
	}

	if !below {
		b.Above = above
	}

	return count
}

// toldBehind reports whether a message has a metric of the held bar: it is what the script says of the epoch.
func (b *BarState) toldBehind(text string) bool {
	if b.Held.Text == "" {
		return false
	}

	held := pairsOf(plain(b.Held.Text), "").found

	return slices.ContainsFunc(pairsOf(plain(text), "").found, func(f sighting) bool {
		return slices.ContainsFunc(held, func(h sighting) bool { return h.name.full == f.name.full })
	})
}

// open reports whether it cannot be told from a drawing alone that it is its bar's end.
func (p progress) open() bool { return p.tqdm && !p.whole && !p.epochs }

// goesOn reports whether this is a later drawing of the same bar, or the same one again.
func (p progress) goesOn(held progress) bool {
	return p.about == held.about && (held.first || !p.first) && (p.counter == held.counter || !strings.HasPrefix(p.counter, "0/"))
}

// endsEpoch reports whether a bar of an epoch is at its end.
func (p progress) endsEpoch() bool { return p.whole && p.tqdm && p.epoch != "" }

// shownPart is a part of a line that counts, of those that a program wrote over each other.
type shownPart struct {
	text  string
	which whichNames
	drawn string // that was drawn of it before: what was there counts once
	held  heldBar
}

// whichNames are the metrics of a part that count.
type whichNames int

const (
	allNames  whichNames = iota
	validated            // those of validation or test only
	trained              // all but these
)

// counted is what counts of the metrics of a part.
func (p shownPart) counted(found []sighting, objective string) []sighting {
	type value struct {
		name  metricName
		value float64
	}

	drawn := make(map[value]bool)
	for _, d := range pairsOf(plain(p.drawn), objective).found {
		drawn[value{d.name, d.point.Value}] = true
	}

	return slices.DeleteFunc(found, func(f sighting) bool {
		ofValidation := f.name.validates()

		return p.which == validated && !ofValidation || p.which == trained && ofValidation || !ofValidation && drawn[value{f.name, f.point.Value}]
	})
}

// rewritten returns the parts of a line that count, of those that a program wrote over
// each other by carriage returns. Of a line that has not ended it returns the rest, too: the
// newest parts, of which it cannot tell yet.
func rewritten(line string, bars BarState, ended bool) (count []shownPart, rest string, after BarState) {
	texts := strings.Split(line, "\r")
	parts := make([]int, 0, len(texts)) // those that are not empty

	for i := range texts {
		if i == len(texts)-1 && !ended {
			rest = texts[i]

			break
		}

		if Shown(texts[i]) != "" {
			parts = append(parts, i)
		}
	}

	if !ended && len(parts) > 0 { // it may be the last one
		newest := parts[len(parts)-1]
		rest = texts[newest] + "\r" + blankIn(texts[newest+1:len(texts)-1]) + rest
	}

	for i, at := range parts {
		text := Shown(texts[at])
		p, again := progressOf(text), "" // again: an earlier drawing of this end

		if bars.Drawn != "" {
			switch {
			case p.String() == progressOf(bars.Drawn).String():
				again = bars.Drawn
			case !p.tqdm || p.epoch != "":
				count = bars.over(count)
			}
		}

		last := i == len(parts)-1
		if last && !ended {
			break
		}

		below := p.tqdm && strings.HasSuffix(texts[at], lineAbove)
		if p.tqdm {
			count = bars.drawnAnew(p, below, count)
		} else if bars.toldBehind(text) {
			bars.Held = heldBar{}
		}

		which, counts, behind := allNames, !p.keras || p.whole, ""
		held := p.open() && below

		switch {
		case !last:
			next := progressOf(Shown(texts[parts[i+1]]))
			taken := blankIn(texts[at+1:parts[i+1]]) != ""
			p.erased = taken && p.tqdm && next.tqdm && (next.about != p.about || next.first && !p.first)
			held = held || taken && p.open() && !next.tqdm
			which, counts = p.counts(bars, next)
		case p.endsEpoch() && again == "": // the bar of the validation may be on the next line
			which = trained
		case p.end > 0 && !p.whole: // a warning ends its line, and the bar goes on below
			text, behind = text[:p.end], text[p.end:]
			which, counts = p.counts(bars, p)
			bars.Cut = p.String()
		}

		if p.epochs { // drawn anew for each epoch, and once more for its counter
			counts = counts && p.shown == "" || p.shown != "" && p.shown != bars.Shown
			bars.Shown = p.shown
		}

		if held {
			counts, bars.Held = false, heldBar{Text: text, Heading: bars.Heading, Below: below}
			if below {
				which, counts = p.counts(bars, p)
			}

			if counts { // a program's first bar, whose metrics of validation count at each step
				bars.Held.Which = trained
			}
		}

		if counts {
			count = append(count, shownPart{text: text, which: which, drawn: again})
			bars.Again = bars.Again || again != "" && which == allNames
		}

		if behind != "" {
			count = append(count, shownPart{text: behind})
		}

		if which == trained && again == "" {
			bars.Drawn, bars.Again = text, false
		}

		if p.tqdm && p.String() != bars.Cut {
			bars.Cut = ""
		}

		bars.At, bars.Ended = p.String(), bars.Ended || p.tqdm && p.whole || p.erased
	}

	return count, rest, bars
}

// blankIn is the blank in texts by which tqdm takes a bar away (leave=False), with its end.
// It does so for a moment, too, where something else is printed: then the same bar follows,
// maybe before its first step.
func blankIn(texts []string) string {
	for _, text := range texts {
		if len(text) > 1 && strings.Trim(text, " ") == "" {
			return text + "\r"
		}
	}

	return ""
}

// counts reports whether a part counts over which the next one was written, and which of
// its metrics. How fast it is decides nothing:
//
//   - A bar counts at its end, and where the next epoch begins, or a message is printed over it: that
//     takes most such bars away for good. One that was taken away was at its end: a fast one is drawn at 0 only.
//   - One whose steps are epochs counts at each (rewritten: whenever it shows other values). So
//     do the metrics of validation in the first bar that says nothing: a program has such
//     metrics once in an epoch.
//   - Behind the end of an epoch's bar, Lightning draws one of the validation. The first one
//     has the metrics of the validation before.
func (p progress) counts(bars BarState, next progress) (which whichNames, counts bool) {
	switch {
	case p.endsEpoch() && next.tqdm && next.epoch == "":
		return trained, true
	case p.erased:
		return allNames, true
	case strings.HasPrefix(p.counter, "0/"):
		return allNames, false
	case p.counter == "", next.epoch != p.epoch:
		return allNames, !p.keras || p.whole
	case p.whole:
		return allNames, next.counter != p.counter
	case p.String() == bars.At, p.String() == bars.Cut:
		return allNames, false
	case p.tqdm && p.epoch == "" && !p.of && !bars.Ended && !p.epochs:
		return validated, true
	default:
		return allNames, p.epochs
	}
}
