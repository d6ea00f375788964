package runtrial

import (
	"crypto/sha256"
	"encoding/hex"
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

	typeFirstFit = "first_fit" // what the first of several fits computed
)

// mostPhases is three records for each of more epochs than trials have: the shim's
// MOST_RECORDS. Where there are so many, phases are not told apart.
const mostPhases = 10_000

// shimFileBytes of the shim's file are read: 50,000 epochs of ten metrics.
const shimFileBytes = 32 << 20

// shimReport is what the shim said of the attempt. Zero = it said nothing, and
// what Berth measures and the script reports is all there is.
type shimReport struct {
	kind      berth.FailureKind  // of the exception that ended the newest main process
	peakBytes int64              // of the GPU's memory, by the framework's own word
	phases    []sampling.PhaseAt // in the order in which they began; none where the last ones were not told
	told      int                // records of phases and steps: the shim writes no more than mostPhases of both
	steps     int64              // of the training
	stepTime  time.Duration      // of all of them
	firstFit  *berth.FirstFit    // of the first program that told of one
}

// shimRead reads what the shim says.
type shimRead struct {
	metrics *metrics.Series
	reader  *metrics.Reader

	mu   sync.Mutex
	said shimReport
}

// hearShim has the shim's records read.
func (o *output) hearShim() {
	o.shim = &shimRead{metrics: o.metrics, reader: metrics.NewReader("", "")}
	o.shimFile = newRecordFile(o.run, o.run.dirs.shim, shimRecords, shimFileBytes, o.shim.take)
}

// take reads one record. What it does not know, a newer shim may have written.
func (r *shimRead) take(line []byte) {
	var record struct {
		Type      string            `json:"type"`
		Kind      berth.FailureKind `json:"kind"`
		PeakBytes int64             `json:"device_peak_bytes"`
		Phase     string            `json:"phase"`
		At        float64           `json:"at"` // seconds since 1970
		Count     int64             `json:"count"`
		Seconds   float64           `json:"seconds"`
		Digest    string            `json:"digest"`
		Epochs    int               `json:"epochs"`
	}

	if json.Unmarshal(metrics.QuoteNonFinite(line), &record) != nil {
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	s := &r.said

	switch record.Type {
	case metrics.TypeHello: // a script may run several programs, one after the other: the last one's end counts
		s.kind = ""
	case metrics.TypeError:
		if record.Kind == berth.FailureDeviceOOM || record.Kind == berth.FailureHostOOM {
			s.kind = record.Kind
		}
	case metrics.TypeMemory:
		s.peakBytes = max(s.peakBytes, record.PeakBytes)
	case typePhase:
		r.metrics.Expect(berth.MetricsShim)

		s.told++
		s.phases = append(s.phases, sampling.PhaseAt{At: time.UnixMicro(int64(record.At * 1e6)), Name: record.Phase})
	case typeSteps:
		s.told++

		if record.Count > 0 && record.Seconds > 0 {
			s.steps += record.Count
			s.stepTime += time.Duration(record.Seconds * float64(time.Second))
		}
	case typeFirstFit:
		if s.firstFit == nil && len(record.Digest) == hex.EncodedLen(sha256.Size) && record.Epochs > 0 && record.Seconds > 0 {
			s.firstFit = &berth.FirstFit{Digest: record.Digest, Epochs: record.Epochs, Seconds: record.Seconds}
		}
	case metrics.TypeMetric:
		r.metrics.Add(berth.MetricsShim, r.reader.Read(berth.Stdout, string(line), time.Now().UTC())...)
	}

	if s.told >= mostPhases {
		s.phases = nil
	}
}

// report is what was said so far. Nil = the attempt has no shim.
func (r *shimRead) report() shimReport {
	if r == nil {
		return shimReport{}
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	return r.said
}
