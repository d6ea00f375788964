package berth

import "time"

// FootprintSource says how a footprint was measured.
type FootprintSource string

// The sources, from the most to the least trusted.
const (
	FootprintFull    FootprintSource = "full"    // a whole run
	FootprintShort   FootprintSource = "short"   // two epochs under the Keras caps
	FootprintPartial FootprintSource = "partial" // a run that was cut off by the probe's time cap
	FootprintRaised  FootprintSource = "raised"  // lifted after an out-of-memory; the peak is a lower bound
)

// Footprint is what is known of a shape's needs. Peaks are the largest seen in
// any attempt of the shape, and grow as attempts finish.
type Footprint struct {
	ShapeKey         string          `json:"shape_key"`
	Source           FootprintSource `json:"source"`
	Samples          int             `json:"samples"`                      // finished attempts that were measured
	MemoryPeakBytes  int64           `json:"memory_peak_bytes"`            // working set of the container: anonymous + shared + kernel
	MemoryFloorBytes int64           `json:"memory_floor_bytes,omitempty"` // a reservation below this ran out of memory
	DevicePeakBytes  int64           `json:"device_peak_bytes,omitempty"`
	CPUMilli         int64           `json:"cpu_milli"` // mean cores used, in thousandths; 0 = never measured with cores to spare
	Duration         Duration        `json:"duration"`  // mean wall time of a whole attempt
	MeasuredAt       time.Time       `json:"measured_at"`
}

// Usage is what one attempt was seen to use.
type Usage struct {
	MemoryPeakBytes int64    `json:"memory_peak_bytes"` // 0 = not measured
	DevicePeakBytes int64    `json:"device_peak_bytes,omitempty"`
	CPU             Duration `json:"cpu"`  // processor time
	Wall            Duration `json:"wall"` // from container start to exit
	Samples         int      `json:"samples"`
	CPUContended    bool     `json:"cpu_contended,omitempty"` // the host had no cores to spare: the job may need more than it got
	OOMKills        int      `json:"oom_kills,omitempty"`     // processes the kernel killed in the container's cgroup
}

// ProbedShape is a shape with its footprint.
type ProbedShape struct {
	Shape     Shape
	Footprint Footprint
}
