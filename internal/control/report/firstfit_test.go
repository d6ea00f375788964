package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/report"
)

type values map[string]int

// fitOf is the first fit of a trial: 1.3 of 6.2 s.
func fitOf(digest string, of values) report.FirstFit {
	f := report.FirstFit{Digest: digest, Values: berth.Assignment{}, Fit: 1300 * time.Millisecond, Took: 6200 * time.Millisecond}

	for name, value := range of {
		f.Values[name] = berth.IntValue(int64(value))
	}

	return f
}

// firstFitNotes are the notes of a report on first fits.
func firstFitNotes(fits []report.FirstFit) []string {
	r := report.Make(report.Input{State: berth.SweepSucceeded, Trials: len(fits), Succeeded: len(fits), FirstFits: fits})

	return slices.DeleteFunc(r.Notes, func(note string) bool { return !strings.Contains(note, "first fit") })
}

func TestFirstFits(t *testing.T) {
	t.Parallel()

	const repeated = "2 of 4 trials repeated the first fit of another trial, 1.3 s of 6.2 s each, 2.6 s in all."

	for name, test := range map[string]struct {
		fits []report.FirstFit
		want []string
	}{
		"one parameter decides": {
			[]report.FirstFit{fitOf("x", values{"width": 1, "lr": 1}), fitOf("x", values{"width": 1, "lr": 2}), fitOf("y", values{"width": 2, "lr": 1}), fitOf("y", values{"width": 2, "lr": 2})},
			[]string{repeated + " It depends on width, as far as these trials show. Run it once in a stage: stages: [{name: base, parameters: [width]}]"},
		},
		"a parameter that is not always there": {
			[]report.FirstFit{fitOf("x", values{"deep": 1, "lr": 1}), fitOf("x", values{"deep": 1, "lr": 2}), fitOf("y", values{"lr": 1}), fitOf("y", values{"lr": 2})},
			[]string{repeated + " It depends on deep, as far as these trials show. Run it once in a stage: stages: [{name: base, parameters: [deep]}]"},
		},
		"none decides, as equal values differ": {
			[]report.FirstFit{fitOf("x", values{"width": 1, "lr": 1}), fitOf("x", values{"width": 1, "lr": 2}), fitOf("x", values{"width": 1, "lr": 3}), fitOf("y", values{"width": 1, "lr": 4})},
			[]string{repeated},
		},
		"all are alike": {
			[]report.FirstFit{fitOf("x", values{"lr": 1}), fitOf("x", values{"lr": 2}), fitOf("x", values{"lr": 3})},
			[]string{"2 of 3 trials repeated the first fit of another trial, 1.3 s of 6.2 s each, 2.6 s in all. It depends on no parameter, as far as " +
				"these trials show. Run it once in a stage: stages: [{name: base, parameters: []}]"},
		},
		"a pair may be chance":        {[]report.FirstFit{fitOf("x", values{"lr": 1}), fitOf("x", values{"lr": 2}), fitOf("y", values{"lr": 3})}, []string{}},
		"trials with the same values": {[]report.FirstFit{fitOf("x", values{"lr": 1}), fitOf("x", values{"lr": 1}), fitOf("x", values{"lr": 1})}, []string{}},
	} {
		require.Equal(t, test.want, firstFitNotes(test.fits), name)
	}
}

// Where the first fit is a function of some parameters of a grid, these are found.
func TestFirstFits_FindTheParameters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c"}
		reads := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID).Draw(t, "reads")
		slices.Sort(reads)

		sizes := rapid.SliceOfN(rapid.IntRange(2, 3), 3, 3).Draw(t, "sizes")

		var fits []report.FirstFit

		for i := range sizes[0] * sizes[1] * sizes[2] {
			f := fitOf("", values{"a": i % sizes[0], "b": i / sizes[0] % sizes[1], "c": i / sizes[0] / sizes[1]})
			for _, name := range reads {
				f.Digest += fmt.Sprint(name, f.Values[name], " ")
			}

			fits = append(fits, f)
		}

		notes := firstFitNotes(rapid.Permutation(fits).Draw(t, "fits"))
		require.Len(t, notes, 1)
		require.True(t, strings.HasSuffix(notes[0], "stages: [{name: base, parameters: ["+strings.Join(reads, ", ")+"]}]"), notes[0])
	})
}
