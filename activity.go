package berth

// FullActivity is a GPU that is busy all the time, in the thousandths of DeviceActivity.
const FullActivity = 1000

// DeviceActivity is how busy a GPU is, or how busy one attempt keeps it, in the mean
// over some time: thousandths, 0 to FullActivity. Zero = not known: a measured
// SMMilli is at least 1.
type DeviceActivity struct {
	SMMilli     int64 `json:"sm_milli,omitempty"`     // of the time, an SM had work; averaged over the SMs
	DRAMMilli   int64 `json:"dram_milli,omitempty"`   // of the bandwidth of the GPU's memory
	TensorMilli int64 `json:"tensor_milli,omitempty"` // of the time, a tensor core was in use
}

// Busiest is the activity of the part of a GPU that is full first: its SMs, or the
// bandwidth of its memory.
func (a DeviceActivity) Busiest() int64 { return min(max(a.SMMilli, a.DRAMMilli), FullActivity) }
