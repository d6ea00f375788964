package berth

import (
	"strings"
	"time"
)

// Sort is the sort key of a list. Rows without that key come last in either
// direction.
type Sort struct {
	By         string // a Sort… constant that the list knows
	Descending bool
}

// The keys of lists.
const (
	SortCreatedAt  = "created_at"
	SortFinishedAt = "finished_at"
	SortName       = "name" // ignoring case
	SortNumber     = "number"
	SortValue      = "value"
	SortDuration   = "duration" // from the start to the end
)

// ParseSort reads a key; a minus before it means descending.
func ParseSort(text string) Sort {
	by, descending := strings.CutPrefix(text, "-")

	return Sort{By: by, Descending: descending}
}

// Position is where a page of a sorted list ended. Key and Tie are as the
// database writes them, so that none loses a digit.
type Position struct {
	Section int    `json:"p,omitempty"` // of the list: rows without a key have one of their own
	Key     string `json:"k,omitempty"`
	Tie     string `json:"t"` // tells rows with the same key apart
}

// Page is a part of a list. Next is where it ended; nil = it is the last one.
// Total is how many rows the whole list has, counted up to a limit of the list,
// and 0 unless it was asked for.
type Page[T any] struct {
	Rows  []T
	Next  *Position
	Total int
}

// Most that Page.Total counts: the cost of counting must not grow for ever.
const (
	MostSweepsCounted = 10_000
	MostTrialsCounted = 100_000
)

// SweepQuery asks for a page of sweeps.
type SweepQuery struct {
	States    []SweepState // any of these; empty = all
	Name      string       // is contained in the name, ignoring case; empty = any
	CreatedBy string       // the name of the token; empty = any
	Sort      Sort         // SortCreatedAt, SortName or SortFinishedAt
	After     *Position    // nil = from the beginning
	Limit     int
	Count     bool // fill Page.Total, up to MostSweepsCounted
}

// TrialFilter selects trials of a sweep.
type TrialFilter struct {
	States   []TrialState // any of these; empty = all
	ValueMin *float64     // inclusive; a trial without a value is not in such a list
	ValueMax *float64
	Stage    string // key of a stage, or its beginning, whose output they use; empty = all
}

// TrialQuery asks for a page of a sweep's trials.
type TrialQuery struct {
	TrialFilter

	Sort  Sort      // SortNumber, SortValue or SortDuration; ties by ascending number
	After *Position // nil = from the beginning
	Limit int
	Count bool // fill Page.Total, up to MostTrialsCounted

	Metrics []string // names of those that LatestAttempt.Metrics tells
}

// ListedTrial is a trial with the newest attempt's values that a list shows.
type ListedTrial struct {
	Trial

	WaitingSince *time.Time     // when it asked for the place that it waits for; nil = it waits for none
	Latest       *LatestAttempt // nil = it had no attempt
}

// LatestAttempt is the newest attempt of a trial as a list shows it.
type LatestAttempt struct {
	ID              string
	Number          int
	Stage           string
	State           AttemptState
	Purpose         Purpose
	HostID          string
	HostName        string
	DeviceID        string // empty = it runs without a GPU
	MemoryBytes     int64  // reserved of the host's memory
	DeviceBytes     int64  // reserved of the GPU's memory
	MemoryPeakBytes int64  // measured; 0 = not, or not yet
	DevicePeakBytes int64
	// Metric is the newest point of the objective's metric; of a sweep without an
	// objective, of the first metric by name. nil = it reported none.
	Metric *MetricPoint
	// Metrics are the newest points of TrialQuery.Metrics that it reported, in no order.
	Metrics []MetricPoint
}
