package berth

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"time"
)

// FootprintSource says how a footprint was measured.
type FootprintSource string

// The sources, from the most to the least trusted.
const (
	FootprintFull    FootprintSource = "full"    // a whole run
	FootprintShort   FootprintSource = "short"   // two epochs under the Keras caps, or until early stopping
	FootprintPartial FootprintSource = "partial" // a run in progress, a run cut off by the probe's time cap, or one with an unmeasured part
	FootprintRaised  FootprintSource = "raised"  // nothing but an out-of-memory was seen

	// FootprintPredicted is no measurement: it follows from shapes that differ in numbers.
	FootprintPredicted FootprintSource = "predicted"
)

// Footprint is the measured need of a shape on one class of device. Peaks are the
// largest of the attempts of the shape there that ran to their end, and grow as
// attempts finish.
type Footprint struct {
	ShapeKey         string          `json:"shape_key"`
	Class            DeviceClass     `json:"device_class"`
	Source           FootprintSource `json:"source"`
	Samples          int             `json:"samples"`                      // finished attempts that were measured
	MemoryPeakBytes  int64           `json:"memory_peak_bytes"`            // working set of the container: anonymous + shared + kernel
	MemoryFloorBytes int64           `json:"memory_floor_bytes,omitempty"` // this reservation ran out of memory; 0 = none did, or the shape has shown since that it needs less
	FloorPassed      int             `json:"floor_passed,omitempty"`       // whole runs that succeeded since MemoryFloorBytes was set
	DevicePeakBytes  int64           `json:"device_peak_bytes,omitempty"`
	DeviceFloorBytes int64           `json:"device_floor_bytes,omitempty"` // MemoryFloorBytes of the GPU's memory
	DevicePassed     int             `json:"device_passed,omitempty"`      // FloorPassed of DeviceFloorBytes
	DeviceActivity   DeviceActivity  `json:"device_activity,omitzero"`     // mean over an attempt, its start and end included
	CPUMilli         int64           `json:"cpu_milli"`                    // mean cores used, in thousandths; 0 = never measured with cores to spare
	Duration         Duration        `json:"duration"`                     // mean wall time of a whole attempt
	MeasuredAt       time.Time       `json:"measured_at"`
}

// Footprints are the measured needs of a shape, by class of device.
type Footprints map[DeviceClass]Footprint

// Of returns the footprint of a class; nil = not measured.
func (f Footprints) Of(class DeviceClass) *Footprint {
	known, ok := f[class]
	if !ok {
		return nil
	}

	return &known
}

// Usage is the measured use of one attempt.
type Usage struct {
	MemoryPeakBytes    int64    `json:"memory_peak_bytes"` // 0 = not measured
	DevicePeakBytes    int64    `json:"device_peak_bytes,omitempty"`
	FrameworkPeakBytes int64    `json:"framework_peak_bytes,omitempty"` // most that the program's framework held of the GPU's memory, by its own word; 0 = the shim did not say
	DevicePhases       Phases   `json:"device_phases,omitzero"`         // DevicePeakBytes by the phases of a Keras program
	Steps              int64    `json:"steps,omitempty"`                // of its training that were timed; 0 = the shim timed none
	StepTime           Duration `json:"step_time,omitempty"`            // their mean
	DeviceSamples      int      `json:"device_samples,omitempty"`       // readings of the GPU; 0 = its memory was not measured
	CPU                Duration `json:"cpu"`                            // processor time
	Wall               Duration `json:"wall"`                           // from container start to exit
	Samples            int      `json:"samples"`
	CPUPeriods         int64    `json:"cpu_periods,omitempty"`   // of 0.1 s in which its processes ran
	CPUThrottled       int64    `json:"cpu_throttled,omitempty"` // of these, in which their limit of cores held them back
	CPUContended       bool     `json:"cpu_contended,omitempty"` // the host had no cores to spare: the job may need more than it got
	OOMKills           int      `json:"oom_kills,omitempty"`     // processes the kernel killed in the container's cgroup
	BelowLimit         bool     `json:"below_limit,omitempty"`   // MemorySample.BelowLimit, last read

	// Unseen is the part of Wall in which nothing was measured: the worker was
	// away or came late. 0 = it was measured throughout. While it is not, the
	// peak is a lower bound and the CPU time may be too small.
	Unseen Duration `json:"unseen,omitempty"`

	// SeenUntil is when something was measured last, while the attempt runs. The
	// next worker finds by it how long nothing was. Zero in an outcome.
	SeenUntil time.Time `json:"seen_until,omitzero"`

	// The same of its GPU.
	DeviceUnseen    Duration  `json:"device_unseen,omitempty"`
	DeviceSeenUntil time.Time `json:"device_seen_until,omitzero"`

	// DeviceActivity is how busy it kept its GPU, in the mean over DeviceActive: the
	// time in which it held memory there and its activity was measured. DeviceUnknown is
	// the time in which it held memory there and its part is unknown: a program outside
	// Berth was on the GPU, or shapes without a footprint were.
	DeviceActivity  DeviceActivity `json:"device_activity,omitzero"`
	DeviceActive    Duration       `json:"device_active,omitempty"` // 0 = not measured
	DeviceUnknown   Duration       `json:"device_unknown,omitempty"`
	DeviceContended bool           `json:"device_contended,omitempty"` // others kept the GPU full: it may need more than it got
}

// HeldBackFrom is the part of its time from which on a limit of cores made a program
// notably slower.
const HeldBackFrom = 0.25

// heldBackPeriods are the fewest that say so: five seconds.
const heldBackPeriods = 50

// HeldBack is the share of its processes' run time in which the core limit held
// them back, 0 to 1. 0 = never, or not measured.
func (u Usage) HeldBack() float64 {
	if u.CPUPeriods < heldBackPeriods {
		return 0
	}

	return float64(u.CPUThrottled) / float64(u.CPUPeriods)
}

// Phases is the most that a program of Keras held of the GPU's memory before its first
// fit, while it trained, and while it validated, in bytes. Zero fields = it was not seen
// there, or another run of Berth's saw a part.
type Phases struct {
	StartBytes      int64 `json:"start_bytes,omitempty"`
	TrainingBytes   int64 `json:"training_bytes,omitempty"`
	ValidationBytes int64 `json:"validation_bytes,omitempty"`
}

// MeanActivity is how busy it kept its GPU in the mean over its whole run: while a
// program starts and ends, others can use the GPU. Where its part is not known it was
// as busy as where it is. Zero = not known.
func (u Usage) MeanActivity() DeviceActivity {
	held := u.DeviceActive + u.DeviceUnknown

	part := func(milli int64) int64 {
		if u.Wall <= held {
			return milli
		}

		return int64(float64(milli) * float64(held) / float64(u.Wall))
	}

	a := u.DeviceActivity

	return DeviceActivity{SMMilli: max(part(a.SMMilli), min(a.SMMilli, 1)), DRAMMilli: part(a.DRAMMilli), TensorMilli: part(a.TensorMilli)}
}

// DeviceMeasured reports whether the attempt's GPU was read throughout.
func (u Usage) DeviceMeasured() bool { return u.DeviceSamples > 0 && u.DeviceUnseen == 0 }

// nearLimitPercent of its limit, or more, is a container that had no room left.
// The working set leaves out page cache that the kernel could not take back in
// time, and a sample comes only five times a second, so it is less than 100.
const nearLimitPercent = 90

// NearMemoryLimit reports whether a measured peak of host memory shows that a
// container came to its limit. False when either is not known (0).
func NearMemoryLimit(peakBytes, limitBytes int64) bool {
	return peakBytes > 0 && limitBytes > 0 && peakBytes >= limitBytes/100*nearLimitPercent
}

// RecentUsage is the usage of the newest successful attempts of a shape on one
// class of GPU, beyond its footprint.
type RecentUsage struct {
	Class              DeviceClass
	FrameworkPeakBytes int64    // the largest by a framework's own word; 0 = none gave it
	Phases             Phases   // the largest of each
	StepTime           Duration // the mean of the newest that timed its steps; 0 = none did
	HeldMilli          int64    // part of their runs in which they held memory of the GPU, in thousandths; 0 = not known
}

// Expected is how long an attempt takes, on the class where it takes longest;
// 0 = not known.
func (f Footprints) Expected() time.Duration {
	longest := Duration(0)
	for _, known := range f {
		longest = max(longest, known.Duration)
	}

	return time.Duration(longest)
}

// ProbedShape is a shape with its footprints: ClassCPU first, then by class.
type ProbedShape struct {
	Key        string
	Shape      Shape
	Footprints []Footprint
}

// Shape is everything that decides an attempt's need of memory. Trials of one
// shape share one probe, across sweeps.
type Shape struct {
	ImageDigest string            `json:"image_digest"`
	Command     []string          `json:"command"`              // template, with its placeholders
	Entrypoint  bool              `json:"entrypoint,omitempty"` // the image's stands before Command
	Workdir     string            `json:"workdir,omitempty"`
	Values      Assignment        `json:"values"` // of the parameters that decide memory, fixed and derived ones included
	Stage       string            `json:"stage"`
	DeviceModel string            `json:"device_model"` // empty = CPU
	Environment map[string]string `json:"environment,omitempty"`
	CPUMilli    int64             `json:"cpu_milli"` // thread caps change memory
	Datasets    []string          `json:"datasets,omitempty"`
	Inputs      []string          `json:"inputs,omitempty"` // earlier stages: a script that finds their outputs does less
}

// Key is the SHA-256 of the shape's canonical JSON, in hex.
func (s Shape) Key() string {
	data, err := json.Marshal(s) // map keys are sorted; Values refuse NaN on the way in
	if err != nil {
		panic("berth: shape cannot be marshalled: " + err.Error())
	}

	sum := sha256.Sum256(data)

	return hex.EncodeToString(sum[:])
}

// Family is the key of the shapes that differ from this one in numbers only, and these numbers
// by name. A shape without numbers is a family by itself.
func (s Shape) Family() (key string, numbers []float64) {
	values := maps.Clone(s.Values)

	for _, name := range s.Values.Names() {
		if n, ok := s.Values[name].Number(); ok {
			numbers = append(numbers, n)
			values[name] = StringValue("a number")
		}
	}

	if len(numbers) > 0 {
		s.Values = values
	}

	return s.Key(), numbers
}

// ShortKey is the first 12 hex digits of a key, for people.
func ShortKey(key string) string {
	return key[:min(len(key), 12)]
}
