package runtrial

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

var (
	numbers = regexp.MustCompile(`\d+`)
	// parts of one checkpoint: model-00001-of-00003.safetensors
	partsOf = regexp.MustCompile(`\d+-of-\d+`)
)

// eventFileMark is in the names of TensorBoard's event files: curves, and no checkpoints.
const eventFileMark = "tfevents"

// checkpointKind is equal for names that differ in numbers only, and these are their numbers,
// without leading zeros. Empty for a name that is of no kind: it has no number, or is an
// event file's.
func checkpointKind(name string) (string, []string) {
	if strings.Contains(name, eventFileMark) {
		return "", nil
	}

	var (
		kind  strings.Builder
		found []string
	)

	at := 0

	add := func(text string) {
		for _, number := range numbers.FindAllString(text, -1) {
			found = append(found, strings.TrimLeft(number, "0"))
		}

		kind.WriteString(numbers.ReplaceAllString(text, "#"))
	}

	for _, part := range partsOf.FindAllStringIndex(name, -1) {
		add(name[at:part[0]])
		kind.WriteString(name[part[0]:part[1]])

		at = part[1]
	}

	if add(name[at:]); len(found) == 0 {
		return "", nil
	}

	return kind.String(), found
}

// compareNumbers orders names of one kind by their numbers.
func compareNumbers(a, b []string) int {
	return slices.CompareFunc(a, b, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
}

// setNumbers tells which number says of what epoch or step each checkpoint is: of its kind the
// first that no two names share, such as the 3 of resnet50-epoch-3.pt, else all of them.
func setNumbers(all []checkpoint) {
	kinds := make(map[string][]int)
	for i, c := range all {
		kinds[c.kind] = append(kinds[c.kind], i)
	}

	delete(kinds, "")

	for _, members := range kinds {
		at := distinctNumber(all, members)

		for _, i := range members {
			all[i].number = strings.Join(all[i].numbers, " ")
			if at >= 0 {
				all[i].number = all[i].numbers[at]
			}
		}
	}
}

// distinctNumber is the first place at which all members have another number; -1 = none.
func distinctNumber(all []checkpoint, members []int) int {
	for at := range all[members[0]].numbers {
		seen := make(map[string]bool)
		for _, i := range members {
			seen[all[i].numbers[at]] = true
		}

		if len(seen) == len(members) {
			return at
		}
	}

	return -1
}
