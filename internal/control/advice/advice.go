package advice

import (
	"fmt"
	"strconv"

	"github.com/berthml/berth"
)

const (
	// A program with preallocatedMilli of a GPU's memory, or more, does not grow:
	// TensorFlow's default mode takes 984 (141,450 of 143,771 MiB, one H200,
	// 2026-11-21). JAX's takes 751 there; the framework's own count of used memory
	// distinguishes it from a large program: from half of the GPU on, three times that count
	// is more than a growing pool needs. Those held 1.3 to 2.4 times as much as was used.
	preallocatedMilli = 900
	halfMilli         = 500
	notGrown          = 3
)

// Measured is the measurement of one shape on one class of GPU. Zero fields are not
// known.
type Measured struct {
	Footprint berth.Footprint
	Recent    berth.RecentUsage
	CardBytes int64 // memory of a GPU of the class
	CapMilli  int64 // cores that the program's threads are capped to, in thousandths
}

// Diagnosis is the bottleneck of a program on its GPU, and what to do. Zero =
// the measurements are not conclusive.
type Diagnosis struct {
	Label  Label
	Why    string  // the figures that decide the label, or why it is empty
	Advice []Piece // most useful first
}

// Piece is one piece of advice.
type Piece struct {
	About    string // one of the Abouts
	Evidence string // the measurements
	Do       string // the step to take
}

// What advice is about.
const (
	AboutPreallocation = "preallocation"
	AboutTensorCores   = "tensor_cores"
	AboutBandwidth     = "bandwidth"
	AboutInput         = "input"
	AboutCores         = "cores"
	AboutBatch         = "batch"
	AboutSteps         = "steps_per_execution"
	AboutXLA           = "xla"
	AboutUtilization   = "utilization"
)

// Of returns the diagnosis of a shape's figures. Cores have no advice.
func Of(m Measured) Diagnosis {
	if m.Footprint.Class == berth.ClassCPU {
		return Diagnosis{}
	}

	d := Diagnosis{}
	if m.preallocates() {
		d.Advice = append(d.Advice, preallocation(m))
	}

	a := m.activity()
	if a == (berth.DeviceActivity{}) {
		if m.Footprint.Samples > 0 {
			d.Why = "how busy it keeps the GPU was not measured: the GPU cannot tell, or no run was long enough"
		}

		return d
	}

	d.Label, d.Why = label(m, a)
	d.Advice = append(d.Advice, pieces(m, a, d.Label)...)

	return d
}

// preallocates reports whether the program takes the GPU regardless of its
// need.
func (m Measured) preallocates() bool {
	peak, used := m.Footprint.DevicePeakBytes, m.Recent.FrameworkPeakBytes
	takes := func(milli int64) bool {
		return m.CardBytes > 0 && float64(peak) >= float64(m.CardBytes)*float64(milli)/1000
	}

	return takes(preallocatedMilli) && used < peak/2 || used > 0 && takes(halfMilli) && used <= peak/notGrown
}

func preallocation(m Measured) Piece {
	peak, used := m.Footprint.DevicePeakBytes, m.Recent.FrameworkPeakBytes

	evidence := fmt.Sprintf("it held %s of the GPU's %s (%s), although Berth lets frameworks grow as they need", berth.BytesText(peak), berth.BytesText(m.CardBytes),
		share(peak, m.CardBytes))
	if used > 0 {
		evidence += "; its framework used at most " + berth.BytesText(used) + " of that"
	} else {
		evidence += "; how much of that it used is not known, as no shim said so"
	}

	return Piece{
		AboutPreallocation, evidence,
		"remove what claims the card from the program: `per_process_gpu_memory_fraction`, `set_logical_device_configuration` with a memory limit, or " +
			"`TF_FORCE_GPU_ALLOW_GROWTH=false`; with JAX `XLA_PYTHON_CLIENT_PREALLOCATE=true` or a memory fraction; with PyTorch a tensor that only keeps " +
			"memory. TensorFlow trained as fast in growth mode, in 910 MiB instead of 141,450 (one H200)",
	}
}

// share is a part of a whole as a percentage.
func share(part, whole int64) string {
	return strconv.FormatFloat(float64(part)/float64(whole)*100, 'f', 0, 64) + " %"
}

// percent is thousandths as a percentage.
func percent(milli int64) string { return strconv.FormatFloat(float64(milli)/10, 'f', -1, 64) + " %" }

// cores is thousandths of a core in words.
func cores(milli int64) string { return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64) }
