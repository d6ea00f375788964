package runtrial

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/scheduler/memory"
	"github.com/berthml/berth/internal/scheduler/packing"
	"github.com/berthml/berth/internal/search"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// sweepFile draws a sweep file: values below 0, empty texts, conditions,
// derived values and placeholders of all of them. Many are refused, most for
// one reason only.
func sweepFile(t *rapid.T) string {
	pick := func(name string, texts ...string) string { return rapid.SampledFrom(texts).Draw(t, name) }
	odd := func(name, usual string, seldom ...string) string { // a seldom one of ten
		if rapid.IntRange(0, 9).Draw(t, name+" is odd") > 0 {
			return usual
		}

		return pick(name, seldom...)
	}

	parameters := []string{odd("o", "{name: o, values: [a, b]}", "{name: o, values: ['', -b, c]}", "{name: o, values: [0, -0.0, 1]}")}

	for _, name := range []string{"p", "q"} {
		low := rapid.IntRange(-1, 3).Draw(t, name+" min")
		span := rapid.IntRange(1, 5).Draw(t, name+" span")
		parameters = append(parameters, fmt.Sprintf("{name: %s, min: %d%s, max: %d%s%s}", name, low, pick(name+" type", "", ".0"),
			low+span, pick(name+" more", "", ", step: 1", ", count: 3", ", memory: false", ", memory: true"), odd(name+" when", "", ", when: {o: a}")))
	}

	parameters = append(parameters,
		fmt.Sprintf("{name: f, value: %s%s}", odd("f", "1", "-1", "''", "-x", "true", "1e300", "-0.0"), odd("f when", "", ", when: {o: [a, b]}")),
		fmt.Sprintf("{name: d, expr: '%s'}", pick("d", "p - q", "p - 2", "max(0, p - q)", "p / q", "p ** q", "abs(p) * 1000 - 1")))

	command := []string{odd("program", "train", "'{{o}}'", "'bin/{{o}}'", "'{{f}}{{o}}'", "'./{{p}}'", "''")}
	for range rapid.IntRange(0, 3).Draw(t, "elements") {
		name := pick("name", "o", "p", "q", "f", "d", "d")
		element := odd("element", pick("form", "{{%s}}", "--x={{%s}}"), "x{{%s}}", "{{o}}{{%s}}", "{{f}}{{%s}}", "-{{%s}}", "{{%s}}{{o}}")
		command = append(command, fmt.Sprintf("'"+element+"'", name))
	}

	return strings.Join([]string{
		"name: accepted", "image: a:1",
		"command: [" + strings.Join(command, ", ") + "]",
		"parameters: [" + strings.Join(parameters, ", ") + "]",
		"forbid: " + odd("forbid", "[]", "['d < 0']", "['p > q']", "['p < 100']"),
		"enqueue: " + odd("enqueue", "[]", "[{o: a, p: 1, q: 2}]", "[{o: c, p: -1, q: 1}]"),
		"search: {algorithm: " + odd("algorithm", "random", "grid", "list") + "}",
		"limits: {max_trials: 30}",
		"workdir: " + odd("workdir", "/app", "", "app", "/app/../x", "/"),
		"environment_variables: " + odd("environment", "{}", "{A: ''}", "{PATH: x}", "{TRIAL_ID: x}"),
		"resources: {memory: " + odd("memory", "auto", "16MiB", "1B", "3GiB", "64GiB") + ", cpus: " + odd("cpus", "auto", "0.01", "1.5", "64") +
			", shm_size: " + odd("shm", "auto", "4096", "20MiB") + ", device: " + odd("device", "auto", "cpu") + "}",
		"probe: {mode: " + odd("probe", "auto", "full", "off") + "}",
	}, "\n")
}

// TestAcceptedIsRunnable: every trial of every sweep file that is accepted can
// be drawn, stored, reserved, placed and launched. All others are refused with
// a code, a place and what to do.
func TestAcceptedIsRunnable(t *testing.T) {
	t.Parallel()

	rig := setup(t)
	accepted := 0

	rapid.Check(t, func(t *rapid.T) {
		s, err := spec.Decode([]byte(sweepFile(t)), "")
		if err != nil {
			requireExplained(t, err)

			return
		}

		const room, cores = 16 << 30, 8000
		if len(spec.CheckCapacity(s, spec.Capacity{Hosts: []spec.HostCapacity{{Name: "a", MemoryBytes: room, CPUMilli: cores}}})) > 0 {
			return
		}

		searcher, err := search.New(s)
		require.NoError(t, err)

		trials, end, err := searcher.Next(berth.Tried{}, 1000)
		require.NoError(t, err)
		require.True(t, len(trials) > 0 || end == search.EndDraws, "what forbid leaves of numbers without end is not known")

		accepted++

		for i, trial := range trials {
			host := berth.Host{ID: "a", Name: "a", State: berth.HostReady, CPUMilli: cores, MemoryBytes: room, MemoryFreeBytes: room}
			demand, _ := memory.Size(memory.Ask{Resources: s.Resources}, nil, []berth.Host{host})
			decided := packing.Decide([]berth.Host{host}, nil, []packing.Request{{AttemptID: "a", Number: 1, Demands: berth.Demands{berth.ClassCPU: demand}}})
			require.True(t, decided[0].Placed, "%v", decided[0].Rejections(0))

			requireLaunch(t, rig, s, trial.Values, i+1, demand)
		}
	})

	require.Positive(t, accepted, "no drawn file was accepted, so nothing was tested")
}

func requireExplained(t *rapid.T, err error) {
	var refused *berth.SpecError

	require.ErrorAs(t, err, &refused)
	require.NotEmpty(t, refused.Problems)

	for _, p := range refused.Problems {
		require.Regexp(t, `^E_[A-Z_]+$`, p.Code)
		require.Regexp(t, `^/`, p.Pointer, "%v", p)
		require.NotEmpty(t, p.Message)
	}
}

// requireLaunch makes the container's description as a worker does.
func requireLaunch(t *rapid.T, rig *rig, s berth.Spec, a berth.Assignment, number int, demand berth.Demand) {
	who := rig.who(t)
	who.Spec, who.Trial.Params, who.Trial.Number, who.Attempt.Demand = s, a, number, demand
	who.Trial.ShapeKey = search.NewShapes(s, imageID, berth.StageMain).Of(a).Key()

	data, err := json.Marshal(a)
	require.NoError(t, err)

	var stored berth.Assignment

	require.NoError(t, json.Unmarshal(data, &stored))
	require.Equal(t, a, stored, "what is stored comes back")

	l, err := (&run{Executor: rig.Executor, order: rig.order(), who: who, dirs: rig.dirs(who)}).newLaunch(t.Context()) // prepare would return the launch that it kept
	require.NoError(t, err, a.Key())
	require.NoError(t, docker.CheckLaunch(l))
	require.NotEmpty(t, l.Command[0])

	literal := map[string]bool{} // what the user wrote with a dash
	for _, element := range s.Command {
		literal[element[:min(len(element), 1)]] = true
	}

	for _, text := range l.Command {
		require.True(t, !strings.HasPrefix(text, "-") || literal["-"], "%q in %s", text, a.Key())
	}
}
