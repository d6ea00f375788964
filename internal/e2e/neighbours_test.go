//go:build integration

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// neighbour is something that goes wrong beside a sweep that has no part in it.
type neighbour struct {
	name string
	// the sweep's file; empty = one with its own shape
	innocent string
	// forget makes the innocent sweep measure its shape each time.
	forget bool
	// goWrong returns when the fault has happened, with a check of the outcome
	// for the end of the innocent sweep.
	goWrong func(c *cluster) (outcome func())
}

const (
	innocentTrials = 12
	roomy          = "resources: {memory: 64MiB, cpus: 0.25}\nprobe: {mode: 'off'}"
	// waves bounds the innocent sweep below a host's capacity, so that its
	// neighbour's rightful share costs it nothing.
	waves = "limits: {max_parallel: 3}"
)

// sizes is a sweep that takes each of the given MiB for 3 s, times times. With
// shaped, each size is a shape; else all sweeps of sizes have one shape.
func sizes(name string, shaped bool, mib []int, times int, extra ...string) string {
	var each []int
	for n := range times {
		each = append(each, 3000+n)
	}

	return "name: " + name + "\nimage: berth-test/busy:1\ncommand: [/busy, train, '{{ms}}', '0.5', '{{mib}}']\n" +
		fmt.Sprintf("parameters: [{name: mib, values: [%s], memory: %t}, {name: ms, values: [%s]}, {name: shape, values: [1], memory: true}]\n",
			list(mib), shaped, list(each)) +
		"search: {algorithm: grid}\nobjective: {metric: val}\nmetrics: {source: stdout}\n" +
		"resources: {cpus: 0.25}\nprobe: {mode: full}\n" + strings.Join(extra, "\n") + "\n"
}

func list(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}

	return strings.Join(texts, ", ")
}

// python is a sweep of three trials of a script.
func python(name, script string) string {
	return "name: " + name + "\nimage: berth-examples/digits:1\ncommand: [python3, -c, '" + script + "', '{{n}}']\n" +
		"parameters: [{name: n, values: [1, 2, 3]}]\nsearch: {algorithm: grid}\nobjective: {metric: val}\n" +
		"metrics: {source: stdout}\nresources: {memory: 256MiB, cpus: 0.25}\nprobe: {mode: 'off'}\n"
}

var neighbours = []neighbour{
	{name: "negative derived values", goWrong: func(c *cluster) func() {
		why := c.refused(strings.NewReplacer(
			`"{{n}}"]`, `"{{z}}"]`, "{name: shape, type: fixed, value: 1}", "{name: z, type: derived, expr: '-0.5 * n'}",
		).Replace(busy(6, 500, roomy)))

		return func() { require.Contains(c.t, why, "E_ARG_DASH", "it would be read as an option") }
	}},
	{name: "worker with a relative data directory", goWrong: func(c *cluster) func() {
		h := c.addHost(c.hosts[0].flags...)
		h.dir = "below"

		c.startHost(h)
		c.awaitHosts()

		return func() { require.NotEmpty(c.t, c.output(h.name)) }
	}},
	{name: "arrays of 7 TiB", goWrong: func(c *cluster) func() {
		return c.ownErrors(python("arrays", "import numpy; numpy.zeros(7 << 37)"))
	}},
	{name: "caught MemoryError", goWrong: func(c *cluster) func() {
		return c.ownErrors(python("caught", "import sys\ntry: bytearray(7 << 40)\nexcept MemoryError: sys.exit(\"MemoryError: too large\")"))
	}},
	{
		name: "infeasible sibling", innocent: sizes("modest", false, []int{16}, innocentTrials, waves),
		goWrong: func(c *cluster) func() {
			id := c.submit(sizes("greedy", false, []int{16_384}, 1))

			require.Eventually(c.t, func() bool { return len(c.attempts(id)) > 1 }, time.Minute, tick, "it runs out of memory")

			return func() {
				require.Equal(c.t, 1, c.until(id, 5*time.Minute, ended).Counts.Infeasible)
			}
		},
	},
	{
		name: "paused carrier of a probe", innocent: sizes("follower", true, []int{8, 16}, innocentTrials/2, waves), forget: true,
		goWrong: func(c *cluster) func() {
			// The running trial measures its shape; the other was chosen to measure
			// the other shape, and waits.
			id := c.submit(sizes("carrier", true, []int{8, 16}, 1, "limits: {max_parallel: 1}"))
			c.until(id, time.Minute, func(s client.Sweep) bool { return s.Counts.Running == 1 && s.Counts.Waiting == 1 })
			c.steer(id, "pause")

			return func() {
				c.steer(id, "resume")
				c.whole(id, 2)
			}
		},
	},
	{name: "lost host, max_parallel 2", goWrong: func(c *cluster) func() {
		id := c.submit(busy(4, 4000, roomy, "limits: {max_parallel: 2}"))
		c.until(id, time.Minute, running(2))
		require.Eventually(c.t, func() bool { return len(c.running()) == 2 }, time.Minute, tick)

		h := c.hosts[0]

		c.startHost(c.addHost(h.flags...))
		c.awaitHosts()
		stop(h.worker, syscall.SIGKILL)

		for _, one := range c.containers() {
			_ = exec.Command("docker", "rm", "--force", one.id).Run() // our own container
		}

		require.Eventually(c.t, func() bool { return c.silent(h.name) }, time.Minute, tick)

		return func() { c.whole(id, 4) }
	}},
	{name: "sick host beside a healthy one", goWrong: func(c *cluster) func() {
		h := c.addHost(c.hosts[0].flags...)
		p := c.proxyDocker(h)
		p.mode.Store(dockerSick)

		h.env = []string{"DOCKER_HOST=unix://" + p.path}

		c.startHost(h)
		c.awaitHosts()

		return func() { require.Positive(c.t, p.starts.Load(), "nothing was placed on the sick host") }
	}},
}

// BenchmarkNeighbours runs a sweep alone, lets something go wrong, and runs it
// again: all of it must end as if alone, and the ratio of the two times is
// reported, as the median of the rounds.
func BenchmarkNeighbours(b *testing.B) {
	rounds := 1
	if n, err := strconv.Atoi(os.Getenv("ROUNDS")); err == nil && n > 0 {
		rounds = n
	}

	for _, n := range neighbours {
		var ratios []float64

		for range rounds {
			b.Run(n.name, func(b *testing.B) {
				alone, beside := n.round(b)
				ratios = append(ratios, beside.Seconds()/alone.Seconds())

				b.ReportMetric(alone.Seconds(), "alone-s")
				b.ReportMetric(beside.Seconds(), "beside-s")
				b.ReportMetric(ratios[len(ratios)-1], "beside/alone")
				b.ReportMetric(0, "ns/op")
			})
		}

		slices.Sort(ratios)
		b.Logf("%s: beside/alone %.2f", n.name, ratios)
	}
}

// round runs the innocent sweep once alone and once beside the fault.
func (n neighbour) round(b *testing.B) (alone, beside time.Duration) {
	b.Helper()

	c := startParts(b)

	c.startHost(c.addHost("--memory", "4GiB", "--cpus", "8"))
	c.awaitHosts()

	n.run(c) // Berth knows the image afterwards, and the shape unless it is forgotten
	n.forgetShapes(c)

	alone = n.run(c)

	n.forgetShapes(c)

	outcome := n.goWrong(c)
	beside = n.run(c)

	outcome()

	return alone, beside
}

// run runs the innocent sweep and returns its time from submission to end.
func (n neighbour) run(c *cluster) time.Duration {
	file := n.innocent
	if file == "" {
		file = busy(innocentTrials, 3000, roomy, waves)
	}

	began := time.Now()
	sweep := c.whole(c.submit(file), innocentTrials)
	took := sweep.FinishedAt.Sub(began)

	for _, a := range c.attempts(sweep.ID) {
		require.NotEqual(c.t, "host_oom", a.FailureKind, a.Message)
		require.LessOrEqual(c.t, a.Demand.MemoryBytes, int64(1<<30), "a shape of 16 MiB")
	}

	return took
}

// forgetShapes deletes footprints that the sweep shall measure.
func (n neighbour) forgetShapes(c *cluster) {
	if !n.forget {
		return
	}

	probes, err := c.api.ListProbesWithResponse(c.t.Context(), &client.ListProbesParams{})
	require.NoError(c.t, err)
	require.NotNil(c.t, probes.JSON200, string(probes.Body))

	for _, p := range probes.JSON200.Data {
		_, err := c.api.ForgetProbeWithResponse(c.t.Context(), p.ShapeKey)
		require.NoError(c.t, err)
	}
}

// whole waits for a sweep's end and requires that all of its trials succeeded.
func (c *cluster) whole(id string, trials int) client.Sweep {
	sweep := c.until(id, 5*time.Minute, ended)
	require.Equal(c.t, trials, sweep.Counts.Succeeded, fmt.Sprint(sweep.Counts, sweep.Reason))

	return sweep
}

// ownErrors submits a sweep whose trials all fail by an error of the script,
// and returns a check that each was charged for one attempt.
func (c *cluster) ownErrors(file string) func() {
	id := c.submit(file)

	return func() {
		sweep := c.until(id, 5*time.Minute, ended)
		require.Equal(c.t, 3, sweep.Counts.Failed, fmt.Sprint(sweep.Counts))

		attempts := c.attempts(id)
		require.Len(c.t, attempts, 3)

		for _, a := range attempts {
			require.Equal(c.t, "user_error", a.FailureKind, a.Message)
		}
	}
}

// silent reports whether a host's worker has been silent long enough that the
// placer prefers other hosts.
func (c *cluster) silent(name string) bool {
	hosts, err := c.api.ListHostsWithResponse(c.t.Context())
	require.NoError(c.t, err)
	require.NotNil(c.t, hosts.JSON200, string(hosts.Body))

	i := slices.IndexFunc(hosts.JSON200.Data, func(h client.Host) bool { return h.Name == name })

	return i >= 0 && time.Since(hosts.JSON200.Data[i].LastSeenAt) > berth.HostLateAfter+time.Second
}

// steer pauses or resumes a sweep.
func (c *cluster) steer(id, what string) {
	var err error

	if what == "pause" {
		_, err = c.api.PauseSweepWithResponse(c.t.Context(), id)
	} else {
		_, err = c.api.ResumeSweepWithResponse(c.t.Context(), id)
	}

	require.NoError(c.t, err)
}
