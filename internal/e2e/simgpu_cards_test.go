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
	"github.com/berthml/berth/internal/simgpu"
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

	s.sceneTwoKinds()
	s.sceneLargeUnknown()
	s.sceneOneCardEach()
	s.sceneHangs()
	s.sceneFaults()
}

// No trial of a large unmeasured shape runs out of memory: the first one gets the free
// memory, and the others wait for it.
func (s *stack) sceneLargeUnknown() {
	t := s.t
	t.Helper()

	const held = 9000 + 524 + 97 // MiB: tensors, context, libraries

	s.onlyCard(2, func() {
		id := s.submit(onGPU(6, "9000", "--steps 240 --cpu 0s --gpu 50ms", gpuResources(), charged))
		s.requireTrained(id, 6)
		s.requireWithinCards(id)

		attempts := s.attempts(id)
		require.Len(t, attempts, 6, "none was repeated")
		slices.SortFunc(attempts, func(a, b client.Attempt) int { return a.StartedAt.Compare(*b.StartedAt) })

		first := attempts[0]
		require.Greater(t, first.Demand.DeviceBytes/mib, int64(30<<10), "half of what is free")

		for _, a := range attempts[1:] {
			require.Equal(t, int64(11584), a.Demand.DeviceBytes/mib, "what the first held, and 20 %%, in steps of 64: %d", held)
			require.True(t, a.StartedAt.Before(*first.FinishedAt), "they wait for its first metric, not for its end")
		}
	})
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
	require.Eventually(s.t, func() bool { return s.card(0).Problem == "" }, time.Minute, tick, "it answers")
}

// Trials spread over all GPUs, each shape is measured on each model of GPU, and
// from then on Berth reserves the measured memory.
func (s *stack) sceneTwoKinds() {
	t := s.t
	t.Helper()

	const held = 524 + 97 // MiB: context and libraries

	id := s.submit(onGPU(12, "200, 1200", "--steps 15 --cpu 0s --gpu 50ms", gpuResources(), "limits: {max_parallel: 9}"))
	s.requireTrained(id, 24)
	s.requireWithinCards(id)

	attempts := s.attempts(id)
	require.Len(t, attempts, 24, "none was repeated")

	devices, reserved := map[string]int{}, map[string][]int64{}
	for _, a := range attempts {
		devices[a.DeviceID]++
	}

	require.Len(t, devices, 3)

	// How many of a shape came to a kind is chance: now each has as many as earn the narrow margin.
	for _, n := range []int{0, 2} {
		s.onlyCard(n, func() {
			more := s.submit(onGPU(3, "200, 1200", "--steps 15 --cpu 0s --gpu 50ms", gpuResources()))
			s.requireTrained(more, 6)
			attempts = append(attempts, s.attempts(more)...)
		})
	}

	for _, a := range attempts {
		reserved[a.ShapeKey+a.DeviceClass] = append(reserved[a.ShapeKey+a.DeviceClass], a.Demand.DeviceBytes/mib)
	}

	t.Logf("trials by card: %v; MiB reserved: %v", devices, reserved)
	require.Len(t, reserved, 4, "two shapes on two kinds of cards")

	for _, shape := range []int64{200, 1200} {
		peak := shape + held
		probes := s.footprints(id, peak*mib)
		require.Len(t, probes, 2, "one for each kind: %v", probes)

		for class, f := range probes {
			require.True(t, strings.HasSuffix(class, "(MPS)"), class)
			require.Equal(t, "full", f.Source)
			require.GreaterOrEqual(t, f.Samples, 3)
		}
	}

	// Trials of a sweep of measured shapes get exactly that, whatever was guessed
	// before.
	again := s.submit(onGPU(3, "200, 1200", "--steps 15 --cpu 0s --gpu 50ms", gpuResources()))
	s.requireTrained(again, 6)
	s.requireWithinCards(again)

	want := map[int64]int{960: 3, 1984: 3} // max(821 × 1.05, 821 + 128) and max(1,821 × 1.05, 1,821 + 128), in steps of 64
	got := map[int64]int{}

	for _, a := range s.attempts(again) {
		got[a.Demand.DeviceBytes/mib]++
	}

	require.Equal(t, want, got)

	report, err := s.api.GetSweepReportWithResponse(t.Context(), id, nil)
	require.NoError(t, err)
	require.Contains(t, string(report.Body), "Simulated GPU 80 GiB", "a report says that its figures are invented")
}

// onlyCard does something while the other cards are cordoned.
func (s *stack) onlyCard(number int, do func()) {
	s.t.Helper()

	for n := range s.gpuHost().Devices {
		if n != number {
			id := s.card(n).ID
			s.setCard(id, client.DevicePatch{State: client.DevicePatchStateCordoned, Reason: "another one is wanted"})
			defer s.setCard(id, client.DevicePatch{State: client.DevicePatchStateReady})
		}
	}

	do()
}

func (s *stack) setCard(id string, to client.DevicePatch) {
	s.t.Helper()

	answer, err := s.api.UpdateDeviceWithResponse(s.t.Context(), id, to)
	require.NoError(s.t, err)
	require.NotNil(s.t, answer.JSON200, string(answer.Body))
}

// footprints returns the footprints of a sweep's shapes with this peak on a GPU,
// by class.
func (s *stack) footprints(sweep string, peak int64) map[string]client.Footprint {
	s.t.Helper()

	found := map[string]client.Footprint{}

	for _, a := range s.attempts(sweep) {
		answer, err := s.api.GetProbeWithResponse(s.t.Context(), a.ShapeKey)
		require.NoError(s.t, err)
		require.NotNil(s.t, answer.JSON200, string(answer.Body))

		for _, f := range answer.JSON200.Footprints {
			if f.DevicePeakBytes == peak {
				found[f.DeviceClass] = f
			}
		}
	}

	return found
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
	}, time.Minute, tick)

	answer, err := s.api.CancelSweepWithResponse(t.Context(), sweep)
	require.NoError(t, err)
	require.Less(t, answer.StatusCode(), 300, string(answer.Body))
	s.until(sweep, time.Minute, ended)
}

// sceneFaults lets the cards fail one after the other. No trial has an attempt to lose.
func (s *stack) sceneFaults() {
	t := s.t
	t.Helper()

	id := s.submit(onGPU(5, "200", "--steps 300 --cpu 0s --gpu 50ms", gpuResources("gpu_sharing: exclusive"), charged))
	require.Eventually(t, func() bool { return len(s.trains(id, 0))+len(s.trains(id, 1))+len(s.trains(id, 2)) == 3 }, time.Minute, tick, "one on each card")

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
	waits := s.until(id, time.Minute, func(sweep client.Sweep) bool { return sweep.Counts.Running == 0 && sweep.Counts.Waiting > 0 })
	require.Zero(t, waits.Counts.Failed)

	open := s.trials(id)[slices.IndexFunc(s.trials(id), func(trial client.Trial) bool { return trial.FinishedAt == nil })].Number
	require.Eventually(t, func() bool {
		why := s.why(id, open)

		return !slices.ContainsFunc([]int{0, 1, 2}, func(n int) bool { return !strings.Contains(why, "GPU "+s.card(n).ID+": "+s.card(n).Problem) })
	}, time.Minute, tick, "it waits for: %s", s.why(id, open))
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
	require.Eventually(s.t, func() bool { return strings.Contains(s.card(number).Problem, problem) }, time.Minute, tick, "card %d", number)
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
	}, time.Minute, tick, "nothing runs on card %d", number)

	s.fault(number, f)
	require.Eventually(s.t, func() bool { return len(s.runsOn(id, number)) == 0 && s.card(number).Attempts == 0 }, time.Minute, tick)

	for _, n := range were {
		last := s.attemptsOf(id, n)[0]
		require.NotEqual(s.t, "ok", last.FailureKind, "trial %d", n)
		require.Zero(s.t, s.sweep(id).Counts.Failed, "%s: %s", last.FailureKind, last.Message)
	}
}
