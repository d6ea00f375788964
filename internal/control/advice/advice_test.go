package advice_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/advice"
	_ "github.com/berthml/berth/internal/testkit/testseed"
)

const (
	mib  = int64(1) << 20
	h200 = 143_771 * mib
)

// on is a measurement on an H200: its SMs, bandwidth and tensor cores in
// thousandths of the time in which the program held it, cores in thousandths.
func on(sm, dram, tensor, cpu, seconds int64) advice.Measured {
	return advice.Measured{
		Footprint: berth.Footprint{
			Class: "NVIDIA H200", Samples: 1, CPUMilli: cpu, Duration: berth.Duration(seconds) * berth.Duration(time.Second),
			DeviceActivity: berth.DeviceActivity{SMMilli: sm, DRAMMilli: dram, TensorMilli: tensor},
		},
		Recent:    berth.RecentUsage{HeldMilli: 1000},
		CardBytes: h200, CapMilli: 1000,
	}
}

func about(d advice.Diagnosis) []string {
	got := []string{}
	for _, p := range d.Advice {
		got = append(got, p.About)
	}

	return got
}

// Measurements on one H200 get the label and the advice that helped there, or that fits
// the known program. Sources: reference of TensorFlow 2.21 and of PyTorch pairs,
// 2026-11-21 to 24.
func TestOf_MeasuredPrograms(t *testing.T) {
	t.Parallel()

	capped := func(m advice.Measured, milli int64) advice.Measured {
		m.CapMilli = milli

		return m
	}

	for name, tt := range map[string]struct {
		measured advice.Measured
		label    advice.Label
		about    []string
	}{
		"a CNN that launching binds": { // 2.0 % of the SMs, 15.5 s of a core in 15.3 s; fewer Python steps made it 1.6 times as fast
			on(20, 10, 2, 1010, 15), advice.LatencyBound, []string{"batch", "cores", "steps_per_execution", "xla", "utilization"},
		},
		"small matrix products": {on(280, 1, 100, 800, 11), advice.LatencyBound, []string{"batch", "steps_per_execution", "xla", "utilization"}},
		"large matrix products": {on(670, 170, 500, 1000, 12), advice.ComputeBound, []string{}},
		"the same without tensor cores": {
			on(820, 170, 0, 1000, 12), advice.ComputeBound, []string{"tensor_cores"},
		},
		"a stream of memory": {on(900, 740, 0, 1000, 12), advice.MemoryBound, []string{"tensor_cores", "bandwidth"}},
		"an input that three cores prepare": {
			capped(on(120, 40, 10, 2900, 300), 3000), advice.InputBound, []string{"input", "utilization"},
		},
		"its cap binds before 1.5 cores": {
			capped(on(120, 40, 10, 1100, 300), 1200), advice.InputBound, []string{"input", "utilization"},
		},
		"half busy": {on(450, 100, 60, 1000, 600), advice.LatencyBound, []string{"batch", "cores", "steps_per_execution", "xla"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := advice.Of(tt.measured)
			require.Equal(t, tt.label, d.Label, d.Why)
			require.Equal(t, tt.about, about(d))

			for _, p := range d.Advice {
				require.NotEmpty(t, p.Do)
				require.True(t, strings.ContainsAny(p.Evidence, "0123456789"), "evidence has figures: %s", p.Evidence)
			}
		})
	}
}

// A label is about the time in which the program held the GPU, where that is known.
func TestOf_MeanOverWhat(t *testing.T) {
	t.Parallel()

	m := on(360, 80, 0, 1000, 12) // busy for 80 % of the 45 % of its run in which it held the GPU

	m.Recent.HeldMilli = 450
	d := advice.Of(m)
	require.Equal(t, advice.ComputeBound, d.Label)
	require.Equal(t, "its SMs had work 80 % of the time, and it used 17.7 % of the bandwidth of the GPU's memory, while it held the GPU", d.Why)

	m.Recent.HeldMilli = 0
	d = advice.Of(m)
	require.Equal(t, advice.LatencyBound, d.Label)
	require.Contains(t, d.Why, "in the mean over whole runs, start and end included")
}

// Compiling is for runs that are long enough to earn it back.
func TestOf_XLA(t *testing.T) {
	t.Parallel()

	do := func(seconds int64) string {
		for _, p := range advice.Of(on(20, 10, 2, 500, seconds)).Advice {
			if p.About == advice.AboutXLA {
				return p.Do
			}
		}

		return ""
	}

	require.Contains(t, do(15), "`jit_compile=False`")
	require.Contains(t, do(600), "`jit_compile=True`")
	require.Empty(t, do(0))
}

func memory(card, peak, framework int64) advice.Measured {
	return advice.Measured{
		Footprint: berth.Footprint{Class: "NVIDIA H200", DevicePeakBytes: peak * mib}, CardBytes: card * mib,
		Recent: berth.RecentUsage{FrameworkPeakBytes: framework * mib},
	}
}

// What frameworks were measured to take, in MiB: by preallocation, by growth, and with
// cuDNN's workspaces bounded and not.
func TestOf_Memory(t *testing.T) {
	t.Parallel()

	const card = 143_771

	for name, tt := range map[string]struct {
		measured advice.Measured
		about    []string
		evidence string
	}{
		"TensorFlow's default mode": {
			memory(card, 141_450, 145),
			[]string{"preallocation"},
			"it held 141,450 MiB of the GPU's 143,771 MiB (98 %), although Berth lets frameworks grow as they need; its framework used at most 145 MiB of that",
		},
		"the same without the shim": {
			memory(card, 141_450, 0),
			[]string{"preallocation"},
			"it held 141,450 MiB of the GPU's 143,771 MiB (98 %), although Berth lets frameworks grow as they need; how much of that it used is not known, as no shim said so",
		},
		"JAX's default mode": {
			memory(card, 107_986, 186),
			[]string{"preallocation"},
			"it held 107,986 MiB of the GPU's 143,771 MiB (75 %), although Berth lets frameworks grow as they need; its framework used at most 186 MiB of that",
		},
		"JAX without the shim":      {memory(card, 107_986, 0), []string{}, ""},
		"one that needs the card":   {memory(card, 141_450, 120_000), []string{}, ""},
		"a card that is not known":  {memory(0, 141_450, 0), []string{}, ""},
		"the CNN":                   {memory(card, 910, 168), []string{}, ""},
		"JAX's growth":              {memory(card, 880, 186), []string{}, ""},
		"with unbounded workspaces": {memory(card, 8848, 3492), []string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := advice.Of(tt.measured)
			require.Equal(t, tt.about, about(d))

			if len(d.Advice) > 0 {
				require.Equal(t, tt.evidence, d.Advice[0].Evidence)
			}
		})
	}
}

// A GPU that cannot tell how busy it is gets no label, and advice about its memory alone.
func TestOf_WithoutActivity(t *testing.T) {
	t.Parallel()

	m := memory(143_771, 141_450, 145)
	m.Footprint.Samples, m.Footprint.CPUMilli, m.CapMilli = 3, 4000, 4000
	d := advice.Of(m)
	require.Empty(t, d.Label)
	require.Contains(t, d.Why, "was not measured")
	require.Equal(t, []string{"preallocation"}, about(d))

	idle := on(100, 50, 10, 0, 60)
	d = advice.Of(idle)
	require.Empty(t, d.Label)
	require.Contains(t, d.Why, "no run had cores to spare")
	require.Equal(t, []string{"utilization"}, about(d))

	m.Footprint.Class = berth.ClassCPU
	require.Equal(t, advice.Diagnosis{}, advice.Of(m))
}

// For any figures nothing panics, each piece has its evidence, and a label needs
// activity; without a figure there is no advice.
func TestOf_Anything(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		figure := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 1200), rapid.Int64Range(0, 200_000*mib), rapid.SampledFrom([]int64{math.MinInt64, -1, math.MaxInt64}))
		m := advice.Measured{
			Footprint: berth.Footprint{
				Class: "NVIDIA H200", Samples: rapid.IntRange(0, 3).Draw(t, "samples"), DevicePeakBytes: figure.Draw(t, "peak"),
				CPUMilli: figure.Draw(t, "cores"), Duration: berth.Duration(figure.Draw(t, "duration")),
				DeviceActivity: berth.DeviceActivity{SMMilli: figure.Draw(t, "SMs"), DRAMMilli: figure.Draw(t, "bandwidth"), TensorMilli: figure.Draw(t, "tensor cores")},
			},
			Recent: berth.RecentUsage{
				FrameworkPeakBytes: figure.Draw(t, "framework"), HeldMilli: figure.Draw(t, "held"),
			},
			CardBytes: figure.Draw(t, "card"), CapMilli: figure.Draw(t, "cap"),
		}

		d := advice.Of(m)
		require.Equal(t, d, advice.Of(m), "the same figures say the same")

		active := m.Footprint.DeviceActivity != berth.DeviceActivity{}
		require.True(t, active || d.Label == "")

		for _, p := range d.Advice {
			require.True(t, strings.ContainsAny(p.Evidence, "0123456789") && p.Do != "" && p.About != "", p)
			require.True(t, active || p.About == advice.AboutPreallocation, p.About)
		}

		bare := advice.Of(advice.Measured{Footprint: berth.Footprint{Class: "NVIDIA H200"}, CardBytes: m.CardBytes, CapMilli: m.CapMilli})
		require.Equal(t, advice.Diagnosis{}, bare, "nothing was measured")
	})
}
