package preview

import (
	"fmt"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// Codes of the warnings that depend on the machines; internal/sweepfile/spec has the
// codes of the spec alone.
const (
	CodeNoHost      = "W_NO_HOST"
	CodeTooBig      = "W_TOO_BIG"
	CodeMaxParallel = "W_MAX_PARALLEL"
	CodeProbeOff    = "W_PROBE_OFF"
	CodeManyShapes  = "W_MANY_SHAPES"
	CodeTightForbid = "W_TIGHT_FORBID"
	CodeDuration    = "W_DURATION"
	CodeNoGPU       = "W_NO_GPU"
)

// warnings are the facts that a user wants to know before a launch. None of
// them stops a sweep.
func (k *Sketch) warnings(p Preview, hosts []berth.Host, capacity int64) []berth.Problem {
	out := spec.Warnings(k.spec)
	add := func(code, pointer, format string, args ...any) {
		out = append(out, berth.Problem{Code: code, Pointer: pointer, Message: fmt.Sprintf(format, args...)})
	}

	if len(hosts) == 0 {
		add(CodeNoHost, "", "no machine is connected, so nothing can run; start `berth worker` on one")
	}

	if len(hosts) > 0 && len(p.Shapes) > 0 && len(p.Shapes[0].Demands) == 0 {
		add(CodeNoGPU, "/resources/device", "no machine has a GPU that is shared as gpu_sharing says: the trials will be infeasible; "+
			"start `berth worker` on one that has, or write device: auto")
	}

	if shape, need, trials := tooBig(p.Shapes, capacity); len(hosts) > 0 && trials > 0 {
		add(CodeTooBig, "/parameters", "%d of %d trials need more memory than any machine has (%s): they will be infeasible; those with %s need %s",
			trials, p.Enumerated, berth.BytesText(capacity), shape.Values.Text(", "), berth.BytesText(need))
	}

	wanted := int(k.spec.Limits.MaxParallel)
	if wanted > p.AtOnce && p.AtOnce > 0 && (p.Trials == 0 || wanted <= p.Trials) {
		add(CodeMaxParallel, "/limits/max_parallel", "%d at once are more than can run: %s", wanted, p.Why)
	}

	if k.spec.Probe.Mode == berth.ProbeOff {
		add(CodeProbeOff, "/probe/mode", "nothing is measured first: each trial reserves %s, as the spec says, whether it needs it or not",
			berth.BytesText(int64(k.spec.Resources.Memory)))
	}

	if needed := k.unmeasured(p.Shapes); needed > 1 && 2*needed > p.Enumerated {
		add(CodeManyShapes, "/parameters", "%d of %d trials have a shape of their own, so most are measured, unless they lie between measured ones; "+
			"mark with memory: true only what changes memory", needed, p.Enumerated)
	}

	if k.tight {
		add(CodeTightForbid, "/forbid", "random search found %d of the trials in 100,000 draws, because forbid leaves so little; "+
			"the sweep may end before limits.max_trials: narrow the ranges of the parameters", p.Enumerated)
	}

	limit := time.Duration(k.spec.Limits.MaxDuration)
	if p.Duration != nil && limit > 0 && limit < p.Duration.Min {
		add(CodeDuration, "/limits/max_duration", "the sweep takes at least %s, so it will be ended after %s before all trials ran",
			p.Duration.Min.Round(time.Second), limit)
	}

	return out
}

// unmeasured counts the shapes of trials to measure. ProbesNeeded has those of stages too.
func (k *Sketch) unmeasured(shapes []Shape) (needed int) {
	for _, shape := range shapes {
		if !shape.Cached && k.spec.Probe.Mode != berth.ProbeOff {
			needed++
		}
	}

	return needed
}

// tooBig is the largest of the shapes that no machine can hold, its need, and how many trials
// have such shapes. A reservation is never above the largest machine, so the peak decides.
func tooBig(shapes []Shape, capacity int64) (largest Shape, need int64, trials int) {
	for _, shape := range shapes {
		needs := max(shape.Demand.MemoryBytes, shape.Known.MemoryPeakBytes)
		if needs <= capacity {
			continue
		}

		trials += shape.Trials
		if needs > need {
			largest, need = shape, needs
		}
	}

	return largest, need, trials
}
