package metrictext

import (
	"slices"
	"strings"
	"time"
)

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

// heldBar is a drawing that may have been the last one of its bar.
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
//   - A bar counts at its end, and where something of another epoch, or of none, is written over it. One
//     that was taken away for another bar was at its end: a fast one is drawn at 0 only. One that was taken
//     away for a message may go on (heldBar).
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
