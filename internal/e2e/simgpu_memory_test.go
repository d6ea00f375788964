//go:build integration

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// brief is a program that gives up an allocation that was refused soon.
const brief = "--retry 200ms --steps 10 --cpu 0s --gpu 50ms"

// Out of memory on a GPU: the ladder of a trial, the effect on its siblings, and the
// end of one that no GPU can hold. Then a program that takes its neighbours down.
func TestSimGPU_OneCard(t *testing.T) {
	t.Parallel()

	s := startGPUs(t, "1x8GiB")

	s.sceneGrows()
	s.sceneSiblingsLearn()
	s.sceneTooLarge()
	s.sceneCanceledNeighbours()
	s.sceneNeighbourFault()
}

// Trials that are canceled in the middle of their steps, with a handler for SIGTERM or
// without, take no neighbour by MPS with them.
func (s *stack) sceneCanceledNeighbours() {
	t := s.t
	t.Helper()

	resources := gpuResources("gpu_memory: 1200MiB")
	neighbours := s.submit(onGPU(2, "200", "--steps 100000 --cpu 0s --gpu 50ms", resources, charged)) // until the end of the scene
	require.Eventually(t, func() bool { return len(s.trains(neighbours, 0)) == 2 }, patience, tick)

	for _, flag := range []string{"", " --deaf"} {
		victims := s.submit(onGPU(3, "200", "--steps 10000 --cpu 0s --gpu 60ms"+flag, resources, charged))
		require.Eventually(t, func() bool { return len(s.trains(victims, 0)) == 3 }, patience, tick)

		canceled, err := s.api.CancelSweepWithResponse(t.Context(), victims)
		require.NoError(t, err)
		require.Less(t, canceled.StatusCode(), 300, string(canceled.Body))

		s.until(victims, patience, ended)

		for _, a := range s.attempts(victims) {
			require.Contains(t, []string{"canceled", "infra"}, a.FailureKind, "infra: a busy Docker takes longer than 10 s: %s", a.Message)
			require.True(t, strings.HasSuffix(a.DeviceClass, "(MPS)"), a.DeviceClass)
		}
	}

	require.Len(t, s.trains(neighbours, 0), 2, "they outlived the victims")
	require.Len(t, s.attempts(neighbours), 2, "in their first attempts")

	canceled, err := s.api.CancelSweepWithResponse(t.Context(), neighbours)
	require.NoError(t, err)
	require.Less(t, canceled.StatusCode(), 300, string(canceled.Body))
	s.until(neighbours, patience, ended)
}

// A trial that needs more than its gpu_memory gets more, and no other one.
func (s *stack) sceneGrows() {
	t := s.t
	t.Helper()

	const reserve = 225 // MiB that TensorFlow keeps out of its pool where less than 2 GiB are free

	id := s.submit(onGPU(1, "100, 700", brief, gpuResources("gpu_memory: 1GiB"), "retry: {max_attempts: 3}"))
	s.requireTrained(id, 2)
	s.requireWithinCards(id)

	fitting, large := s.attemptsOf(id, 1), s.attemptsOf(id, 2)
	require.Len(t, fitting, 1)
	require.Equal(t, int64(1<<30), fitting[0].Demand.DeviceBytes)

	require.Len(t, large, 2)
	require.Equal(t, []string{"device_oom", "ok"}, []string{large[0].FailureKind, large[1].FailureKind}, large[0].Message)
	require.Equal(t, int64(1024), large[0].Demand.DeviceBytes/mib, "the user's word")
	require.Equal(t, int64(1536), large[1].Demand.DeviceBytes/mib, "half as much again, and 512 MiB more")
	require.Less(t, large[0].Demand.DeviceBytes/mib, int64(524+700+reserve), "it could not fit")
	require.Contains(t, s.log(large[0].ID), "OOM when allocating tensor")
	t.Log(large[0].Message)
}

// A shape that was measured small and needs more: one trial runs out, its siblings
// do not.
func (s *stack) sceneSiblingsLearn() {
	t := s.t
	t.Helper()

	file := func(megabytes string) string {
		return training("--mib {{mib}} "+brief, "{name: mib, values: ["+megabytes+"]}, {name: shape, values: [1], memory: true}",
			gpuResources(), "limits: {max_parallel: 1}")
	}

	s.requireTrained(s.submit(file("200")), 1)

	id := s.submit(file("650, 651, 652, 653"))
	s.requireTrained(id, 4)
	s.requireWithinCards(id)
	require.Equal(t, 1, s.sweep(id).Counts.OomRetries, "siblings do not repeat it")

	reserved := map[string][]int64{}
	for _, a := range s.attempts(id) {
		reserved[a.FailureKind] = append(reserved[a.FailureKind], a.Demand.DeviceBytes/mib)
	}

	t.Logf("MiB reserved: %v", reserved)
	require.Equal(t, []int64{960}, reserved["device_oom"], "what the small one taught")
	require.Len(t, reserved["ok"], 4)
	require.Equal(t, int64(1472), slices.Max(reserved["ok"]), "512 MiB more")
}

// What the largest card cannot hold is infeasible, and says how much it had.
func (s *stack) sceneTooLarge() {
	t := s.t
	t.Helper()

	id := s.submit(onGPU(1, "30000", brief, gpuResources()))
	s.until(id, patience, ended)
	s.requireWithinCards(id)

	trial, attempts := s.trials(id)[0], s.attemptsOf(id, 1)
	t.Logf("after %d attempts: %s", len(attempts), trial.Message)

	require.Equal(t, client.TrialStateInfeasible, trial.State, trial.Message)
	require.Equal(t, "too_big", trial.FailureKind)

	for i, a := range attempts {
		require.Equal(t, "device_oom", a.FailureKind, a.Message)

		if i > 0 {
			require.Greater(t, a.Demand.DeviceBytes, attempts[i-1].Demand.DeviceBytes)
		}
	}

	card, last := s.card(0), attempts[len(attempts)-1]
	require.True(t, last.Demand.ExclusiveDevice, "%+v", last.Demand)
	require.Equal(t, card.MemoryBytes-card.HeadroomBytes, last.Demand.DeviceBytes, "all that the card has")
	require.Contains(t, trial.Message, fmt.Sprintf("%d MiB", last.Demand.DeviceBytes/mib))
	require.Contains(t, trial.Message, "GPU")
}

// A fault of one MPS client ends all clients of its GPU. Its origin is unknown, so no
// trial is charged; the culprit faults again where it is alone, and is charged.
func (s *stack) sceneNeighbourFault() {
	t := s.t
	t.Helper()

	// A busy Docker ends the canceled ones late; the culprit must find room beside its victims.
	require.Eventually(t, func() bool { return s.card(0).ReservedBytes == 0 }, patience, tick, "the scene before holds nothing")

	resources := gpuResources("gpu_memory: 1200MiB")
	victims := s.submit(onGPU(3, "200", "--steps 300 --cpu 0s --gpu 50ms", resources, charged))
	require.Eventually(t, func() bool { return len(s.trains(victims, 0)) == 3 }, patience, tick, "all three are clients of MPS")

	culprits := s.submit(training("--mib 200 --steps 10 --cpu 0s --gpu 50ms --fault-at {{at}}", "{name: at, values: [5, 0], memory: true}, "+seeds(3),
		resources, charged, "limits: {max_parallel: 1}"))
	s.requireTrained(victims, 3)

	sweep := s.until(culprits, patience, ended)
	require.Equal(t, []int{3, 3}, []int{sweep.Counts.Failed, sweep.Counts.Succeeded}, "%+v", sweep.Counts)
	s.requireWithinCards(victims, culprits)

	byMPS := func(a client.Attempt) bool { return strings.HasSuffix(a.DeviceClass, "(MPS)") }

	for n := 1; n <= 3; n++ {
		all := s.attemptsOf(victims, n)
		require.Len(t, all, 2, "%+v", all)
		require.Equal(t, []string{"neighbour_fault", "ok"}, []string{all[0].FailureKind, all[1].FailureKind}, all[0].Message)
		require.Equal(t, []bool{true, false}, []bool{byMPS(all[0]), byMPS(all[1])}, "the second time without MPS")
	}

	faulted, apart := s.attempts(culprits), 0
	slices.SortFunc(faulted, func(a, b client.Attempt) int { return a.PlacedAt.Compare(b.PlacedAt) })

	guilty := slices.IndexFunc(faulted, func(a client.Attempt) bool { return a.FailureKind == "crashed" })
	require.GreaterOrEqual(t, guilty, 0)
	require.Contains(t, faulted[guilty].Message, "illegal memory access")

	for _, a := range faulted {
		t.Logf("trial %d attempt %d on %s: %s", a.TrialNumber, a.Number, a.DeviceClass, a.FailureKind)
		require.Equal(t, byMPS(a), a.FailureKind == "neighbour_fault" || byMPS(a) && a.FailureKind == "ok", "charged only where it shares by time slices: %s", a.FailureKind)

		if a.PlacedAt.After(*faulted[guilty].FinishedAt) {
			require.False(t, byMPS(a), "the sweep is apart")
			apart++
		}
	}

	require.Positive(t, apart)

	after := s.submit(onGPU(3, "200", "--steps 10 --cpu 0s --gpu 50ms", resources, charged))
	s.requireTrained(after, 3)
	require.Equal(t, map[string]int{"Simulated GPU 8 GiB (MPS)": 3}, byClass(s.attempts(after)), "others keep MPS")
}
