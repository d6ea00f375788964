package berth

import "time"

// MetricPoint is one reported value. A value that is not finite is kept as a
// status and never ranked.
type MetricPoint struct {
	Name   string       `json:"name"`
	Step   int64        `json:"step"`
	Value  float64      `json:"value"` // meaningless unless Status is finite
	Status MetricStatus `json:"status"`
	Final  bool         `json:"final,omitempty"` // from a "final" record, which overrides the strategy
	At     time.Time    `json:"at"`
}

// MetricStatus says whether a metric value is a number that can be ranked.
type MetricStatus string

// The statuses.
const (
	MetricFinite      MetricStatus = "finite"
	MetricNaN         MetricStatus = "nan"
	MetricPosInfinity MetricStatus = "infinity"
	MetricNegInfinity MetricStatus = "-infinity"
)
