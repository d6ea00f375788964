package metrictext

import (
	"regexp"
	"strings"
)

var (
	// bestOf begins a line that tells of the best epoch, model or result, behind a logger's
	// words, a time or a sentence: all metrics behind it are of that one.
	bestOf = regexp.MustCompile(`^(?:.{0,80}\b(?:INFO|DEBUG|WARN(?:ING)?)\b(?:[^={]{0,80}[\]:|>-])?|[\[(]?\d[\d:.,/TZ +-]*[\])]?\s|[^=:{]{0,80}[.!,]\s)?[^\pL\d{"']*` +
		`(?i:(?:(?:new|the|overall)\s+)?(best)(?:\s+so\s+far)?(?:\s*[:={]|` +
		`(?:\s+|\s*[(@]\s*)(?:at\s+)?(?:val(?:idation)?\s+)?(?:epoch|step|iter(?:ation)?|model|result|checkpoint|ckpt|metric|value|weight|run|fold)s?\b))`)
	// bestOver is a word behind which the best is over.
	bestOver = regexp.MustCompile(`(?i)\b(?:current|now|last|latest|final)\b`)
	// onlyBest is what surrounds the only metric of a line that is the best: "val_loss: 0.21 (best)".
	// Behind an epoch, or directly behind the number (0.21(best)), the word says that this value is the best so far.
	onlyBest = regexp.MustCompile(`(?i)^\s+[\[(](best(?: so far)?)(?:[,;:@]?\s*(?:at\s+)?epoch\s+\d+)?[\])][\s.!*]*$`)
	inFront  = regexp.MustCompile(`^[^\pL\d]*$`)
)

// bestLine is the word of a line that says that it tells of the best, and where that ends;
// empty = it tells of none.
func bestLine(line string) (word string, until int) {
	if !strings.Contains(line, "best") && !strings.Contains(line, "Best") && !strings.Contains(line, "BEST") { // most lines
		return "", 0
	}

	at := bestOf.FindStringSubmatchIndex(line)
	if at == nil {
		return "", 0
	}

	until = len(line)
	if over := bestOver.FindStringIndex(line[at[1]:]); over != nil {
		until = at[1] + over[0]
	}

	return line[at[2]:at[3]], until
}

// of is the name with a word for its quality in front, unless it has one.
func (n metricName) of(quality string) metricName {
	if n.quality != "" {
		return n
	}

	if n.bare == "" {
		n.bare = n.full
	}

	n.quality, n.full = quality, quality+" "+n.full

	return n
}
