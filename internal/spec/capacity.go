package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

// Capacity is the most that one host offers to one trial, over all hosts, and
// the most that a user may run at once. A zero quota means no limit.
type Capacity struct {
	MemoryBytes int64
	CPUMilli    int64
	MaxParallel int // quota of trials at once
	MaxTrials   int // quota of trials of a sweep

	Datasets []string // names of the data sets that some host has, sorted
}

// CheckCapacity says what a valid spec asks for and no host can ever give.
func CheckCapacity(s berth.Spec, has Capacity) []berth.Problem {
	var out []berth.Problem

	add := func(code, pointer, format string, args ...any) {
		out = append(out, berth.Problem{Code: code, Pointer: pointer, Message: fmt.Sprintf(format, args...)})
	}

	l, r := s.Limits, s.Resources

	if has.MaxTrials > 0 && l.MaxTrials > has.MaxTrials {
		add(CodeQuota, "/limits/max_trials", "%d trials are more than the %d you may make", l.MaxTrials, has.MaxTrials)
	}

	if has.MaxParallel > 0 && int(l.MaxParallel) > has.MaxParallel {
		add(CodeQuota, "/limits/max_parallel", "%d at once are more than the %d you may run", l.MaxParallel, has.MaxParallel)
	}

	if int64(r.Memory) > has.MemoryBytes {
		add(CodeUnsatisfiable, "/resources/memory", "%s is more than the largest host has: %s",
			berth.BytesText(int64(r.Memory)), berth.BytesText(has.MemoryBytes))
	}

	if int64(r.ShmSize) > has.MemoryBytes {
		add(CodeUnsatisfiable, "/resources/shm_size", "%s is more than the largest host has: %s",
			berth.BytesText(int64(r.ShmSize)), berth.BytesText(has.MemoryBytes))
	}

	if int64(r.CPUs) > has.CPUMilli {
		add(CodeUnsatisfiable, "/resources/cpus", "%g cores are more than the largest host has: %g",
			float64(r.CPUs)/1000, float64(has.CPUMilli)/1000)
	}

	for i, name := range s.DatasetNames() {
		if !slices.Contains(has.Datasets, name) {
			known := "no machine has any"
			if len(has.Datasets) > 0 {
				known = "there are: " + strings.Join(has.Datasets, ", ")
			}

			add(codeDataset, fmt.Sprintf("/datasets/%d/name", i), "no machine has a data set %q (%s); start a worker with --dataset %s=PATH", name, known, name)
		}
	}

	return out
}
