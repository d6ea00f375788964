package cli

import (
	"cmp"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/search/simulate"
)

// pastTrials are trials that ran, with what they reported.
type pastTrials struct {
	parameters []berth.Parameter // that are searched
	trials     []pastTrial
	rows       int // of the table: these, and trials that did not succeed
}

type pastTrial struct {
	values berth.Assignment
	run    simulate.Run
}

// readPast reads the trials that succeeded, from the tables of `berth sweep export`.
func readPast(sweep berth.Spec, trials, metrics string) (*pastTrials, error) {
	past := &pastTrials{parameters: slices.DeleteFunc(slices.Clone(sweep.Parameters), func(p berth.Parameter) bool { return !p.Searched() })}

	curves, err := readCurves(metrics, sweep.Objective.Metric)
	if err != nil {
		return nil, err
	}

	err = eachRow(trials, []string{"number", "state", "value", "seconds"}, func(row map[string]string) {
		past.rows++

		if row["state"] != string(berth.TrialSucceeded) {
			return
		}

		value, valueErr := strconv.ParseFloat(row["value"], 64)
		seconds, secondsErr := strconv.ParseFloat(row["seconds"], 64)

		if values, ok := past.assignment(row); ok && errors.Join(valueErr, secondsErr) == nil {
			past.trials = append(past.trials, pastTrial{values, curves[row["number"]].run(value, seconds)})
		}
	})
	if err == nil && len(past.trials) < 2 { //nolint:mnd // one is no choice
		err = exitf(ExitUsage, "%s has %s that succeeded with values of the file's parameters; a simulation needs many more", trials,
			plural(len(past.trials), "trial", "trials"))
	}

	return past, err
}

// assignment are the searched values of a row; ok is false when an active one is missing.
func (p *pastTrials) assignment(row map[string]string) (a berth.Assignment, ok bool) {
	a = berth.Assignment{}

	for _, parameter := range p.parameters {
		text := row["params."+parameter.Name]
		if text == "" {
			continue
		}

		number, err := strconv.ParseFloat(text, 64)

		switch {
		case parameter.Type == berth.ParameterCategorical:
			for _, v := range parameter.Values {
				if n, isNumber := v.Number(); v.String() == text || isNumber && err == nil && n == number {
					a[parameter.Name] = v
				}
			}
		case err == nil && parameter.Type == berth.ParameterInt:
			a[parameter.Name] = berth.IntValue(int64(number))
		case err == nil:
			a[parameter.Name] = berth.FloatValue(number)
		}
	}

	for _, parameter := range p.parameters {
		if _, has := a[parameter.Name]; !has && parameter.Active(a) {
			return nil, false
		}
	}

	return a, true
}

// untried begins a sweep: each call gives the nearest trial that was not given yet.
func (p *pastTrials) untried() made {
	left := slices.Clone(p.trials)

	return func(a berth.Assignment) (berth.Assignment, simulate.Run, bool) {
		if len(left) == 0 {
			return nil, simulate.Run{}, false
		}

		nearest, least := 0, math.Inf(1)

		for i, t := range left {
			if far := p.distance(a, t.values); far < least {
				nearest, least = i, far
			}
		}

		t := left[nearest]
		left = slices.Delete(left, nearest, nearest+1)

		return t.values, t.run, true
	}
}

// distance is the sum over the parameters: of numbers the part of their range, on their scale,
// of choices 1 unless they are equal.
func (p *pastTrials) distance(a, b berth.Assignment) (sum float64) {
	for _, parameter := range p.parameters {
		x, isX := a[parameter.Name].Number()
		y, isY := b[parameter.Name].Number()

		switch {
		case parameter.Type == berth.ParameterCategorical || !isX || !isY:
			if a[parameter.Name] != b[parameter.Name] {
				sum++
			}
		case parameter.Log:
			sum += math.Abs(math.Log(x/y)) / math.Log(*parameter.Max / *parameter.Min)
		default:
			sum += math.Abs(x-y) / max(*parameter.Max-*parameter.Min, math.SmallestNonzeroFloat64)
		}
	}

	return sum
}

// pastCurve is what a trial reported of the objective.
type pastCurve struct {
	values []float64
	steps  []int64
	at     []time.Time
}

// readCurves reads the objective's points by trial; none without a file.
func readCurves(path, metric string) (map[string]*pastCurve, error) {
	curves := make(map[string]*pastCurve)
	if path == "" {
		return curves, nil
	}

	err := eachRow(path, []string{"trial", "counts", "name", "step", "value", "at"}, func(row map[string]string) {
		value, valueErr := strconv.ParseFloat(row["value"], 64)
		step, stepErr := strconv.ParseInt(row["step"], 10, 64)
		at, atErr := time.Parse(time.RFC3339Nano, row["at"])

		if row["name"] != metric || row["counts"] != "true" || errors.Join(valueErr, stepErr, atErr) != nil {
			return
		}

		c := cmp.Or(curves[row["trial"]], &pastCurve{})
		curves[row["trial"]] = c
		c.values, c.steps, c.at = append(c.values, value), append(c.steps, step), append(c.at, at)
	})

	return curves, err
}

// run is what the trial would do again: its curve, with the time before the first report in
// the first step; a trial without a curve is one step.
func (c *pastCurve) run(value, seconds float64) (r simulate.Run) {
	if c == nil || len(c.values) == 0 {
		return simulate.Run{Values: []float64{value}, Seconds: []float64{seconds}}
	}

	r.Values, r.Steps, r.End = c.values, c.steps, &value
	first := seconds

	for i := range c.at[1:] {
		took := max(c.at[i+1].Sub(c.at[i]).Seconds(), 0)
		r.Seconds = append(r.Seconds, took)
		first -= took
	}

	r.Seconds = slices.Insert(r.Seconds, 0, max(first, 0))

	return r
}

// eachRow reads a CSV table by the names of its columns.
func eachRow(path string, needed []string, take func(row map[string]string)) error {
	file, err := os.Open(path) //nolint:gosec // G304: the user names a file of their own
	if err != nil {
		return exitf(ExitUsage, "reading past trials: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read

	rows := csv.NewReader(file)

	header, err := rows.Read()
	if err != nil {
		return exitf(ExitUsage, "reading %s: %w", path, err)
	}

	for _, name := range needed {
		if !slices.Contains(header, name) {
			return exitf(ExitUsage, "%s has no column %q; `berth sweep export SWEEP` writes it, with --what metrics for curves", path, name)
		}
	}

	for {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return exitf(ExitUsage, "reading %s: %w", path, err)
		}

		row := make(map[string]string, len(header))
		for i, name := range header {
			row[name] = cells[i]
		}

		take(row)
	}
}
