package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
	"github.com/berthml/berth/api/client"
)

// tryResult is what a try came to.
type tryResult struct {
	Sweep    client.Sweep     `json:"sweep"`
	Trial    *client.Trial    `json:"trial,omitempty"` // nil = none was made
	Attempts []client.Attempt `json:"attempts"`
	Metrics  []tryMetric      `json:"metrics"`
	Preview  *client.Preview  `json:"preview,omitempty"` // of many trials with these values, as the machines are
	file     string
}

// tryMetric is one metric that the trial reported.
type tryMetric struct {
	Name      string `json:"name"`
	Values    int    `json:"values"`
	Last      string `json:"last"`
	LastStep  int64  `json:"last_step"`
	Objective bool   `json:"objective"`
}

func (t *trying) result(ctx context.Context, b board) (*tryResult, error) {
	r := &tryResult{Sweep: b.sweep, Attempts: b.attempts, Metrics: []tryMetric{}, file: t.file.name}

	if len(b.trials) > 0 {
		r.Trial = &b.trials[0]
	}

	if n := len(b.attempts); n > 0 {
		points, err := patiently(ctx, notice(t.cmd), func() ([]client.Metric, error) { return t.to.metricPoints(ctx, b.attempts[n-1].ID) })
		if err != nil {
			return nil, err
		}

		r.addMetrics(points)
	}

	if r.succeeded() {
		r.Preview = t.preview(ctx, *r.Trial)
	}

	return r, nil
}

// manyTrials is more than fit on a machine at once.
const manyTrials = 500

// tryCount is the parameter in which trials of a preview differ.
const tryCount = "berth_try_count"

// preview is what many trials with the values of this one would do; nil when the
// server does not say, as what was measured is told all the same.
func (t *trying) preview(ctx context.Context, trial client.Trial) *client.Preview {
	s := t.one
	values := berth.Assignment{}

	for _, p := range s.Parameters {
		if v, ok := trial.Params[p.Name]; ok && p.Searched() {
			values[p.Name] = v
		}
	}

	// Trials with the same values are one trial, so they differ in a number that the
	// command does not use: of floats memory does not depend.
	s.Parameters = append(slices.Clone(s.Parameters), berth.Parameter{
		Name: tryCount, Type: berth.ParameterFloat, Min: new(float64(0)), Max: new(float64(manyTrials)),
	})
	s.Enqueue = nil

	for i := range manyTrials {
		trial := maps.Clone(values)
		trial[tryCount] = berth.FloatValue(float64(i))
		s.Enqueue = append(s.Enqueue, trial)
	}

	s.Search.Algorithm = berth.SearchList
	s.Limits.MaxTrials, s.Limits.MaxParallel = manyTrials, 0

	data, err := json.Marshal(s)
	if err != nil {
		return nil
	}

	preview, err := answer[client.Preview](t.to.PreviewSweepWithBody(ctx, "application/json", bytes.NewReader(data)))
	if err != nil || len(preview.Shapes) == 0 {
		return nil
	}

	return &preview
}

func (r *tryResult) addMetrics(points []client.Metric) {
	for _, p := range points {
		at := slices.IndexFunc(r.Metrics, func(m tryMetric) bool { return m.Name == p.Name })
		if at < 0 {
			at = len(r.Metrics)
			r.Metrics = append(r.Metrics, tryMetric{
				Name: p.Name, Objective: r.Sweep.Objective != nil && p.Name == r.Sweep.Objective.Metric, LastStep: p.Step,
			})
		}

		m := &r.Metrics[at]
		m.Values++

		if p.Step >= m.LastStep {
			m.Last, m.LastStep = pointText(p), p.Step
		}
	}
}

// succeeded reports whether the trial did.
func (r *tryResult) succeeded() bool {
	return r.Trial != nil && r.Trial.State == client.TrialStateSucceeded
}

// verdict is the error of a try that did not end well.
func (r *tryResult) verdict() error {
	switch {
	case r.succeeded():
		return nil
	case r.Trial == nil:
		return exitf(ExitSweepFailed, "no trial was made: %s", withReason(r.Sweep))
	default:
		return exitf(ExitSweepFailed, "the trial %s (%s): %s", r.Trial.State, first(r.Trial.FailureKind, "no kind"), oneLine(first(r.Trial.Message, r.Sweep.Reason, "no reason given")))
	}
}

func (o *options) printTry(w io.Writer, r *tryResult) error {
	if o.output != formatTable && o.output != "" {
		return o.print(w, r, func() table { return tryTable(r) })
	}

	say(w, "\n")

	if err := printTable(w, tryTable(r)); err != nil {
		return err
	}

	say(w, "%s", nextText(r))

	return nil
}

// tryTable is what was measured, a line each.
func tryTable(r *tryResult) table {
	t := table{}

	if r.Trial == nil {
		return t
	}

	t.add("trial", string(r.Trial.State), assignment(r.Trial.Params))

	for i, a := range r.Attempts {
		name := "measured"
		if len(r.Attempts) > 1 {
			name = "attempt " + strconv.Itoa(i+1)
		}

		t.add(name, first(a.FailureKind, string(a.State)), usageText(a))
	}

	for _, m := range r.Metrics {
		mark := ""
		if m.Objective {
			mark = "the objective"
		}

		t.add(m.Name, plural(m.Values, "value", "values")+", last "+m.Last, mark)
	}

	if len(r.Metrics) == 0 {
		t.add("metrics", "none were found")
	}

	if r.Trial.Value != nil && r.Sweep.Objective != nil {
		t.add("value", number(*r.Trial.Value), r.Sweep.Objective.Goal+" "+r.Sweep.Objective.Metric)
	}

	if p := r.Preview; p != nil {
		s := p.Shapes[0]
		reserved := bytesText(s.MemoryBytes) + ", " + cores(s.CPUMilli) + " cores"
		if s.DeviceBytes > 0 || s.ExclusiveDevice {
			reserved += ", " + ofGPU(s) + " of a GPU"
		}

		t.add("reserves", reserved, "each next trial with these values of what changes memory")
		t.add("at once", strconv.Itoa(p.AtOnce), p.Why)
	}

	return t
}

// nextText is the next step.
func nextText(r *tryResult) string {
	id := short(r.Sweep.ID)

	switch {
	case r.succeeded() && r.Sweep.Objective != nil && r.Trial.Value == nil:
		names := make([]string, len(r.Metrics))
		for i, m := range r.Metrics {
			names[i] = m.Name
		}

		return fmt.Sprintf("\nnext: the trial reported no %s; write one of these as the objective's metric: %s\n", r.Sweep.Objective.Metric, first(strings.Join(names, ", "), "none were found"))
	case r.succeeded():
		return "\nnext: berth sweep submit -f " + r.file + " --wait\n"
	default:
		return fmt.Sprintf("\nits log again: berth trial logs %s 1\nwhen it is mended (a changed script needs its image built again): berth try -f %s\n", id, r.file)
	}
}
