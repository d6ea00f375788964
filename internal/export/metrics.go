package export

import (
	"math"

	"github.com/berthml/berth"
)

// MetricColumns are the columns of the table of metric points. JSON has no word
// for a value that is not finite, so it is null there; status names it.
func MetricColumns() []Column {
	return []Column{
		{"trial", Integer, true},
		{"attempt", Integer, true},
		{"counts", Bool, true},
		{"name", Text, true},
		{"step", Integer, true},
		{"value", Float, true},
		{"status", Text, true},
		{"final", Bool, true},
		{"at", Time, true},
	}
}

// MetricRow is a metric point.
func MetricRow(m berth.ExportedMetric) Row {
	return Row{
		int64(m.TrialNumber), int64(m.AttemptNumber), m.Counts, m.Name, m.Step, number(m.MetricPoint), string(m.Status), m.Final, m.At,
	}
}

// number is a point's value as floating-point numbers have it.
func number(p berth.MetricPoint) float64 {
	switch p.Status {
	case berth.MetricNaN:
		return math.NaN()
	case berth.MetricPosInfinity:
		return math.Inf(1)
	case berth.MetricNegInfinity:
		return math.Inf(-1)
	default:
		return p.Value
	}
}
