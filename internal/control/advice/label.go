package advice

import (
	"fmt"
	"time"

	"github.com/berthml/berth"
)

// Label is the bottleneck of a program on its GPU; empty = not known.
type Label string

// The labels.
const (
	ComputeBound Label = "compute_bound" // its SMs are busy
	MemoryBound  Label = "memory_bound"  // the bandwidth of its memory is used
	InputBound   Label = "input_bound"   // the GPU waits for the cores' input
	LatencyBound Label = "latency_bound" // the GPU waits for the program to launch the next kernel
)

// We chose the labels' thresholds for a probe before any measurement: SMs or bandwidth
// from 0.6 on, and below 0.3 of the SMs with more than 1.5 cores busy. On one H200
// (2026-11-24) they put matrix products (SM 0.67 to 0.82, bandwidth 0.17), memory
// streams (0.90, 0.74) and small matrix products (0.28, 0.00) where they belong, if
// bandwidth is asked first: SMs count as busy while they wait for memory.
const (
	busyMilli       = 600
	idleMilli       = 300
	inputCoresMilli = 1500

	// nearCapPercent of its cap, or more, is a program whose threads are all busy. Only a
	// cap above one core tells: Python alone keeps one core busy.
	nearCapPercent = 90
	oneCoreMilli   = 1000

	// tensorIdleMilli or less of the tensor cores, with sms from tensorBusySMs on.
	tensorIdleMilli = 50
	tensorBusySMs   = 500

	// xlaPays is the run from which compiling may pay: with XLA the first epoch of a
	// fine-tuning took 33.1 s instead of 2.2, each later one 1.3, so 35 more epochs of
	// 2.2 s paid for it (TensorFlow 2.21, one H200, 2026-11-21).
	xlaPays = berth.Duration(2 * time.Minute)
)

// activity is how busy the program keeps the GPU while it holds it, or else in the mean
// over its runs. Zero = not known.
func (m Measured) activity() berth.DeviceActivity {
	a := m.Footprint.DeviceActivity
	if m.Recent.HeldMilli <= 0 || m.Recent.HeldMilli >= berth.FullActivity {
		return a
	}

	held := func(milli int64) int64 {
		return int64(min(float64(milli)*1000/float64(m.Recent.HeldMilli), berth.FullActivity))
	}

	return berth.DeviceActivity{SMMilli: held(a.SMMilli), DRAMMilli: held(a.DRAMMilli), TensorMilli: held(a.TensorMilli)}
}

// over says over which time activity is a mean.
func (m Measured) over() string {
	if m.Recent.HeldMilli <= 0 {
		return "in the mean over whole runs, start and end included"
	}

	return "while it held the GPU"
}

// coresText is the program's use of cores.
func (m Measured) coresText() string {
	text := "it kept " + cores(m.Footprint.CPUMilli) + " cores busy in the mean over its run"
	if m.CapMilli > 0 {
		text += ", its threads being capped to " + cores(m.CapMilli)
	}

	return text
}

// label decides by the figures, and says which.
func label(m Measured, a berth.DeviceActivity) (Label, string) {
	busy := fmt.Sprintf("its SMs had work %s of the time, and it used %s of the bandwidth of the GPU's memory, %s", percent(a.SMMilli), percent(a.DRAMMilli), m.over())
	cpu := m.Footprint.CPUMilli

	switch {
	case a.DRAMMilli >= busyMilli:
		return MemoryBound, busy
	case a.SMMilli >= busyMilli:
		return ComputeBound, busy
	case a.SMMilli >= idleMilli:
		return LatencyBound, busy
	case cpu <= 0:
		return "", busy + "; whether it waits for its input or launches too little at once is not known, as no run had cores to spare"
	case cpu > inputCoresMilli, m.CapMilli > oneCoreMilli && m.atCap():
		return InputBound, busy + "; " + m.coresText()
	default:
		return LatencyBound, busy + "; " + m.coresText()
	}
}

// atCap reports whether the program keeps all cores busy that its threads may use.
func (m Measured) atCap() bool {
	return m.CapMilli > 0 && m.Footprint.CPUMilli > 0 && m.Footprint.CPUMilli >= m.CapMilli/100*nearCapPercent
}

// pieces is advice by activity.
func pieces(m Measured, a berth.DeviceActivity, l Label) (out []Piece) {
	add := func(about, evidence, do string) { out = append(out, Piece{about, evidence, do}) }
	sms := "its SMs had work " + percent(a.SMMilli) + " of the time " + m.over()

	if a.SMMilli >= tensorBusySMs && a.TensorMilli < tensorIdleMilli {
		add(AboutTensorCores, fmt.Sprintf("%s, its tensor cores %s", sms, percent(a.TensorMilli)),
			"let matrix products and convolutions use tensor cores: mixed precision (Keras: `keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")`), "+
				"and batch, units and filters in multiples of 8")
	}

	if l == MemoryBound {
		add(AboutBandwidth, "it used "+percent(a.DRAMMilli)+" of the bandwidth of the GPU's memory "+m.over(),
			"move fewer bytes: mixed precision halves those of activations, and XLA (`jit_compile=True`) joins steps that work on each element. "+
				"Company gains it little: two that stream memory take as long together as one after the other (one H200)")
	}

	if l == InputBound {
		add(AboutInput, sms+"; "+m.coresText(),
			"prepare data once and ahead of the GPU: `dataset.cache()` after what is the same in each epoch, `dataset.prefetch(tf.data.AUTOTUNE)` last, "+
				"`num_parallel_calls=tf.data.AUTOTUNE` in `map`. "+moreCores(m))
	}

	if l == LatencyBound {
		out = append(out, latency(m, sms)...)
	}

	if a.SMMilli < idleMilli {
		add(AboutUtilization, sms,
			"do not go by nvidia-smi's utilisation, which is the time in which any kernel ran: it showed 97 % where SMs had work 7 % of the time (one H200). "+
				"Let more trials share the GPU: Berth does so by itself while `gpu_sharing` is not exclusive")
	}

	return out
}

// moreCores is advice about the cap, where it binds.
func moreCores(m Measured) string {
	if !m.atCap() {
		return "More cores (`resources.cpus`) help only after that: it does not use all that it may"
	}

	return "Then give it more cores (`resources.cpus`): it uses all that it may"
}

// latency is advice for a program that launches too little at once.
func latency(m Measured, sms string) (out []Piece) {
	out = append(out, Piece{
		AboutBatch, sms,
		"give the GPU more at once: a larger batch, with the learning rate searched anew. Its memory grows with it, so mark the batch `memory: true`",
	})

	if m.CapMilli <= oneCoreMilli && m.atCap() {
		out = append(out, Piece{
			AboutCores, m.coresText(),
			"run it once with `cpus: 2`. If it keeps more than 1.5 cores busy then, its input is what it waits for (`dataset.cache()`, `prefetch`); else launching is",
		})
	}

	out = append(out, Piece{
		AboutSteps, sms,
		"`model.compile(steps_per_execution=64)` only for a trial that has its GPU alone: there an epoch took 1.34 s instead of 2.19, " +
			"but 24 that shared a GPU did 10.0 times the work of one, and 11.3 times without (TensorFlow, one H200)",
	})

	if took := m.Footprint.Duration; took > 0 {
		out = append(out, xla(took))
	}

	return out
}

func xla(took berth.Duration) Piece {
	const measured = "With XLA the first epoch of a fine-tuning took 33 s instead of 2.2, later ones 1.3 (one H200)"

	p := Piece{About: AboutXLA, Evidence: "a run takes " + time.Duration(took).Round(time.Second).String() + " in the mean"}

	if took < xlaPays {
		p.Do = "`jit_compile=False` in `model.compile`: Keras compiles by default on a GPU, which so short a run does not earn back. " + measured
	} else {
		p.Do = "try `jit_compile=True`: it is worth it for long runs only. " + measured
	}

	return p
}
