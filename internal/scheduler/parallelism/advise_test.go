package parallelism_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/parallelism"
)

// What failed where more were at once, or would run into its time limit there, is not
// tried again with as many: no sweep loses trials so that others end faster.
func TestAdvise_NeverWhereAttemptsFail(t *testing.T) {
	t.Parallel()

	const mps, slices = berth.SharingMPS, berth.SharingTimeSlicing

	with := func(p berth.Pace, failures int) berth.Pace { p.Failed = failures; return p } //nolint:nlreturn // one line
	failed := func(mode berth.SharingMode, atOnce, n int) berth.Pace {
		return berth.Pace{ShapeKey: "a", Company: berth.Company{Mode: mode, AtOnce: atOnce}, Failed: n}
	}

	other := func(mode berth.SharingMode, atOnce, n int) berth.Pace {
		p := failed(mode, atOnce, n)
		p.ShapeKey = "b"

		return p
	}

	for name, c := range map[string]struct {
		paces []berth.Pace
		limit float64
		want  berth.Company
	}{
		"nothing failed":            {[]berth.Pace{pace("a", mps, 2, 9, 5)}, 0, berth.Company{Mode: mps, AtOnce: 3}},
		"three failed beside three": {[]berth.Pace{pace("a", mps, 2, 9, 5), failed(mps, 3, 3)}, 0, berth.Company{Mode: mps, AtOnce: 1}},
		"two did, by chance":        {[]berth.Pace{pace("a", mps, 2, 9, 5), failed(mps, 3, 2)}, 0, berth.Company{Mode: mps, AtOnce: 3}},
		"time for three":            {[]berth.Pace{pace("a", mps, 2, 9, 5)}, 19, berth.Company{Mode: mps, AtOnce: 3}},
		"too little time for three": {[]berth.Pace{pace("a", mps, 2, 9, 5)}, 18, berth.Company{Mode: mps, AtOnce: 1}},
		"a fault, long ago":         {[]berth.Pace{pace("a", mps, 2, 9, 5), with(pace("a", mps, 3, 60, 5), 16)}, 0, berth.Company{Mode: mps, AtOnce: 1}},
		"most fail by now":          {[]berth.Pace{pace("a", mps, 2, 9, 5), with(pace("a", mps, 3, 60, 4), 17)}, 0, berth.Company{Mode: mps, AtOnce: 1}},
		"it was known as the best":  {[]berth.Pace{pace("a", mps, 2, 60, 10), with(pace("a", mps, 24, 60, 5), 10_000)}, 0, berth.Company{Mode: mps, AtOnce: 3}},
		"and has a limit now":       {[]berth.Pace{pace("a", mps, 2, 30, 10), pace("a", mps, 24, 60, 5)}, 60, berth.Company{Mode: mps, AtOnce: 3}},
		"all have too little time":  {[]berth.Pace{pace("a", mps, 2, 30, 10), pace("a", mps, 3, 30, 9)}, 20, berth.Company{Mode: mps, AtOnce: 1}},
		"fewer fail":                {[]berth.Pace{pace("a", mps, 6, 30, 10), pace("a", mps, 8, 30, 10), failed(mps, 4, 1000)}, 0, berth.Company{Mode: slices, AtOnce: 6}},
		"a neighbour fails anyway":  {[]berth.Pace{pace("a", mps, 2, 9, 5), pace("a", mps, 3, 9, 4), other(mps, 2, 30), other(mps, 3, 30)}, 0, berth.Company{Mode: mps, AtOnce: 4}},
		"a neighbour fails beside three": {
			[]berth.Pace{pace("a", mps, 2, 9, 5), pace("a", mps, 3, 9, 4), pace("b", mps, 2, 9, 5), other(mps, 3, 30)}, 0, berth.Company{Mode: mps, AtOnce: 1},
		},
		"they fail by time slices": {
			[]berth.Pace{pace("a", mps, 1, 50, 6), pace("a", mps, 2, 50, 5), pace("a", mps, 3, 50, 5.2), failed(slices, 2, 3)},
			0,
			berth.Company{Mode: mps, AtOnce: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			q := parallelism.Question{Paces: c.paces, Modes: []berth.SharingMode{mps, slices}, Heavy: true, Left: 100}
			if c.limit > 0 {
				q.Limits = map[string]float64{"a": c.limit}
			}

			got := parallelism.Advise(q)
			require.Equal(t, c.want, got.Company, got.Why)
		})
	}
}

// A small number measured so far does not prevent more later: a short sweep proves
// nothing against a long one. A larger number measured without gain does.
func TestAdvise_Capped(t *testing.T) {
	t.Parallel()

	const mps, slices = berth.SharingMPS, berth.SharingTimeSlicing

	for name, c := range map[string]struct {
		paces []berth.Pace
		heavy bool
		left  int
		want  bool
	}{
		"a short sweep":           {[]berth.Pace{pace("a", mps, 3, 9, 5)}, false, 0, false},
		"more are tried":          {[]berth.Pace{pace("a", mps, 3, 9, 5)}, false, 50, false},
		"more did no more":        {[]berth.Pace{pace("a", mps, 3, 9, 5), pace("a", mps, 8, 9, 5)}, false, 0, true},
		"the other mode is tried": {[]berth.Pace{pace("a", mps, 2, 60, 5), pace("a", mps, 1, 60, 5.6), pace("a", mps, 3, 60, 5.4)}, true, 50, true},
		"it was better":           {[]berth.Pace{pace("a", mps, 2, 9, 5), pace("a", slices, 2, 9, 4)}, true, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := parallelism.Advise(parallelism.Question{Paces: c.paces, Modes: []berth.SharingMode{mps, slices}, Heavy: c.heavy, Left: c.left})
			require.NotZero(t, got.AtOnce)
			require.Equal(t, c.want, got.Capped, got.Why)
		})
	}
}

func pace(shape string, mode berth.SharingMode, atOnce, samples int, seconds float64) berth.Pace {
	return berth.Pace{ShapeKey: shape, Company: berth.Company{Mode: mode, AtOnce: atOnce}, Samples: samples, Mean: seconds, Variance: seconds * seconds / 400}
}

// Each case is the paces of some order of attempts, and the advice that
// follows.
func TestAdvise(t *testing.T) {
	t.Parallel()

	const mps, slices = berth.SharingMPS, berth.SharingTimeSlicing

	for name, c := range map[string]struct {
		paces []berth.Pace
		left  int
		now   berth.SharingMode
		heavy bool
		want  berth.Company
		tries bool
		most  int
	}{
		"nothing known":                       {nil, 1000, "", true, berth.Company{}, false, 0},
		"too little known":                    {[]berth.Pace{pace("a", mps, 8, 3, 5)}, 1000, "", true, berth.Company{}, false, 0},
		"one company, and little left":        {[]berth.Pace{pace("a", mps, 8, 8, 5)}, 10, mps, false, berth.Company{Mode: mps, AtOnce: 8}, false, 0},
		"one company, and much left":          {[]berth.Pace{pace("a", mps, 8, 8, 5)}, 24, mps, false, berth.Company{Mode: mps, AtOnce: 12}, true, 0},
		"more gain, and more may":             {[]berth.Pace{pace("a", mps, 8, 8, 5), pace("a", mps, 12, 8, 4.5)}, 32, mps, false, berth.Company{Mode: mps, AtOnce: 16}, true, 0},
		"more gain nothing":                   {[]berth.Pace{pace("a", mps, 8, 8, 5), pace("a", mps, 12, 8, 4.9)}, 31, mps, false, berth.Company{Mode: mps, AtOnce: 8}, false, 0},
		"more gain nothing, much left":        {[]berth.Pace{pace("a", mps, 8, 8, 5), pace("a", mps, 12, 8, 4.9)}, 32, mps, false, berth.Company{Mode: mps, AtOnce: 6}, true, 0},
		"fewer are as good":                   {[]berth.Pace{pace("a", mps, 6, 8, 5.1), pace("a", mps, 8, 8, 5)}, 20, mps, false, berth.Company{Mode: mps, AtOnce: 6}, false, 0},
		"the peak is known":                   {[]berth.Pace{pace("a", mps, 6, 8, 6), pace("a", mps, 8, 8, 5), pace("a", mps, 12, 8, 5.5)}, 1000, mps, false, berth.Company{Mode: mps, AtOnce: 8}, false, 0},
		"a full GPU has its other mode":       {[]berth.Pace{pace("a", mps, 1, 9, 6), pace("a", mps, 2, 9, 5), pace("a", mps, 3, 9, 5.2)}, 12, mps, true, berth.Company{Mode: slices, AtOnce: 2}, true, 0},
		"one alone is better than two by MPS": {[]berth.Pace{pace("a", mps, 1, 9, 5), pace("a", mps, 2, 9, 6)}, 12, mps, true, berth.Company{Mode: slices, AtOnce: 2}, true, 0},
		"and nothing says of two":             {[]berth.Pace{pace("a", mps, 1, 9, 5)}, 12, mps, true, berth.Company{Mode: mps, AtOnce: 1}, false, 1},
		"not for one that is small":           {[]berth.Pace{pace("a", mps, 1, 9, 6), pace("a", mps, 2, 9, 5), pace("a", mps, 3, 9, 5.2)}, 12, mps, false, berth.Company{Mode: mps, AtOnce: 2}, false, 0},
		"nor for little":                      {[]berth.Pace{pace("a", mps, 1, 9, 6), pace("a", mps, 2, 9, 5), pace("a", mps, 3, 9, 5.2)}, 11, mps, true, berth.Company{Mode: mps, AtOnce: 2}, false, 0},
		"time slices were better":             {[]berth.Pace{pace("a", mps, 2, 9, 5), pace("a", slices, 2, 9, 4.5)}, 3, "", true, berth.Company{Mode: slices, AtOnce: 2}, false, 0},
		"too little better to change":         {[]berth.Pace{pace("a", mps, 2, 9, 5), pace("a", slices, 2, 9, 4.5)}, 3, mps, true, berth.Company{Mode: mps, AtOnce: 2}, false, 0},
		"nothing else was to be had":          {[]berth.Pace{pace("a", slices, 6, 6, 5)}, 100, "", false, berth.Company{}, false, 0},
		"and is there":                        {[]berth.Pace{pace("a", slices, 6, 6, 5)}, 100, slices, false, berth.Company{}, false, 0},
		"the mode there was never measured":   {[]berth.Pace{pace("a", mps, 2, 9, 5)}, 11, slices, true, berth.Company{}, false, 0},
		"and much is left":                    {[]berth.Pace{pace("a", mps, 2, 9, 5)}, 12, slices, true, berth.Company{Mode: mps, AtOnce: 3}, true, 0},
		"better by chance":                    {[]berth.Pace{pace("a", mps, 2, 3, 5), pace("a", slices, 2, 3, 4.9)}, 3, "", true, berth.Company{Mode: mps, AtOnce: 2}, false, 0},
		"a long shape met a small company":    {[]berth.Pace{pace("a", mps, 8, 9, 5), pace("b", mps, 8, 9, 50), pace("a", mps, 12, 9, 4), pace("b", mps, 6, 9, 55)}, 3, mps, false, berth.Company{Mode: mps, AtOnce: 12}, false, 0},
		"no more fit":                         {[]berth.Pace{pace("a", mps, 1, 9, 6), pace("a", mps, 2, 9, 5)}, 12, mps, true, berth.Company{Mode: slices, AtOnce: 2}, true, 2},
		"nor into a small one":                {[]berth.Pace{pace("a", mps, 2, 9, 5)}, 7, mps, false, berth.Company{Mode: mps, AtOnce: 2}, false, 2},
		"one more fits, and counts as two":    {[]berth.Pace{pace("a", mps, 4, 9, 5)}, 12, mps, false, berth.Company{Mode: mps, AtOnce: 6}, true, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := parallelism.Advise(parallelism.Question{
				Paces: c.paces, Modes: []berth.SharingMode{mps, slices}, Now: c.now, Heavy: c.heavy, Left: c.left, Most: c.most,
			})
			require.Equal(t, c.want, got.Company, got.Why)
			require.Equal(t, c.tries, got.Trying)
		})
	}
}

// A mode that was measured to be better, and is not chosen, has its reason in the text.
func TestAdvise_SaysWhyTheOtherModeIsNotChosen(t *testing.T) {
	t.Parallel()

	const mps, slices = berth.SharingMPS, berth.SharingTimeSlicing

	scattered := pace("a", slices, 2, 4, 4)
	scattered.Variance = 4 // a standard error of 1 s beside a mean of 4 s

	modes := []berth.SharingMode{mps, slices}

	by := parallelism.Advise(parallelism.Question{Paces: []berth.Pace{pace("a", mps, 1, 9, 5), scattered}, Modes: modes, Most: 2})
	require.Equal(t, "1 by MPS; measured: 1 by MPS 100 % (9 attempts), 2 by time slices 125 % ± 33 (4 attempts)", by.Why)

	kept := parallelism.Advise(parallelism.Question{
		Paces: []berth.Pace{pace("a", mps, 2, 9, 5), pace("a", slices, 2, 9, 4)}, Modes: modes, Now: mps, Left: 3,
	})
	require.Equal(t, "2 by MPS; measured: 2 by MPS 100 % (9 attempts), 2 by time slices 125 % ± 4 (9 attempts); "+
		"the mode stays, as to run the GPU empty costs more than what waits would gain", kept.Why)
}
