package spec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/berthml/berth"
)

const maxEnqueue = 10_000

// checkSearch checks that the search has something to do and comes to an end.
func (c *checker) checkSearch() {
	if !c.reader.clean("/parameters") || !c.reader.clean("/search/algorithm") {
		return
	}

	searched := 0

	for _, p := range c.spec.Parameters {
		if p.Searched() {
			searched++
		}
	}

	switch c.spec.Search.Algorithm {
	case berth.SearchList:
		if len(c.spec.Enqueue) == 0 {
			c.add("/enqueue", codeSpaceEmpty, "the list algorithm tries what enqueue says; list at least one assignment there")
		}
	case berth.SearchGrid:
		if searched == 0 {
			c.add("/parameters", codeSpaceEmpty, "a grid needs at least one parameter with a range or values")
		}

		c.checkGrid()
	default:
		c.checkRandom()
	}

	if c.spec.Search.Learns() && c.spec.Objective == nil && c.reader.clean("/objective") {
		c.add("/search/algorithm", codeObjective, "%s learns from the results: say which metric to improve, such as "+
			"objective: {metric: val_accuracy, goal: maximize}; or take random", c.spec.Search.Algorithm)
	}

	if len(c.spec.Search.From) > 0 && !c.spec.Search.Learns() {
		c.add("/search/from", codeFrom, "%s search looks at no results; leave from out, or take auto, gp or tpe", c.spec.Search.Algorithm)
	}

	c.checkObjectives()

	if c.spec.EarlyStop != nil && c.spec.Objective == nil && c.reader.clean("/objective") {
		c.add("/early_stop", codeObjective, "trials are stopped by what they report: say which metric to improve, such as "+
			"objective: {metric: val_accuracy, goal: maximize}; or leave early_stop out")
	}
}

// checkObjectives checks what does not go with several objectives, or without one.
func (c *checker) checkObjectives() {
	o := c.spec.Objective

	if len(c.spec.Constraints) > 0 && len(c.spec.Search.From) > 0 {
		c.add("/search/from", codeFrom, "of earlier trials only the objective is known, not whether they keep the constraints; leave from out, or constraints")
	}

	if e := c.spec.EarlyStop; len(c.spec.Constraints) > 0 && e != nil && (e.Rule == berth.StopASHA || e.Rule == berth.StopMedian) {
		c.add("/early_stop/rule", codeEarlyStop, "%s compares trials by the objective alone, and would stop those that keep the constraints; "+
			"take patience or threshold, or leave early_stop or constraints out", e.Rule)
	}

	switch {
	case o == nil && len(c.spec.Constraints) > 0 && c.reader.clean("/objective"):
		c.add("/constraints", codeObjective, "constraints bound the trials among which the best is looked for: say what is best, such as "+
			"objective: {metric: val_accuracy, goal: maximize}; or leave constraints out")
	case o == nil || len(o.Further) == 0:
		return
	}

	if c.spec.EarlyStop != nil {
		c.add("/early_stop", codeEarlyStop, "early stopping judges one objective, and a trial that is bad at the first may be the best at another; "+
			"leave early_stop out, or name one objective")
	}

	if len(c.spec.Search.From) > 0 {
		c.add("/search/from", codeFrom, "earlier trials count by their rank in one objective; leave from out, or name one objective")
	}

	if c.spec.Search.Algorithm == berth.SearchGP {
		c.add("/search/algorithm", codeObjective, "gp searches one objective; take auto or tpe, or name one objective and bound the others by constraints")
	}
}

func (c *checker) checkGrid() {
	product := int64(1)

	for i, p := range c.spec.Parameters {
		if !p.Searched() {
			continue
		}

		n, ok := p.Points(berth.SearchGrid)
		if !ok {
			c.add("/parameters/"+strconv.Itoa(i), codeGrid, "a grid cannot list all of %q; write step, count or values", p.Name)

			return
		}

		if n > math.MaxInt64/product {
			c.add("/parameters", codeTooMany, "the grid has more than 2^63 points; use random search with max_trials")

			return
		}

		product *= n
	}

	if product > maxTrials {
		c.add("/parameters", codeTooMany, "the grid has %d points; a sweep has at most %d trials: take fewer points, or random search "+
			"with max_trials", product, maxTrials)
	}
}

func (c *checker) checkRandom() {
	if c.spec.Limits.MaxTrials > 0 {
		return
	}

	product := int64(1)

	for _, p := range c.spec.Parameters {
		if !p.Searched() {
			continue
		}

		n, ok := p.Points(berth.SearchRandom)
		if !ok {
			c.add("/limits/max_trials", codeTrials, "a search over %q never runs out of values; say how many trials to make, "+
				"such as max_trials: 50", p.Name)

			return
		}

		if product *= min(n, maxTrials+1); product > maxTrials {
			c.add("/limits/max_trials", codeTrials, "the search has more than %d values to try; say how many trials to make, "+
				"such as max_trials: 50", maxTrials)

			return
		}
	}
}

func (c *checker) checkResources() {
	l, p := c.spec.Limits, c.spec.Probe

	c.checkResourcesAt("/resources", c.spec.Resources)

	if p.MaxDuration > l.MaxTrialDuration {
		c.add("/probe/max_duration", codeTimeout, "a probe of %s cannot be longer than a trial; limits.max_trial_duration is %s",
			time.Duration(p.MaxDuration), time.Duration(l.MaxTrialDuration))
	}
}

// checkResourcesAt checks the resources of trials, or of a stage.
func (c *checker) checkResourcesAt(at string, r berth.Resources) {
	if r.Memory > 0 && r.ShmSize > r.Memory {
		c.add(at+"/shm_size", codeRange, "shm_size is part of memory and cannot be larger; memory is %s", berth.BytesText(int64(r.Memory)))
	}

	if c.spec.Probe.Mode == berth.ProbeOff && r.Memory == 0 {
		c.add(at+"/memory", codeMem, "without a probe nothing measures the memory; write a size here, or probe.mode: auto")
	}
}

// checkEnqueue checks the assignments that are tried first: every value is one
// its parameter can take, and every active parameter without a default has one.
func (c *checker) checkEnqueue(parameters map[string]berth.Parameter) {
	if len(c.spec.Enqueue) > maxEnqueue {
		c.add("/enqueue", codeTooMany, "there are %d assignments; at most %d are tried first", len(c.spec.Enqueue), maxEnqueue)

		return
	}

	choices := make(map[string]typed, len(parameters))

	for name, p := range parameters {
		choices[name] = typedOf(p)
	}

	for i, a := range c.spec.Enqueue {
		if c.reader.full() {
			return
		}

		at := "/enqueue/" + strconv.Itoa(i)
		full := c.completed(a)

		for _, name := range slices.Sorted(maps.Keys(a)) {
			if problem := c.enqueuedProblem(name, full, parameters, choices[name]); problem != "" {
				c.add(at+pointer(name), codeEnqueue, "%s", problem)
			}
		}

		if !c.reader.clean(at) {
			continue
		}

		for _, p := range c.spec.Parameters {
			if _, ok := full[p.Name]; !ok && p.Searched() && p.Active(full) {
				c.add(at, codeEnqueue, "no value for %q, which has no default; add it", p.Name)
			}
		}
	}
}

func (c *checker) enqueuedProblem(
	name string, a berth.Assignment, parameters map[string]berth.Parameter, choices typed,
) string {
	p, ok := parameters[name]

	switch {
	case !ok:
		return fmt.Sprintf("there is no parameter %q%s", shorten(name), c.suggestName(name))
	case !p.Searched():
		return fmt.Sprintf("%q is %s, so its value is not chosen; leave it out", name, p.Type)
	case p.Type == berth.ParameterCategorical && !choices.hasValue(a[name]), // a long list of choices is not scanned
		p.Type != berth.ParameterCategorical && !contains(p, a[name]):
		return fmt.Sprintf("%q cannot be %s", name, shorten(a[name].String()))
	case len(p.When) > 0 && !p.Active(a):
		return fmt.Sprintf("%q is not active with these values; leave it out", name)
	default:
		return ""
	}
}

// completed adds the fixed values and defaults that the search would add, so
// that conditions can be looked at.
func (c *checker) completed(a berth.Assignment) berth.Assignment {
	out, cloned := a, false

	for changed := true; changed; {
		changed = false

		for _, p := range c.spec.Parameters {
			v := p.Default
			if p.Type == berth.ParameterFixed {
				v = p.Value
			}

			if _, ok := out[p.Name]; !ok && v != nil && p.Active(out) {
				if !cloned {
					out, cloned = maps.Clone(a), true
				}

				out[p.Name], changed = *v, true
			}
		}
	}

	return out
}
