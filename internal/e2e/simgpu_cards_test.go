//go:build integration && nightly

package e2e

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/agent/simgpu"
)

// A sweep uses all GPUs of a machine with two models. Then one after the other
// fails: no trial is charged for it, and its trials run elsewhere.
func TestSimGPU_Cards(t *testing.T) {
	t.Parallel()

	s := startGPUs(t, "2x24GiB,1x80GiB")

	for n, model := range []string{"Simulated GPU 24 GiB", "Simulated GPU 24 GiB", "Simulated GPU 80 GiB"} {
		require.Equal(t, model, s.card(n).Model)
		require.Equal(t, "Simulated GPU", berth.SimulatedModel)
	}

	require.Contains(t, s.health(), "with simulated GPUs: "+s.gpuHost().Name)

	s.sceneAllCards()
	s.sceneOneCardEach()
	s.sceneHangs()
	s.sceneFaults()
}

// A card whose driver hangs takes nothing until it answers again.
func (s *stack) sceneHangs() {
	s.t.Helper()

	s.fault(0, simgpu.Fault{Hang: true})
	s.requireOut(0, "does not answer")

	id := s.submit(onGPU(2, "200", "--steps 10 --cpu 0s --gpu 50ms", gpuResources("gpu_sharing: exclusive"), charged))
	s.requireTrained(id, 2)

	for _, a := range s.attempts(id) {
		require.NotEqual(s.t, s.card(0).ID, a.DeviceID)
	}

	s.fault(0, simgpu.Fault{Wake: true})
	require.Eventually(s.t, func() bool { return s.card(0).Problem == "" }, patience, tick, "it answers")
}

// Trials spread over all GPUs, of two kinds.
func (s *stack) sceneAllCards() {
	t := s.t
	t.Helper()

	id := s.submit(onGPU(12, "200, 1200", "--steps 15 --cpu 0s --gpu 50ms", gpuResources(), "limits: {max_parallel: 9}"))
	s.requireTrained(id, 24)
	s.requireWithinCards(id)

	devices := map[string]int{}
	for _, a := range s.attempts(id) {
		devices[a.DeviceID]++
	}

	require.Len(t, devices, 3, "trials by card: %v", devices)
}

// sceneOneCardEach checks of containers that run that each sees the card of its attempt
// and no other.
func (s *stack) sceneOneCardEach() {
	t := s.t
	t.Helper()

	sweep := s.submit(onGPU(3, "100", "--steps 100000 --cpu 0s --gpu 50ms", gpuResources("gpu_sharing: exclusive")))

	require.Eventually(t, func() bool {
		h := s.gpuHost()
		cards := map[string]string{}

		for n := range h.Devices {
			cards[s.card(n).ID] = "/gpus/" + string(rune('0'+n)) + "/"
		}

		checked := 0

		for _, a := range s.attempts(sweep) {
			if a.State != client.AttemptStateRunning {
				continue
			}

			mounts, err := s.docker("inspect", "--format", "{{range .Mounts}}{{println .Source}}{{end}}", "berth-"+s.instance+"-"+a.ID).Output()
			if err != nil {
				continue // it has ended
			}

			for id, dir := range cards {
				require.Equal(t, id == a.DeviceID, strings.Contains(string(mounts), dir), "%s\n%s", dir, mounts)
			}

			checked++
		}

		return checked == 3
	}, patience, tick)

	answer, err := s.api.CancelSweepWithResponse(t.Context(), sweep)
	require.NoError(t, err)
	require.Less(t, answer.StatusCode(), 300, string(answer.Body))
	s.until(sweep, patience, ended)
}

// sceneFaults lets the cards fail one after the other. No trial has an attempt to lose.
func (s *stack) sceneFaults() {
	t := s.t
	t.Helper()

	id := s.submit(onGPU(5, "200", "--steps 300 --cpu 0s --gpu 50ms", gpuResources("gpu_sharing: exclusive"), charged))
	require.Eventually(t, func() bool { return len(s.trains(id, 0))+len(s.trains(id, 1))+len(s.trains(id, 2)) == 3 }, patience, tick, "one on each card")

	// A GPU that reports an error takes no more attempts. Running ones go on as long as
	// the driver answers. Programs end on a GPU that loses data, and on a GPU that
	// disappears.
	stay := s.trains(id, 0)

	s.fault(0, simgpu.Fault{XID: 79})
	s.requireOut(0, "XID 79")
	s.requireMovedOff(id, 1, simgpu.Fault{ECC: true})
	s.requireMovedOff(id, 2, simgpu.Fault{Lose: true})
	s.requireOut(1, "XID 48")
	s.requireOut(2, "XID 79")

	// Waiting trials name the problem of each GPU, and go on once the worker has
	// restarted.
	waits := s.until(id, patience, func(sweep client.Sweep) bool { return sweep.Counts.Running == 0 && sweep.Counts.Waiting > 0 })
	require.Zero(t, waits.Counts.Failed)

	open := s.trials(id)[slices.IndexFunc(s.trials(id), func(trial client.Trial) bool { return trial.FinishedAt == nil })].Number
	require.Eventually(t, func() bool {
		why := s.why(id, open)

		return !slices.ContainsFunc([]int{0, 1, 2}, func(n int) bool { return !strings.Contains(why, "GPU "+s.card(n).ID+": "+s.card(n).Problem) })
	}, patience, tick, "it waits for: %s", s.why(id, open))
	t.Logf("trial %d waits: %s", open, s.why(id, open))

	stop(s.worker, syscall.SIGTERM)
	s.startWorker()
	s.requireTrained(id, 5)

	numbers := map[string]int{s.card(0).ID: 0, s.card(1).ID: 1, s.card(2).ID: 2}

	for _, a := range s.attempts(id) {
		t.Logf("trial %d attempt %d on card %d: %s %s", a.TrialNumber, a.Number, numbers[a.DeviceID], a.FailureKind, a.Message)
	}

	require.Len(t, stay, 1)

	for _, number := range stay {
		require.Len(t, s.attemptsOf(id, number), 1, "it ended where it was")
	}

	for n := range 3 {
		require.Empty(t, s.card(n).Problem, "its worker has started again")
	}

	require.NotContains(t, s.health(), s.card(0).ID)
}

// requireOut waits until a card takes nothing more, and says why.
func (s *stack) requireOut(number int, problem string) {
	s.t.Helper()

	began := time.Now()
	require.Eventually(s.t, func() bool { return strings.Contains(s.card(number).Problem, problem) }, patience, tick, "card %d", number)
	s.t.Logf("card %d is out after %s", number, time.Since(began).Round(tick))

	card := s.card(number)
	devices := s.healthPart("devices")
	require.Contains(s.t, devices, card.ID)
	require.Contains(s.t, devices, problem)
}

// requireMovedOff lets a GPU fail, and waits until no trial of the sweep is there,
// and none has failed by that.
func (s *stack) requireMovedOff(id string, number int, f simgpu.Fault) {
	s.t.Helper()

	var were []int

	require.Eventually(s.t, func() bool {
		were = s.trains(id, number)

		return len(were) > 0
	}, patience, tick, "nothing runs on card %d", number)

	s.fault(number, f)
	require.Eventually(s.t, func() bool { return len(s.runsOn(id, number)) == 0 && s.card(number).Attempts == 0 }, patience, tick)

	for _, n := range were {
		last := s.attemptsOf(id, n)[0]
		require.NotEqual(s.t, "ok", last.FailureKind, "trial %d", n)
		require.Zero(s.t, s.sweep(id).Counts.Failed, "%s: %s", last.FailureKind, last.Message)
	}
}

// why is the reason why a trial waits, host by host.
func (s *stack) why(sweepID string, number int) string {
	answer, err := s.api.GetTrialWithResponse(s.t.Context(), sweepID, number)
	require.NoError(s.t, err)
	require.NotNil(s.t, answer.JSON200, string(answer.Body))

	var reasons []string
	for _, r := range answer.JSON200.Waiting {
		reasons = append(reasons, r.Reason)
	}

	return strings.Join(reasons, "; ")
}
