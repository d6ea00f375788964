package runtrial

import (
	"context"
	"fmt"
	"sync"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/failure"
	"github.com/berthml/berth/internal/search/stopping"
)

// judge follows the objective of an attempt and has it judged where its sweep's rule of
// early stopping says. Nil = the sweep has none.
type judge struct {
	run     *run
	rule    *stopping.Rule
	counted func(source string) bool // the newest report named no step
	tell    chan<- failure.Intent    // told once that the attempt is to be stopped

	mu       sync.Mutex
	follower *stopping.Follower
	first    *berth.MetricPoint // whose step is only counted: the job may report once, at its end
	heard    bool               // a report
	from     int64              // the step of the first
	over     bool               // a report was at early_stop.max, or beyond: the trial is not stopped any more
	reports  []berth.RungReport // not judged yet
	answered bool               // one was judged
	stop     bool               // tell was told
}

// newJudge follows what the chosen source of metrics reports. A short probe is not judged.
func newJudge(r *run, o *output, tell chan<- failure.Intent) *judge {
	spec := r.who.Spec
	if spec.EarlyStop == nil || spec.Objective == nil || r.short {
		return nil
	}

	rule := stopping.New(*spec.EarlyStop, *spec.Objective)
	j := &judge{run: r, rule: rule, tell: tell, follower: rule.Follow(), counted: func(source string) bool {
		return source == berth.MetricsFile && o.file.reader.Counted.Load() || source == berth.MetricsStdout && o.printed.Counted.Load()
	}}
	o.metrics.Hear = j.hear

	return j
}

func (j *judge) hear(source string, p berth.MetricPoint) {
	j.mu.Lock()
	defer j.mu.Unlock()

	if j.counted(source) && !j.heard && j.first == nil {
		j.first = &p

		return
	}

	j.takeFirst()
	j.take(p)
}

// takeFirst takes in the report that waited for a second one. The caller holds j.mu.
func (j *judge) takeFirst() {
	if j.first != nil {
		j.take(*j.first)
		j.first = nil
	}
}

// take takes in a report. The caller holds j.mu.
func (j *judge) take(p berth.MetricPoint) {
	if !j.heard {
		j.heard, j.from = true, p.Step
	}

	most := j.run.who.Spec.EarlyStop.Max
	j.over = j.over || most > 0 && p.Step >= most

	var value *float64
	if p.Status == berth.MetricFinite {
		value = &p.Value
	}

	j.reports = append(j.reports, j.follower.Add(p.Step, value)...)
}

// ask has new reports judged. While the database is away they wait for the next time: a late
// stop is still right. Errors: fenced.
func (j *judge) ask(ctx context.Context) error {
	if j == nil {
		return nil
	}

	for {
		j.mu.Lock()
		if len(j.reports) == 0 || j.stop || j.over {
			j.mu.Unlock()

			return nil
		}

		report := j.reports[0]
		j.mu.Unlock()

		decision, err := j.run.judgeRung(ctx, report, j.rule)

		switch {
		case berth.KindOf(err) == berth.KindFenced:
			return err
		case err != nil:
			if ctx.Err() == nil {
				j.run.log.Warn("judging the attempt; trying again", "attempt", j.run.who.Attempt.ID, "error", err)
			}

			return nil
		}

		j.mu.Lock()
		j.reports, j.answered = j.reports[1:], true
		j.mu.Unlock()

		if decision.Stop {
			return j.end(decision.Why)
		}
	}
}

// end has the attempt stopped, once. The reason is written down first, for the verdict.
func (j *judge) end(why string) error {
	if err := j.run.keep(func(k *record) { k.StopWhy = why }); err != nil {
		j.run.log.Warn("writing down why the attempt is stopped early", "attempt", j.run.who.Attempt.ID, "error", err)
	}

	j.mu.Lock()
	j.stop = true
	j.mu.Unlock()

	intent := failure.IntentPrune
	if j.rule.Keeps() {
		intent = failure.IntentPlateau
	}

	j.tell <- intent

	return nil
}

// rest are the reports that were not judged while the attempt ran: others are compared with
// them.
func (j *judge) rest() (reports []berth.RungReport) {
	if j == nil || j.stop {
		return nil
	}

	j.mu.Lock()
	defer j.mu.Unlock()

	j.takeFirst()

	for _, report := range j.reports {
		report.Ended = true
		reports = append(reports, report)
	}

	return reports
}

// notes say that a trial came to its end without having been judged.
func (j *judge) notes() []string {
	if j == nil || j.answered {
		return nil
	}

	metric, most := j.run.who.Spec.Objective.Metric, j.run.who.Spec.EarlyStop.Max

	switch {
	case j.heard && most > 0 && j.from >= most:
		return []string{fmt.Sprintf("early stopping had nothing to judge: %q was first reported at step %d, and early_stop.max is %d", metric, j.from, most)}
	case len(j.reports) > 0 && j.rule.Compares():
		return []string{fmt.Sprintf("early stopping had nothing to judge: %q was reported at its end only", metric)}
	default:
		return nil
	}
}

// judgeRung has a report judged.
func (r *run) judgeRung(ctx context.Context, report berth.RungReport, rule *stopping.Rule) (berth.StopDecision, error) {
	return r.records.JudgeRung(ctx, r.who.Attempt.ID, r.order.Token, report, func(others []berth.RungValue) berth.StopDecision {
		return rule.Decide(report, others)
	})
}
