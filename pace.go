package berth

import (
	"fmt"
	"math"
	"time"
)

// Company is how many attempts share a GPU, and how.
type Company struct {
	Mode   SharingMode `json:"mode"`
	AtOnce int         `json:"at_once"` // one of CompanySizes; 0 = not said
}

// CompanySizes are the numbers of attempts that paces distinguish: neighbours
// differ by a third to a half, so that an attempt gains or loses more from one to
// the next than its times scatter. The last is above every limit of MPS.
func CompanySizes() []int { return []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96} }

// CompanySize is the size that stands for a mean number of attempts.
func CompanySize(mean float64) int {
	sizes := CompanySizes()
	for i, size := range sizes[:len(sizes)-1] {
		if mean < math.Sqrt(float64(size)*float64(sizes[i+1])) {
			return size
		}
	}

	return sizes[len(sizes)-1]
}

// Pace is how long attempts of one shape took on a GPU in one mix: the seconds from
// start to exit, by the mean number of attempts on the GPU during that time. Two of 10
// s at once are as good as one of 5 s alone. The added seconds of all trials are the
// duration of a sweep.
type Pace struct {
	Company

	ShapeKey string  `json:"shape_key"`
	Samples  int     `json:"samples"`  // attempts that ended well
	Failed   int     `json:"failed"`   // other attempts, without stopped ones and ones that their machine failed
	Mean     float64 `json:"mean"`     // seconds; of the last PaceMemory attempts, about
	Variance float64 `json:"variance"` // of one attempt, in seconds squared
}

// PaceMemory is about how many attempts a pace is the mean of: each new one counts for
// at least 1/PaceMemory. The first to end in a mix are the short ones, so they must not
// count for ever; programs and data change too. Equal attempts scatter by 2 to 5 %, so
// that the mean scatters by 1 %.
const PaceMemory = 16

// PaceKept is how long a pace counts without a new attempt: other work on the machine,
// drivers and data change.
const PaceKept = 14 * 24 * time.Hour

// Advice is how many attempts should share a GPU now, and in which mode, by measured
// paces of ended attempts. The zero value leaves both to the placer's rule.
type Advice struct {
	Company // AtOnce: overrides the rule

	Capped bool   `json:"capped,omitempty"` // and no more: more were measured to do no more
	Trying bool   `json:"trying,omitempty"` // it is to be measured
	Why    string `json:"why,omitempty"`    // with its figures, in plain words
}

// Mix identifies the shapes on a GPU for stored paces: the key of the running and
// waiting shapes, and the attempt's own shape in it. Its zero value is without a GPU.
type Mix struct {
	Key string `json:"key"`
	Own string `json:"own"`
}

// MixPace is a pace with the mix and the place that it was seen in.
type MixPace struct {
	Pace

	Mix   string
	Place string    // Host.GPUPlace
	At    time.Time // of the last attempt
}

// Loaded is a shape that runs or waits, with the template of its sweep: the shapes of
// one template differ by the values of parameters alone.
type Loaded struct {
	ShapeKey string
	Template string
}

// HeavyTemplate stands for the shapes of a template that were measured to fill much of a GPU.
func HeavyTemplate(template string) string { return template + " heavy" }

// GPUPlace is where paces of a GPU are valid: its kind, and the machine's cores and
// GPUs, because trials beside each other wait for those, too.
func (h *Host) GPUPlace(d Device) string {
	return fmt.Sprintf("%s, 1 of %d, %g cores", d.Class().kind(), len(h.Devices), float64(h.CPUMilli)/1000)
}
