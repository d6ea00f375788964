//go:build integration

package e2e

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/agent/simgpu"
	"github.com/berthml/berth/internal/control/health"
)

const mib = 1 << 20

// light is a small demand on the machine, for trials that test only the GPU.
const light = "memory: 64MiB, cpus: 0.1"

// charged makes the first charged end a trial's last.
const charged = "retry: {max_attempts: 1}"

// startGPUs runs a stack with simulated GPUs, whose problems are reported every
// second, on a machine that claims enough cores never to be the limit.
func startGPUs(t testing.TB, gpus string, flags ...string) *stack {
	t.Helper()

	return start(t, append([]string{"--fake-gpus", gpus, "--cpus", "16", "--disk-headroom", "64MiB", "--waits", "reconcile=" + fastReconcile.String()}, flags...)...)
}

// onGPU is a sweep of n trials for each value of mib, which counts for memory: each
// runs the program of the simulated GPU with the flags, and reports 0.5. Extra lines
// go into the file as they are.
func onGPU(n int, megabytes, flags string, extra ...string) string {
	return training("--mib {{mib}} "+flags, "{name: mib, values: ["+megabytes+"], memory: true}, "+seeds(n), extra...)
}

// training is a sweep of the program of the simulated GPU.
func training(flags, parameters string, extra ...string) string {
	command := strings.Join(strings.Fields("/busy gpu --cpu 0s "+flags), "', '")

	return `
name: simulated
image: berth-test/busy:1
command: ['` + command + `']
environment_variables: {VALUES: /trial/in/params.json}
parameters: [` + parameters + `]
search: {algorithm: grid}
objective: {metric: val, goal: maximize}
metrics: {source: stdout}
` + strings.Join(extra, "\n") + "\n"
}

// seeds is a parameter of n values that counts for nothing.
func seeds(n int) string {
	numbers := make([]string, n)
	for i := range numbers {
		numbers[i] = strconv.Itoa(i + 1)
	}

	return "{name: seed, values: [" + strings.Join(numbers, ", ") + "]}"
}

// gpuResources are the resources of a sweep on GPUs.
func gpuResources(more ...string) string {
	return "resources: {" + strings.Join(append([]string{"device: gpu", light}, more...), ", ") + "}"
}

// gpuHost is the stack's host.
func (s *stack) gpuHost() client.Host {
	s.t.Helper()

	hosts, err := s.api.ListHostsWithResponse(s.t.Context())
	require.NoError(s.t, err)
	require.NotNil(s.t, hosts.JSON200, string(hosts.Body))
	require.Len(s.t, hosts.JSON200.Data, 1)

	return hosts.JSON200.Data[0]
}

// card is a GPU of the stack's host, by its number in --fake-gpus.
func (s *stack) card(number int) client.Device {
	s.t.Helper()

	h := s.gpuHost()
	i := slices.IndexFunc(h.Devices, func(d client.Device) bool { return d.ID == simgpu.UUID(h.ID, number) })
	require.GreaterOrEqual(s.t, i, 0, "GPU %d is not there: %+v", number, h.Devices)

	return h.Devices[i]
}

// fault lets something go wrong on a card.
func (s *stack) fault(number int, f simgpu.Fault) {
	s.t.Helper()
	require.NoError(s.t, simgpu.Inject(filepath.Join(s.dir, "gpus"), number, f))
}

// healthPart is the server's finding about one part.
func (s *stack) healthPart(name string) string {
	s.t.Helper()

	var answer struct {
		Findings []health.Finding `json:"findings"`
	}

	body := s.health()
	require.NoError(s.t, json.Unmarshal([]byte(body), &answer), body)

	i := slices.IndexFunc(answer.Findings, func(f health.Finding) bool { return f.Part == name })
	require.GreaterOrEqual(s.t, i, 0, body)

	return answer.Findings[i].What
}

// requireTrained checks that a sweep succeeded with this many trials.
func (s *stack) requireTrained(id string, trials int) {
	s.t.Helper()

	sweep := s.until(id, patience, ended)
	require.Equal(s.t, client.SweepStateSucceeded, sweep.State, "%+v", sweep)
	require.Equal(s.t, trials, sweep.Counts.Succeeded, "%+v", sweep.Counts)
}

// requireWithinCards checks the attempts of ended sweeps: each had one GPU, had a bound
// of at least its peak, and at no time did the attempts on one GPU hold more than its
// memory.
func (s *stack) requireWithinCards(sweeps ...string) {
	s.t.Helper()

	type change struct {
		at    time.Time
		bytes int64
	}

	changes := map[string][]change{}

	for _, id := range sweeps {
		for _, a := range s.attempts(id) {
			require.NotEmpty(s.t, a.DeviceID, "%+v", a)
			require.NotNil(s.t, a.FinishedAt, "%+v", a)
			require.LessOrEqual(s.t, a.Usage.DevicePeakBytes, a.Demand.DeviceBytes, "trial %d", a.TrialNumber)
			require.True(s.t, strings.HasPrefix(a.DeviceClass, berth.SimulatedModel), a.DeviceClass)

			changes[a.DeviceID] = append(changes[a.DeviceID], change{a.PlacedAt, a.Usage.DevicePeakBytes}, change{*a.FinishedAt, -a.Usage.DevicePeakBytes})
		}
	}

	for _, d := range s.gpuHost().Devices {
		all, sum := changes[d.ID], int64(0)
		slices.SortFunc(all, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.bytes, b.bytes)) })

		for _, c := range all {
			sum += c.bytes
			require.LessOrEqual(s.t, sum, d.MemoryBytes-d.HeadroomBytes, "%s at %s", d.Model, c.at)
		}
	}
}

// byClass counts attempts by the class of their device.
func byClass(attempts []client.Attempt) map[string]int {
	of := make(map[string]int)
	for _, a := range attempts {
		of[a.DeviceClass]++
	}

	return of
}

// attemptsOf returns the attempts of one trial, the first one first.
func (s *stack) attemptsOf(id string, number int) []client.Attempt {
	all := slices.DeleteFunc(s.attempts(id), func(a client.Attempt) bool { return a.TrialNumber != number })
	slices.SortFunc(all, func(a, b client.Attempt) int { return a.Number - b.Number })

	return all
}

// trains are the numbers of the trials of a sweep whose programs use a card.
func (s *stack) trains(id string, number int) (trials []int) {
	for _, a := range s.runsOn(id, number) {
		if strings.Contains(s.log(a.ID), "Created device") {
			trials = append(trials, a.TrialNumber)
		}
	}

	return trials
}

// runsOn are the attempts of a sweep that hold a place on a card.
func (s *stack) runsOn(id string, number int) []client.Attempt {
	card := s.card(number).ID

	return slices.DeleteFunc(s.attempts(id), func(a client.Attempt) bool {
		return a.DeviceID != card || a.State != client.AttemptStateRunning && a.State != client.AttemptStatePlaced
	})
}
