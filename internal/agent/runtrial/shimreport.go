package runtrial

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/metrics"
	"github.com/berthml/berth/internal/agent/sampling"
)

// The types of the shim's records beside those that metrics knows (docs/shim.md).
const (
	typePhase = "phase" // it trains, validates, or does something else
	typeSteps = "steps" // how long steps took
)

// mostPhases is three records for each of more epochs than trials have: the shim's
// MOST_RECORDS. Where there are so many, phases are not told apart.
const mostPhases = 10_000

// shimReport is what the shim said of the attempt. Zero = it said nothing, and
// what Berth measures and the script reports is all there is.
type shimReport struct {
	metrics *metrics.Series
	parser  *metrics.RecordParser

	mu        sync.Mutex
	kind      berth.FailureKind  // of the exception that ended the newest main process
	hostOOM   bool               // some main process ended with the shim's 87, which a script may pass on
	peakBytes int64              // of the GPU's memory, by the framework's own word
	phases    []sampling.PhaseAt // in the order in which they began
	told      int                // records of phases and steps: the shim writes no more than mostPhases of both
	steps     int64              // of the training
	stepTime  time.Duration      // of all of them
}

// hearShim has the shim's records read.
func (o *output) hearShim() {
	o.shim = &shimReport{metrics: o.metrics, parser: metrics.NewRecordParser()}
	o.shimFile = &recordFile{run: o.run, dir: o.run.dirs.shim, name: shimRecords, take: o.shim.take, left: shimFileBytes}
}

// take reads one record. What it does not know, a newer shim may have written.
func (s *shimReport) take(line []byte) {
	var record struct {
		Type      string            `json:"type"`
		Kind      berth.FailureKind `json:"kind"`
		PeakBytes int64             `json:"device_peak_bytes"`
		Phase     string            `json:"phase"`
		At        float64           `json:"at"` // seconds since 1970
		Count     int64             `json:"count"`
		Seconds   float64           `json:"seconds"`
	}

	if json.Unmarshal(metrics.QuoteNonFinite(line), &record) != nil {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	switch record.Type {
	case metrics.TypeHello: // a script may run several programs, one after the other: the last one's end counts
		s.kind = ""
	case metrics.TypeError:
		if record.Kind == berth.FailureDeviceOOM || record.Kind == berth.FailureHostOOM {
			s.kind = record.Kind
			s.hostOOM = s.hostOOM || record.Kind == berth.FailureHostOOM
		}
	case metrics.TypeMemory:
		s.peakBytes = max(s.peakBytes, record.PeakBytes)
	case typePhase:
		s.metrics.Expect(berth.MetricsShim)

		if s.told++; s.told < mostPhases {
			s.phases = append(s.phases, sampling.PhaseAt{At: time.UnixMicro(int64(record.At * 1e6)), Name: record.Phase})
		}
	case typeSteps:
		s.told++

		if record.Count > 0 && record.Seconds > 0 {
			s.steps += record.Count
			s.stepTime += time.Duration(record.Seconds * float64(time.Second))
		}
	case metrics.TypeMetric:
		s.metrics.Add(berth.MetricsShim, s.parser.Parse(line, time.Now().UTC())...)
	}
}

// said87 reports whether a main process ended with the shim's exit code for host memory.
func (s *shimReport) said87() bool {
	if s == nil {
		return false
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	return s.hostOOM
}

// trains reports whether steps of a training were told.
func (s *shimReport) trains() bool {
	if s == nil {
		return false
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	return s.steps > 0
}

// timed returns how many steps of the training were timed, their mean, and the phases;
// no phases where the last ones were not told.
func (s *shimReport) timed() (steps int64, mean time.Duration, phases []sampling.PhaseAt) {
	if s == nil {
		return 0, 0, nil
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	phases = s.phases
	if s.told >= mostPhases {
		phases = nil
	}

	return s.steps, s.stepTime / time.Duration(max(s.steps, 1)), phases
}

// ended returns how the newest main process ended, by its own word, and the
// framework's peak.
func (s *shimReport) ended() (kind berth.FailureKind, peakBytes int64) {
	if s == nil {
		return "", 0
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	return s.kind, s.peakBytes
}
