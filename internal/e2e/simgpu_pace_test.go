//go:build integration

package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// The number of trials that share a GPU, and the mode, follow from measured paces of
// ended trials.
func TestSimGPU_Climbs(t *testing.T) {
	t.Parallel()

	s := startGPUs(t, "1x80GiB")

	s.sceneMoreAtOnce()
	s.sceneSmallPair()
}

// By the rule two trials that keep a GPU more than half busy share it. With enough
// waiting trials the placer tries more, and the advice reports the result.
func (s *stack) sceneMoreAtOnce() {
	t := s.t
	t.Helper()

	// The duration of a trial is not part of its shape: a long one measures its memory.
	file := func(n, steps int) string {
		return training("--mib 200 --cpu 0s --gpu 25ms --gaps 5 --sm 0.65 --steps {{steps}}",
			fmt.Sprintf("{name: steps, values: [%d], memory: false}, {name: shape, values: [1], memory: true}, %s", steps, seeds(n)), gpuResources())
	}

	s.requireTrained(s.submit(file(1, 200)), 1)

	id := s.submit(file(44, 20))
	seen := s.watch(0, id)
	s.requireTrained(id, 44)
	s.requireWithinCards(id)

	rule, most := mostAtOnce(seen, false), mostAtOnce(seen, true)
	t.Logf("%d at once by the rule, %d by what was measured", rule, most)
	require.Positive(t, rule)
	require.True(t, slices.ContainsFunc(seen, func(one sight) bool {
		return one.advice.Trying && one.advice.AtOnce > 2 && one.most >= 3
	}), "more are tried than two that fill the GPU")
	require.GreaterOrEqual(t, most, rule) // on a busy machine a trial keeps the GPU less busy, and the rule lets more come

	seen = slices.DeleteFunc(seen, func(one sight) bool { return one.advice.AtOnce == 0 }) // before, and once nothing waits
	last := seen[len(seen)-1].advice
	require.Equal(t, "mps", last.Mode)
	require.Regexp(t, `measured: \d+ by MPS 100 % \(\d+ attempts\), .*\d+ by MPS \d+ %( ± \d+)? \(\d+ attempts\)`, last.Why)
}

// Two small shapes never run the GPU empty for another mode, and no more of them are
// tried than their sweep allows.
func (s *stack) sceneSmallPair() {
	t := s.t
	t.Helper()

	id := s.submit(training("--mib 200 --cpu 0s --gpu 50ms --sm 0.1 --steps {{steps}}", "{name: steps, values: [6, 12], memory: true}, "+seeds(10),
		gpuResources(), "limits: {max_parallel: 3}"))
	seen := s.watch(0, id)
	s.requireTrained(id, 20)
	s.requireWithinCards(id)

	require.Equal(t, map[string]int{"Simulated GPU 80 GiB (MPS)": 20}, byClass(s.attempts(id)))
	require.LessOrEqual(t, max(mostAtOnce(seen, true), mostAtOnce(seen, false)), 3)

	for _, one := range seen {
		require.NotEqual(t, "time_slicing", one.advice.Mode, one.advice.Why)
	}
}

// mostAtOnce is the largest number of attempts that a card had with advice, or without.
func mostAtOnce(seen []sight, advised bool) (most int) {
	for _, one := range seen {
		if (one.advice.AtOnce > 0) == advised {
			most = max(most, one.most)
		}
	}

	return most
}

// Where one shape fills the GPU with long kernels, and another has many small kernels, MPS
// hurts: Berth drains the GPU, tries the other mode, and the advice follows both
// measurements.
func TestSimGPU_OtherMode(t *testing.T) {
	t.Parallel()

	s := startGPUs(t, "1x8GiB")

	// One that fills the card, and a small one beside it, is all that the card holds.
	file := func(n, steps int, flags, memory string) string {
		return training("--mib 200 "+flags+" --steps {{steps}}",
			fmt.Sprintf("{name: steps, values: [%d], memory: false}, {name: shape, values: [1], memory: true}, %s", steps, seeds(n)),
			gpuResources("gpu_memory: "+memory))
	}
	fills := func(n, steps int) string {
		return file(n, steps, "--cpu 0s --gpu 50ms --gaps 2 --sm 0.95 --bus 1", "4GiB")
	}
	small := func(n, steps int) string {
		return file(n, steps, "--cpu 4ms --gpu 4ms --gaps 8 --sm 1 --bus 0.1", "2560MiB")
	}

	s.requireTrained(s.submit(fills(1, 80)), 1)
	s.requireTrained(s.submit(small(1, 500)), 1)

	long, short := s.submit(fills(18, 20)), s.submit(small(18, 40))
	seen := s.watch(0, long, short)
	s.requireTrained(long, 18)
	s.requireTrained(short, 18)
	s.requireWithinCards(long, short)

	attempts := slices.Concat(s.attempts(long), s.attempts(short))
	t.Logf("attempts by class: %v", byClass(attempts))
	require.Len(t, byClass(attempts), 2, "both modes were tried")
	requireOneModeAtATime(t, attempts)

	tried := slices.IndexFunc(seen, func(one sight) bool { return one.advice.Mode == "time_slicing" && one.advice.Trying })
	require.GreaterOrEqual(t, tried, 0)

	// The advice then has the figures of both and follows them, unless chance or the cost of
	// a change explains the difference: on a machine without spare cores both have a say.
	after := slices.IndexFunc(seen[tried:], func(one sight) bool {
		best := bestByMode(t, one.advice.Why)

		return !one.advice.Trying && best["MPS"].percent > 0 && best["time slices"].percent > 0
	})
	require.GreaterOrEqual(t, after, 0, "nothing was decided")

	advice := seen[tried+after].advice
	best := bestByMode(t, advice.Why)
	t.Logf("in the end %s: %v", advice.Mode, best)

	chosen, other := best["MPS"], best["time slices"]
	if advice.Mode == "time_slicing" {
		chosen, other = other, chosen
	}

	const gain = 2 // per cent that the other mode has to gain, chance apart

	if !strings.Contains(advice.Why, "the mode stays") {
		require.LessOrEqual(t, other.percent, chosen.percent+max(gain, other.chance+chosen.chance)+1, advice.Why)
	}
}

// measured is a company's figure in an advice's reasons, and the error by chance, in
// per cent.
type measured struct{ percent, chance int }

var figure = regexp.MustCompile(`\d+ by (MPS|time slices) (\d+) %(?: ± (\d+))? \(\d+ attempts\)`)

// bestByMode is the best figure of each mode in an advice's reasons.
func bestByMode(t testing.TB, why string) map[string]measured {
	t.Helper()

	best := make(map[string]measured)

	for _, m := range figure.FindAllStringSubmatch(why, -1) {
		percent, err := strconv.Atoi(m[2])
		require.NoError(t, err)

		chance, _ := strconv.Atoi(m[3]) // the baseline of the comparison has none

		if percent > best[m[1]].percent {
			best[m[1]] = measured{percent: percent, chance: chance}
		}
	}

	return best
}

// requireOneModeAtATime checks that attempts of one card that ran at once shared it
// in one mode.
func requireOneModeAtATime(t testing.TB, attempts []client.Attempt) {
	t.Helper()

	for _, a := range attempts {
		for _, b := range attempts {
			if a.PlacedAt.Before(*b.FinishedAt) && b.PlacedAt.Before(*a.FinishedAt) {
				require.Equal(t, a.DeviceClass, b.DeviceClass, "%s and %s", a.ID, b.ID)
			}
		}
	}
}
