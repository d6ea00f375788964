package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berthml/berth"
)

// FirstFit is the first fit of a succeeded trial whose program had others after it.
type FirstFit struct {
	Digest string           // of its metrics; trials with the same one did the same work
	Values berth.Assignment // of the searched parameters
	Fit    time.Duration    // of the first fit
	Took   time.Duration    // of the attempt
}

// leastSharing is how many trials must have first fits in common for a note: a pair may be chance.
const leastSharing = 3

// firstFitNote advises a stage to trials that repeated each other's first fit; empty = too few did.
// Trials with the same values do not count: they repeat all of their work.
func firstFitNote(in Input) string {
	groups := map[string][]FirstFit{}
	for _, fit := range in.FirstFits {
		groups[fit.Digest] = append(groups[fit.Digest], fit)
	}

	var (
		sharing, repeats int
		fits, took       time.Duration
	)

	for _, group := range groups {
		if !slices.ContainsFunc(group, func(f FirstFit) bool { return !maps.Equal(f.Values, group[0].Values) }) {
			continue
		}

		sharing += len(group)
		repeats += len(group) - 1

		for _, repeat := range group[1:] {
			fits, took = fits+repeat.Fit, took+repeat.Took
		}
	}

	if sharing < leastSharing {
		return ""
	}

	text := fmt.Sprintf("%d of %s repeated the first fit of another trial, %s of %s each, %s in all.", repeats, plural(in.Succeeded, "trial", "trials"),
		timeText(fits/time.Duration(repeats)), timeText(took/time.Duration(repeats)), timeText(fits))

	names, found := decides(in.FirstFits)
	if !found {
		return text
	}

	list := strings.Join(names, ", ")
	if list == "" {
		list = "no parameter"
	}

	return fmt.Sprintf("%s It depends on %s, as far as these trials show. Run it once in a stage: stages: [{name: base, parameters: [%s]}]",
		text, list, strings.Join(names, ", "))
}

// decides returns parameters, in ascending order, whose values are equal exactly where digests are,
// with no parameter that can be left out; false = there are none.
func decides(fits []FirstFit) (names []string, found bool) {
	all := berth.Assignment{}
	for _, fit := range fits {
		maps.Copy(all, fit.Values)
	}

	for _, name := range all.Names() {
		if sameInEachGroup(fits, name) {
			names = append(names, name)
		}
	}

	if !tellApart(fits, names) {
		return nil, false
	}

	for _, name := range slices.Clone(names) {
		fewer := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
		if tellApart(fits, fewer) {
			names = fewer
		}
	}

	return names, true
}

func sameInEachGroup(fits []FirstFit, name string) bool {
	values := map[string]berth.Value{}

	for _, fit := range fits {
		if value, seen := values[fit.Digest]; seen && value != fit.Values[name] {
			return false
		}

		values[fit.Digest] = fit.Values[name]
	}

	return true
}

// tellApart reports whether trials with equal values of the parameters have equal digests.
func tellApart(fits []FirstFit, names []string) bool {
	digests := map[string]string{}

	for _, fit := range fits {
		read := berth.Assignment{}

		for _, name := range names {
			if value, active := fit.Values[name]; active {
				read[name] = value
			}
		}

		if digest, seen := digests[read.Key()]; seen && digest != fit.Digest {
			return false
		}

		digests[read.Key()] = fit.Digest
	}

	return true
}
