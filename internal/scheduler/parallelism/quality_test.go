//go:build nightly

package parallelism_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

const (
	mixes       = 50
	sweepTrials = 400
)

var seeds = flag.Int("seeds", 2, "orders of trials for each mix of TestAdvise_ComesNearTheBest")

// What Berth decides while it measures, from the first trial to the last, is nearly as
// fast as the best that could have been fixed beforehand: of all modes and numbers of
// attempts, on simulated GPUs beside 8, 16 or 32 cores, for mixes of one to three kinds
// of jobs.
func TestAdvise_ComesNearTheBest(t *testing.T) { //nolint:tparallel // the group waits for its own, which are parallel
	t.Parallel()

	var (
		mu    sync.Mutex
		parts []float64
		rule  []float64
	)

	t.Run("mixes", func(t *testing.T) {
		for n := range mixes {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()

				r := rand.New(rand.NewPCG(uint64(n), 1)) //nolint:gosec // G115: small and positive
				s := scene{kinds: drawKinds(r), cores: []float64{8, 16, 32}[r.IntN(3)], solved: make(map[string][]float64)}
				best, what := s.best()
				ruled := best / s.fleet(1).run(byRule, math.Inf(1))

				own := make([]float64, *seeds)
				for seed := range *seeds {
					own[seed] = best / s.fleet(uint64(seed+1)).run(berths, math.Inf(1))
				}

				t.Logf("%d kinds, %g cores: best %v; the rule %.3f of that, Berth %.3f (%.3f to %.3f)", len(s.kinds), s.cores, what, ruled, mean(own), slices.Min(own), slices.Max(own))
				mu.Lock()
				defer mu.Unlock()

				parts, rule = append(parts, own...), append(rule, ruled)
			})
		}
	})

	t.Logf("Berth %.3f in the mean, %.3f at least; the rule alone %.3f, %.3f", mean(parts), slices.Min(parts), mean(rule), slices.Min(rule))
	require.Len(t, parts, mixes*(*seeds))
	require.Greater(t, mean(parts), 0.93)
	require.Greater(t, slices.Min(parts), 0.80)
}

func mean(x []float64) (sum float64) {
	for _, v := range x {
		sum += v / float64(len(x))
	}

	return sum
}

// scene is a mix on a machine.
type scene struct {
	kinds  []kind
	cores  float64
	solved map[string][]float64
}

// best is how long the sweep takes with the best that can be fixed beforehand.
func (s scene) best() (seconds float64, what berth.Company) {
	seconds = math.Inf(1)

	for _, mode := range modes {
		for _, n := range berth.CompanySizes() {
			if took := s.fleet(1).run(fixed(mode, n), seconds); n <= 48 && took < seconds {
				seconds, what = took, berth.Company{Mode: mode, AtOnce: n}
			}
		}
	}

	return seconds, what
}

// fleet has a sweep of as many trials of each kind, in an order and with work that
// scatters by 5 %, as the seed says.
func (s scene) fleet(seed uint64) *fleet {
	f := &fleet{kinds: s.kinds, cores: s.cores, paces: make(map[string][]berth.Pace), mode: berth.SharingMPS, solved: s.solved}
	r := rand.New(rand.NewPCG(seed, 2))
	total := 0.0

	for i := range sweepTrials {
		f.queue = append(f.queue, i%len(s.kinds))
		f.work = append(f.work, math.Exp(0.05*r.NormFloat64()))
		total += f.work[i]
	}

	for i := range f.work { // no seed has more to do than another
		f.work[i] *= sweepTrials / total
	}

	r.Shuffle(len(f.queue), func(i, j int) { f.queue[i], f.queue[j] = f.queue[j], f.queue[i] })

	return f
}

// drawKinds draws jobs: bound by launching or by input, mixed, and some that fill a GPU.
func drawKinds(r *rand.Rand) []kind {
	kinds := make([]kind, 1+r.IntN(3))
	for i := range kinds {
		cpu, gpu, fills := within(r, 1, 20), within(r, 0.1, 2), 0.05+0.4*r.Float64()

		switch r.IntN(3) {
		case 1:
			cpu, gpu, fills = within(r, 1, 10), within(r, 1, 10), 0.1+0.9*r.Float64()
		case 2:
			cpu, gpu, fills = within(r, 0.3, 3), within(r, 5, 40), 0.5+0.5*r.Float64()
		}

		threads := 1 + 1.5*r.Float64()
		step := cpu/threads + gpu
		kinds[i] = kind{
			name: string(rune('a' + i)), cores: cpu / step, busy: gpu / step, fills: fills, gaps: within(r, 0.3, 2),
			seconds: within(r, 10, 40), memory: within(r, 0.006, 0.05),
		}
	}

	return kinds
}

// within draws evenly by orders of magnitude.
func within(r *rand.Rand, least, most float64) float64 {
	return least * math.Pow(most/least, r.Float64())
}
