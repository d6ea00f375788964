package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// summary is the result of a sweep.
type summary struct {
	Sweep      client.Sweep           `json:"sweep"`
	Best       *client.Trial          `json:"best,omitempty"`
	Shapes     []shapeSummary         `json:"shapes"`
	Failures   []client.FailureReason `json:"failures,omitempty"`
	Attempts   int                    `json:"attempts"`
	OOMRetries int                    `json:"oom_retries"`
	Notes      []string               `json:"notes"` // what packing saved, as in the report
}

// shapeSummary is the reserved and measured memory of one shape in the sweep.
type shapeSummary struct {
	Key               string           `json:"key"`
	Values            berth.Assignment `json:"values"`
	Trials            int              `json:"trials"`
	Attempts          int              `json:"attempts"`
	OOMs              int              `json:"out_of_memory"`
	ProbePeakBytes    int64            `json:"probe_peak_bytes"`    // 0 = not probed in this sweep
	KnownPeakBytes    int64            `json:"known_peak_bytes"`    // of the footprint as it is now; 0 = none
	MeasuredPeakBytes int64            `json:"measured_peak_bytes"` // over all attempts
	ReservedMinBytes  int64            `json:"reserved_min_bytes"`  // of attempts that are no probe
	ReservedMaxBytes  int64            `json:"reserved_max_bytes"`
}

// maxShapeLookups bounds the calls for the values of shapes.
const maxShapeLookups = 50

// summarize adds up a sweep that has ended.
func (r *remote) summarize(ctx context.Context, b board) (summary, error) {
	s := newSummary(b)

	for i := range s.Shapes[:min(len(s.Shapes), maxShapeLookups)] {
		probe, err := answer[client.Probe](r.GetProbe(ctx, s.Shapes[i].Key))

		switch {
		case err == nil:
			s.Shapes[i].Values = probe.Shape.Values
			for _, f := range probe.Footprints {
				s.Shapes[i].KnownPeakBytes = max(s.Shapes[i].KnownPeakBytes, f.MemoryPeakBytes)
			}

		case ExitCode(err) != ExitNotFound: // nothing was measured
			return s, err
		}
	}

	failures, err := r.failures(ctx, b.sweep)
	if err != nil {
		return s, err
	}

	s.Failures = failures

	report, err := answer[client.SweepReport](r.GetSweepReport(ctx, b.sweep.ID, &client.GetSweepReportParams{Limit: some(1)}))
	if s.Notes = report.Notes; err != nil { // the result is known without it
		s.Notes = []string{"what packing saved is not known: " + err.Error()}
	}

	return s, nil
}

// failures are why trials of a sweep failed.
func (r *remote) failures(ctx context.Context, sweep client.Sweep) ([]client.FailureReason, error) {
	if sweep.Counts.Failed+sweep.Counts.Infeasible == 0 {
		return nil, nil
	}

	list, err := answer[client.FailureList](r.ListFailures(ctx, sweep.ID))

	return list.Data, err
}

func newSummary(b board) summary {
	s := summary{Sweep: b.sweep, Attempts: len(b.attempts), OOMRetries: b.sweep.Counts.OomRetries, Shapes: []shapeSummary{}}

	for i := range b.trials {
		trial := b.trials[i]

		if b.sweep.Best != nil && trial.Number == b.sweep.Best.Trial {
			s.Best = &trial
		}
	}

	s.addShapes(b)

	return s
}

func (s *summary) addShapes(b board) {
	index := make(map[string]*shapeSummary)

	for _, trial := range b.trials {
		shape := index[trial.ShapeKey]
		if shape == nil {
			shape = &shapeSummary{Key: trial.ShapeKey}
			index[trial.ShapeKey] = shape
		}

		shape.Trials++
	}

	for _, a := range b.attempts {
		if shape := index[a.ShapeKey]; shape != nil {
			shape.add(a)
		}
	}

	for _, shape := range index {
		s.Shapes = append(s.Shapes, *shape)
	}

	slices.SortFunc(s.Shapes, func(a, b shapeSummary) int {
		return cmp.Or(cmp.Compare(a.MeasuredPeakBytes, b.MeasuredPeakBytes), cmp.Compare(a.Key, b.Key))
	})
}

func (s *shapeSummary) add(a client.Attempt) {
	s.Attempts++
	s.MeasuredPeakBytes = max(s.MeasuredPeakBytes, a.Usage.MemoryPeakBytes)

	if berth.FailureKind(a.FailureKind).OutOfMemory() {
		s.OOMs++
	}

	if a.Purpose == string(berth.PurposeProbe) {
		s.ProbePeakBytes = max(s.ProbePeakBytes, a.Usage.MemoryPeakBytes)

		return
	}

	if s.ReservedMinBytes == 0 || a.Demand.MemoryBytes < s.ReservedMinBytes {
		s.ReservedMinBytes = a.Demand.MemoryBytes
	}

	s.ReservedMaxBytes = max(s.ReservedMaxBytes, a.Demand.MemoryBytes)
}

// verdict is the error that a sweep which did not end well exits with.
func (s *summary) verdict() error {
	failed := s.Sweep.Counts.Failed + s.Sweep.Counts.Infeasible

	switch {
	case s.Sweep.State != client.SweepStateSucceeded:
		return exitf(ExitSweepFailed, "sweep %s: %s", short(s.Sweep.ID), withReason(s.Sweep))
	case failed > 0:
		return exitf(ExitSweepFailed, "sweep %s succeeded, but %s", short(s.Sweep.ID), plural(failed, "trial did not", "trials did not"))
	default:
		return nil
	}
}
