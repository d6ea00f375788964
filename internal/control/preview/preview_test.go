package preview_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/preview"
	"github.com/berthml/berth/internal/sweepfile/spec"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	mib = 1 << 20
	gib = 1 << 30
)

const base = `
name: digits
image: berth-examples/digits:1
command: [python3, train.py, "--lr={{lr}}", "--width={{width}}"]
parameters:
  - {name: lr, values: [0.001, 0.01, 0.1]}
  - {name: width, values: [32, 64], memory: true}
search: {algorithm: grid}
`

func decode(t require.TestingT, more string) berth.Spec {
	s, err := spec.Decode([]byte(base+more), "")
	require.NoError(t, err)

	return s
}

func host(name string, cores, memory int64) berth.Host {
	return berth.Host{ID: name, Name: name, State: berth.HostReady, CPUMilli: cores * 1000, MemoryBytes: memory, MemoryFreeBytes: memory}
}

// see previews a spec on hosts, with the first measured shapes as given.
func see(t *testing.T, s berth.Spec, hosts []berth.Host, measured ...berth.Footprint) preview.Preview {
	t.Helper()

	sketch, err := preview.Enumerate(s, "sha256:1")
	require.NoError(t, err)

	known := map[string]berth.Footprints{}
	for i, f := range measured {
		known[sketch.Keys()[i]] = berth.Footprints{berth.ClassCPU: f}
	}

	return sketch.Preview(hosts, known)
}

func full(peak int64, took time.Duration) berth.Footprint {
	return berth.Footprint{Source: berth.FootprintFull, Samples: 3, MemoryPeakBytes: peak, CPUMilli: 1000, Duration: berth.Duration(took)}
}

func codes(problems []berth.Problem) []string {
	var list []string
	for _, p := range problems {
		list = append(list, p.Code)
	}

	return list
}

func TestNothingMeasured(t *testing.T) {
	t.Parallel()

	p := see(t, decode(t, ""), []berth.Host{host("a", 2, 32*gib)})

	require.Equal(t, 6, p.Trials)
	require.True(t, p.Complete)
	require.Len(t, p.Shapes, 2)
	require.Equal(t, 3, p.Shapes[0].Trials)
	require.Equal(t, preview.SizedByUnmeasured, p.Shapes[0].SizedBy)
	require.Equal(t, 2, p.ProbesNeeded)
	require.Equal(t, 2, p.AtOnce)
	require.Equal(t, 3, p.Waves)
	require.Nil(t, p.Duration)
	require.Equal(t, "2 at once: host a: needs 1 cores, 0 free", p.Why)
	require.Empty(t, p.Warnings)
}

func TestMeasured(t *testing.T) {
	t.Parallel()

	p := see(t, decode(t, ""), []berth.Host{host("a", 8, 2*gib)}, full(656*mib, 10*time.Second), full(656*mib, 20*time.Second))

	require.Equal(t, 2, p.ProbesCached)
	require.Equal(t, preview.SizedByMeasured, p.Shapes[0].SizedBy)

	predicted := full(656*mib, 10*time.Second)
	predicted.Source, predicted.Samples = berth.FootprintPredicted, 0
	guessed := see(t, decode(t, ""), []berth.Host{host("a", 8, 2*gib)}, predicted, full(656*mib, 20*time.Second))
	require.Equal(t, preview.SizedByPredicted, guessed.Shapes[0].SizedBy)
	require.EqualValues(t, 704*mib, p.Shapes[0].Demand.MemoryBytes)
	require.Equal(t, 2, p.AtOnce)
	require.Equal(t, "2 at once: host a: needs 704 MiB of memory, 640 MiB free", p.Why)
	require.Equal(t, &preview.Duration{Min: 46500 * time.Millisecond, Max: 61500 * time.Millisecond}, p.Duration)
}

// Stages that have to run take their time before the trials, and are measured as trials are.
func TestStagesCount(t *testing.T) {
	t.Parallel()

	s, hosts := decode(t, "stages: [{name: base, parameters: [width]}]\n"), []berth.Host{host("a", 8, 2*gib)}
	short, long := full(656*mib, 10*time.Second), full(656*mib, 20*time.Second)

	p := see(t, s, hosts, short, long)
	require.Nil(t, p.Duration, "no stage was measured")
	require.Equal(t, []int{2, 2}, []int{p.ProbesNeeded, p.ProbesCached})

	// Shapes of stages are no shapes of trials: 2 of 6 trials have a shape of their own, not 4.
	require.NotContains(t, codes(see(t, s, hosts).Warnings), preview.CodeManyShapes)

	p = see(t, s, hosts, short, long, full(656*mib, time.Hour), full(656*mib, time.Hour))
	require.Equal(t, []int{0, 4}, []int{p.ProbesNeeded, p.ProbesCached})
	require.Equal(t, &preview.Duration{Min: time.Hour + 47*time.Second, Max: time.Hour + 62*time.Second}, p.Duration)
}

func TestWhyNoMore(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		spec   string
		hosts  []berth.Host
		atOnce int
		why    string
		codes  []string
	}{
		"no machine":  {"", nil, 0, "none can run: no machine is connected; start `berth worker` on one", []string{preview.CodeNoHost}},
		"two":         {"", []berth.Host{host("a", 2, 32*gib), host("b", 1, 32*gib)}, 3, "3 at once: 2 on host a: needs 1 cores, 0 free; 1 on host b: needs 1 cores, 0 free", nil},
		"all":         {"", []berth.Host{host("a", 64, 64*gib)}, 6, "6 at once: these are all the trials", nil},
		"max":         {"limits: {max_parallel: 1}", []berth.Host{host("a", 2, 32*gib)}, 1, "1 at once: the sweep's max_parallel is 1", nil},
		"more than":   {"limits: {max_parallel: 5}", []berth.Host{host("a", 2, 32*gib)}, 2, "2 at once: host a: needs 1 cores, 0 free", []string{preview.CodeMaxParallel}},
		"half a core": {"resources: {cpus: 0.5}", []berth.Host{host("a", 1, 32*gib)}, 2, "2 at once: host a: needs 0.5 cores, 0 free", nil},
		"off":         {"probe: {mode: off}\nresources: {memory: 1GiB}", []berth.Host{host("a", 64, 2*gib)}, 2, "2 at once: host a: needs 1,024 MiB of memory, 0 bytes free", []string{preview.CodeProbeOff}},
	} {
		p := see(t, decode(t, test.spec), test.hosts)
		require.Equal(t, test.atOnce, p.AtOnce, name)
		require.Equal(t, test.why, p.Why, name)
		require.ElementsMatch(t, test.codes, codes(p.Warnings), name)
	}
}

func TestBusyAndForeign(t *testing.T) {
	t.Parallel()

	busy := host("a", 4, 32*gib)
	busy.CPUMilliReserved, busy.MemoryReservedBytes, busy.Attempts = 4000, 30*gib, 4 // ours: they end
	require.Equal(t, 4, see(t, decode(t, ""), []berth.Host{busy}).AtOnce)

	busy.MemoryFreeBytes = 5 * gib // others': they may stay
	p := see(t, decode(t, ""), []berth.Host{busy})
	require.Equal(t, 1, p.AtOnce)
	require.Equal(t, "1 at once: host a: needs 4,096 MiB of memory, 1,024 MiB free beside what programs outside Berth use", p.Why)

	busy.State = berth.HostDraining
	require.Zero(t, see(t, decode(t, ""), []berth.Host{busy}).AtOnce)
}

// A host that takes nothing says why, also when other hosts or max_parallel leave nothing for it.
func TestHostsThatTakeNothing(t *testing.T) {
	t.Parallel()

	drained, lost, small := host("b", 64, 64*gib), host("c", 64, 64*gib), host("d", 64, gib)
	drained.State, lost.State = berth.HostDraining, berth.HostLost

	for more, rest := range map[string]preview.HostFit{
		"":                          {Binds: "trials", Why: "these are all the trials"},
		"limits: {max_parallel: 2}": {Binds: "sweep", Why: "the sweep's max_parallel is 2"},
	} {
		p := see(t, decode(t, more), []berth.Host{host("a", 64, 64*gib), drained, lost, small, host("e", 1, 4*gib)})

		for i, want := range []preview.HostFit{
			rest,
			{Binds: "state", Why: "host b: drained; `berth host ready b` lets it take attempts"},
			{Binds: "state", Why: "host c: its worker does not answer; the trial waits for it to come back"},
			{Binds: "memory", Why: "host d: needs 4,096 MiB of memory, 1,024 MiB there at all"},
			rest,
		} {
			require.Equal(t, want.Binds, p.Hosts[i].Binds, p.Hosts[i].Name)
			require.Equal(t, want.Why, p.Hosts[i].Why)
		}
	}
}

// Large ones end at the memory, small ones at the cores: these bind, as more memory would let no more run.
func TestWhatBindsIsWhatKeepsTheSmallestOut(t *testing.T) {
	t.Parallel()

	s, err := spec.Decode([]byte(`
name: digits
image: berth-examples/digits:1
command: [python3, train.py, "--lr={{lr}}", "--width={{width}}"]
parameters:
  - {name: lr, type: float, min: 0.001, max: 0.1, count: 20, memory: false}
  - {name: width, values: [32, 64], memory: true}
search: {algorithm: grid}
`), "")
	require.NoError(t, err)

	p := see(t, s, []berth.Host{host("a", 8, 16*gib)}, full(50*mib, time.Second), full(4*gib, time.Minute))
	require.Equal(t, 8, p.AtOnce)
	require.Equal(t, string(berth.DimensionCPU), p.Hosts[0].Binds, p.Why)
}

// For any number of trials and machines, a sweep has a bounded number of open trials, and the duration and
// the list of warnings are finite.
func TestLargeSweeps(t *testing.T) {
	t.Parallel()

	s, err := spec.Decode([]byte(`
name: digits
image: berth-examples/digits:1
command: [python3, train.py, "--lr={{lr}}"]
parameters: [{name: lr, type: int, min: 1, max: 3000, step: 1, memory: true}]
search: {algorithm: grid}
`), "")
	require.NoError(t, err)

	all := make([]berth.Footprint, preview.MaxEnumerated)
	for i := range all {
		all[i] = full(100*mib, 100*24*time.Hour)
	}

	hosts := make([]berth.Host, 10)
	for i := range hosts {
		hosts[i] = host("h"+strconv.Itoa(i), 64, 512*gib)
	}

	p := see(t, s, hosts, all...)
	require.Equal(t, berth.MaxOpenTrials, p.AtOnce)
	require.Equal(t, "500 at once: a sweep keeps 500 trials open at most", p.Why)
	require.Equal(t, 6, p.Waves)

	s.Limits.MaxParallel = 600
	p = see(t, s, hosts, all...)
	require.Contains(t, p.Warnings, berth.Problem{
		Code: preview.CodeMaxParallel, Pointer: "/limits/max_parallel",
		Message: "600 at once are more than can run: 500 at once: a sweep keeps 500 trials open at most",
	})

	s.Limits.MaxParallel = 1
	for i := range all {
		all[i] = full(80*gib+int64(i)*gib, 365*24*time.Hour)
	}

	p = see(t, s, hosts[:1], all...)
	require.Equal(t, &preview.Duration{Min: 100 * 365 * 24 * time.Hour, Max: 100 * 365 * 24 * time.Hour}, p.Duration, "3,000 years are more than a Duration holds")
	require.Equal(t, []berth.Problem{{
		Code: preview.CodeTooBig, Pointer: "/parameters",
		Message: "1567 of 2000 trials need more memory than any machine has (524,288 MiB): they will be infeasible; those with lr=2000 need 2,128,896 MiB",
	}}, slices.DeleteFunc(p.Warnings, func(w berth.Problem) bool { return w.Code != preview.CodeTooBig }))
}

func TestWarnings(t *testing.T) {
	t.Parallel()

	big := see(t, decode(t, ""), []berth.Host{host("a", 2, 2*gib)}, full(600*mib, time.Second), full(8*gib, time.Second))
	require.Equal(t, []string{preview.CodeTooBig}, codes(big.Warnings))
	require.Contains(t, big.Warnings[0].Message, "width=64")

	late := see(t, decode(t, "limits: {max_duration: 30s, max_trial_duration: 30s}\nprobe: {max_duration: 10s}"),
		[]berth.Host{host("a", 2, 4*gib)}, full(600*mib, 20*time.Second), full(600*mib, 20*time.Second))
	require.Equal(t, []string{preview.CodeDuration}, codes(late.Warnings))
}

// TestPlannedKeepsToForbid promises no more trials than there are, or than limits.max_trials.
func TestPlannedKeepsToForbid(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		parameters string
		trials     int
		codes      []string
	}{
		"all of a grid":      {"[{name: x, values: [1, 2, 3, 4, 5, 6]}]\nsearch: {algorithm: grid}", 6, []string{"W_MEMORY_MARKS", "W_MANY_SHAPES"}},
		"a part of a grid":   {"[{name: x, min: 1, max: 1000}]\nsearch: {algorithm: grid}", 300, []string{"W_MEMORY_MARKS", "W_MANY_SHAPES"}},
		"finite and small":   {"[{name: x, min: 1, max: 1000}]\nforbid: [x > 7]", 7, []string{"W_MEMORY_MARKS", "W_MANY_SHAPES"}},
		"without end":        {"[{name: x, min: 0.5, max: 1}]\nforbid: [x < 0.9]", 300, nil},
		"nothing is left":    {"[{name: x, min: 0.5, max: 1}]\nforbid: [x < 0.999999999]", 0, []string{"W_TIGHT_FORBID"}},
		"next to nothing":    {"[{name: x, min: 0.0, max: 1}]\nforbid: [x < 0.99999]", 0, []string{"W_TIGHT_FORBID"}},
		"little, but enough": {"[{name: x, min: 0.0, max: 1}]\nforbid: [x < 0.999]", 300, nil},
	} {
		s, err := spec.Decode([]byte("name: a\nimage: b\ncommand: [train, \"{{x}}\"]\nlimits: {max_trials: 300}\nparameters: "+test.parameters), "")
		require.NoError(t, err, name)

		p := see(t, s, []berth.Host{host("a", 4, 32*gib)})
		require.Equal(t, test.trials, p.Trials, name)
		require.Equal(t, test.trials, preview.Planned(s), name)
		require.Equal(t, test.codes, codes(p.Warnings), name)

		roomy := see(t, s, []berth.Host{host("a", 1000, 10_000*gib)})
		require.Equal(t, roomy.Complete, !strings.HasSuffix(roomy.Why, "these are all the trials that were found"), "%s: %s", name, roomy.Why)
	}
}

// TestEveryPreviewAddsUp holds for any machine and any footprint.
func TestEveryPreviewAddsUp(t *testing.T) {
	t.Parallel()

	s := decode(t, "")

	rapid.Check(t, func(rt *rapid.T) {
		var hosts []berth.Host
		for i := range rapid.IntRange(0, 3).Draw(rt, "hosts") {
			hosts = append(hosts, host(string(rune('a'+i)), rapid.Int64Range(1, 8).Draw(rt, "cores"), rapid.Int64Range(gib, 64*gib).Draw(rt, "memory")))
		}

		sketch, err := preview.Enumerate(s, "sha256:1")
		require.NoError(rt, err)

		known := map[string]berth.Footprints{}
		for _, key := range sketch.Keys() {
			if rapid.Bool().Draw(rt, "known") {
				took := time.Duration(rapid.Int64Range(1, math.MaxInt32).Draw(rt, "took"))
				known[key] = berth.Footprints{berth.ClassCPU: full(rapid.Int64Range(mib, 80*gib).Draw(rt, "peak"), took)}
			}
		}

		p := sketch.Preview(hosts, known)
		require.Equal(rt, len(p.Shapes), p.ProbesCached+p.ProbesNeeded)
		require.Len(rt, p.Hosts, len(hosts))
		require.NotEmpty(rt, p.Why)

		onHosts := 0
		for _, h := range p.Hosts {
			onHosts += h.AtOnce
		}

		require.Equal(rt, p.AtOnce, onHosts)
		require.Equal(rt, p.AtOnce > 0, p.Waves > 0)

		if p.Duration != nil {
			require.LessOrEqual(rt, p.Duration.Min, p.Duration.Max)
		}
	})
}
