package report_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/report"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

// horizon is the last second that attempts are drawn in: it is also now.
const horizon = 40

var sweeps = []string{"s", "t", "u"}

// drawAttempts draws few seconds and cards, so that attempts often touch.
func drawAttempts(t *rapid.T) []report.Attempt {
	var all []report.Attempt

	for i := range rapid.IntRange(0, 15).Draw(t, "attempts") {
		from := rapid.IntRange(0, horizon).Draw(t, "from")
		a := onGPU(fmt.Sprintf("a%02d", i), i+1, 1, from, rapid.IntRange(from, horizon).Draw(t, "to"))
		a.SweepID = rapid.SampledFrom(sweeps).Draw(t, "sweep")
		a.ShapeKey = rapid.SampledFrom([]string{"k", "l"}).Draw(t, "shape")
		a.ReservedBytes = rapid.Int64Range(0, 3).Draw(t, "reserved") * gib
		a.Kind = rapid.SampledFrom([]berth.FailureKind{berth.FailureOK, berth.FailureOK, berth.FailureDeviceOOM, berth.FailureCrashed, ""}).Draw(t, "kind")

		switch rapid.IntRange(0, 3).Draw(t, "place") {
		case 0:
			a.DeviceID, a.Class, a.MemoryBytes = "", berth.ClassCPU, 32*gib
		case 1:
			a.DeviceID = "GPU-2"
		}

		if a.Kind == "" {
			a.FinishedAt = nil
		}

		all = append(all, a)
	}

	return all
}

func reportOf(sweep string, attempts []report.Attempt) report.Report {
	return report.Make(report.Input{SweepID: sweep, State: berth.SweepRunning, Trials: len(attempts), AsOf: *at(horizon), Attempts: attempts})
}

// running counts the attempts on a place in a second, of one sweep or (empty) all.
func running(attempts []report.Attempt, device, sweep string, second int) int {
	n := 0

	for _, a := range attempts {
		end := *at(horizon)
		if a.FinishedAt != nil {
			end = *a.FinishedAt
		}

		if a.DeviceID == device && (sweep == "" || a.SweepID == sweep) && !a.StartedAt.After(*at(second)) && end.After(*at(second)) {
			n++
		}
	}

	return n
}

// The charge of all sweeps is the time in which the places were in use, as
// counted second by second; and each sweep's own figures agree with that count.
func TestProperty_ChargesAddUp(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		attempts := drawAttempts(t)

		var charged, busy time.Duration

		for _, sweep := range sweeps {
			r := reportOf(sweep, attempts)
			charged += r.GPU.Charged + r.Cores.Charged

			require.LessOrEqual(t, r.GPU.Charged, r.GPU.Used)

			var used time.Duration

			most, sum := 0, 0

			for _, device := range []string{"GPU-1", "GPU-2"} {
				for second := range horizon {
					n := running(attempts, device, sweep, second)
					most, sum = max(most, n), sum+n

					if n > 0 {
						used += time.Second
					}
				}
			}

			require.Equal(t, used, r.GPU.Used)
			require.Equal(t, time.Duration(sum)*time.Second, r.GPU.AttemptTime)
			require.Equal(t, most, r.GPU.MaxAtOnce)
		}

		for _, device := range []string{"", "GPU-1", "GPU-2"} {
			for second := range horizon {
				if running(attempts, device, "", second) > 0 {
					busy += time.Second
				}
			}
		}

		require.InDelta(t, busy.Seconds(), charged.Seconds(), 1e-6)
	})
}

func TestProperty_BoundsAndOrder(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		attempts := drawAttempts(t)
		r := reportOf("s", attempts)

		require.LessOrEqual(t, r.GPU.AloneTime, r.GPU.AttemptTime, "it never claims more than was measured")
		require.LessOrEqual(t, r.GPU.Used, r.GPU.AttemptTime)
		require.Equal(t, r.GPU.Attempts, r.GPU.AloneRan+r.GPU.AloneByShape+r.GPU.AloneBounded+r.GPU.AloneNeedless)

		var lost time.Duration
		for _, loss := range r.Losses {
			lost += loss.Time
		}

		require.LessOrEqual(t, lost, r.GPU.AttemptTime+r.Cores.AttemptTime)

		for _, trial := range r.Trials {
			for _, a := range trial.Attempts {
				for second := range horizon {
					beside := running(attempts, a.DeviceID, "", second) > 1 && running([]report.Attempt{a.Attempt}, a.DeviceID, "", second) > 0
					require.False(t, a.Alone && beside, "%s at %d", a.ID, second)
				}
			}
		}

		// The database returns attempts in another order once it was restored: a sum of floating-point
		// numbers would end in another digit.
		for i := range attempts {
			attempts[i].StartedAt = new(attempts[i].StartedAt.Add(-time.Duration(rapid.IntRange(0, 999_999_999).Draw(t, "more"))))
		}

		first := reportOf("s", attempts)

		rand.New(rand.NewPCG(1, 2)).Shuffle(len(attempts), func(i, j int) { attempts[i], attempts[j] = attempts[j], attempts[i] })
		require.Equal(t, first, reportOf("s", attempts))
	})
}

// BenchmarkMake is a sweep of 10,000 trials on 8 GPUs with as many neighbours.
func BenchmarkMake(b *testing.B) {
	var attempts []report.Attempt

	for i := range 20_000 {
		a := onGPU(fmt.Sprintf("a%05d", i), i/2+1, 1, i/100, i/100+60)
		a.DeviceID = fmt.Sprintf("GPU-%d", i%8)
		a.SweepID = sweeps[i%2]
		attempts = append(attempts, a)
	}

	for b.Loop() {
		reportOf("s", attempts)
	}
}
