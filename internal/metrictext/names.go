package metrictext

import (
	"regexp"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
)

// sighting is a metric that was found in a line, before its name and step are settled.
type sighting struct {
	point    berth.MetricPoint // without name, step and time
	name     metricName
	step     *int64 // that the line names; nil = it names none
	rounded  bool   // that is an epoch which may be rounded
	own      bool   // found by the spec's own pattern
	likeness Likeness
}

// metricName is a metric's name as a program prints it: "Best val KL Loss" is the best of
// "KL Loss", of validation data.
type metricName struct {
	full    string // with all words that belong to it
	bare    string // without quality and split; empty = full has neither
	split   string // the word that says of which data it is: "val"; empty = none does
	weak    bool   // the split is a word of the line, which may not be about this metric
	quality string // the words that say which of its values it is: "Best"; empty = the newest
}

// Likeness is how much a printed name is like the objective's: the lower the more.
type Likeness int

// The likenesses.
const (
	asNamed      Likeness = iota + 1
	sameLetters           // "Val Loss" for val_loss
	ofValidation          // "val acc" for acc
	ofTest                // "Test accuracy" for accuracy
	averaged              // "avg loss" for loss
	inTraining            // "Training: 100%|██| 9/9 [acc=0.5]" for acc, never "train acc"
	bestSoFar             // "Best val_acc" for val_acc
)

// DoubtfulFrom is the likeness from which on a metric is the objective only where nobody
// else reports it. In a sweep that names no source a name in another form is doubtful, too:
// the exact one may be in a lower source, with all its curves.
func DoubtfulFrom(auto bool) Likeness {
	if auto {
		return sameLetters
	}

	return averaged
}

var (
	// splitWord is a word that says of which data a metric is: LightGBM's valid_1, too.
	splitWord = regexp.MustCompile(`^(?i:train(?:ing)?|val(?:id(?:ation)?)?|dev|test(?:ing)?|eval(?:uation)?)(?:[_-]?\d+)?$`)
	// ownSplit is such a word in a name: no other one says of which data it is.
	ownSplit = regexp.MustCompile(`(?i)(?:^|[_./|-])(?:train(?:ing)?|val(?:id(?:ation)?)?|dev|test(?:ing)?|eval(?:uation)?)\d*(?:$|[_./|@-])`)
)

// like says how much the name is like the objective's; 0 = it is that of another metric.
func (n metricName) like(objective string) Likeness {
	if n.full == objective {
		return asNamed
	}

	want := failure.PlainName(objective)

	switch {
	case failure.PlainName(n.full) == want:
		return sameLetters
	case n.bare == "":
		return 0
	}

	like := sameLetters

	for word := range strings.FieldsSeq(n.quality) {
		quality := qualities[strings.ToLower(word)]
		if quality == 0 {
			return 0
		}

		like = max(like, quality)
	}

	if failure.PlainName(n.split+n.bare) == want {
		return like
	}

	if failure.PlainName(n.bare) != want {
		return 0
	}

	switch split := strings.ToLower(n.split); {
	case strings.HasPrefix(split, "val"):
		return max(like, ofValidation)
	case !strings.HasPrefix(split, "train"):
		return max(like, ofTest)
	case n.weak:
		return max(like, inTraining)
	default:
		return 0
	}
}

// in is the name of a metric in what a split holds, such as a dict behind "val:", unless
// the name says itself of which data it is.
func (n metricName) in(split string, weak bool) metricName {
	if split == "" || n.split != "" || ownSplit.MatchString(n.full) {
		return n
	}

	if n.bare == "" {
		n.bare = n.full
	}

	n.split, n.weak, n.full = split, weak, split+"/"+n.full

	return n
}

// validates reports whether the name says that it is of validation or test data.
func (n metricName) validates() bool {
	split := n.split
	if split == "" {
		split = ownSplit.FindString(n.full)
	}

	return split != "" && !strings.Contains(strings.ToLower(split), "train")
}
