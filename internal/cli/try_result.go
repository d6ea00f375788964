package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth/api/client"
)

// tryResult is the result of a try.
type tryResult struct {
	Sweep    client.Sweep     `json:"sweep"`
	Trial    *client.Trial    `json:"trial,omitempty"` // nil = none was made
	Attempts []client.Attempt `json:"attempts"`
	Metrics  []tryMetric      `json:"metrics"`
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

	return r, nil
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

// tryTable has a line for each measured value.
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
		return "\nnext: berth sweep submit -f " + r.file + " --wait\nhow many such trials run at once, and how long they take: berth sweep preview -f " + r.file + "\n"
	default:
		return fmt.Sprintf("\nits log again: berth trial logs %s 1\nwhen it is mended (a changed script needs its image built again): berth try -f %s\n", id, r.file)
	}
}
