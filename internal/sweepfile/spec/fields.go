package spec

import (
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec/document"
)

// Limits of the format.
const (
	maxTrials        = 100_000
	maxTrialDuration = 7 * day
	maxSweepDuration = 366 * day
	minMemory        = 16 * mib // less is a unit that was forgotten
)

// spec reads the whole document. An absent key stays zero where defaults.go
// decides, and takes its default here otherwise.
func (r *reader) spec(root *document.Node) berth.Spec {
	o := r.open(root, "")

	s := berth.Spec{
		Version:              int(o.integer("version", bounds{1, 1, codeVersion}, 1)),
		Name:                 o.text("name"),
		Image:                o.text("image"),
		Command:              o.texts("command"),
		Entrypoint:           o.truth("entrypoint"),
		Workdir:              o.text("workdir"),
		EnvironmentVariables: o.textMap("environment_variables"),
		Parameters:           o.parameters(),
		Forbid:               o.texts("forbid"),
		Enqueue:              o.enqueue(),
		Stages:               o.stages(),
		Search:               o.search(),
		Objective:            o.objective(),
		Constraints:          o.constraints(),
		EarlyStop:            o.earlyStop(),
		Limits:               o.limits(),
		Resources:            o.resources(),
		Probe:                o.probe(),
		Metrics:              o.metrics(),
		Retry:                o.retry(),
		Network:              o.truth("network"),
		Shim:                 o.maybe("shim"),
		Datasets:             o.datasets(),
		Secrets:              o.secrets(),
		Labels:               o.textMap("labels"),
	}
	o.finish()

	return s
}

func (o *object) limits() berth.Limits {
	l := o.object("limits")
	defer l.finish()

	return berth.Limits{
		MaxTrials:        int(l.integer("max_trials", bounds{1, maxTrials, codeTrials}, 0)),
		MaxParallel:      berth.Parallel(l.integerOrAuto("max_parallel", bounds{1, 10_000, codeConcurrency})),
		MaxFailedTrials:  int(l.integer("max_failed_trials", bounds{1, maxTrials, codeRange}, 0)),
		MaxDuration:      l.duration("max_duration", time.Second, maxSweepDuration, codeTimeout, 0),
		MaxTrialDuration: l.duration("max_trial_duration", time.Second, maxTrialDuration, codeTimeout, day),
		MaxOutput:        l.size("max_output", mib, codeRange),
	}
}

func (o *object) resources() berth.Resources {
	r := o.object("resources")
	defer r.finish()

	resources := berth.Resources{
		Device:     berth.DeviceWanted(r.enum("device", codeValue, "auto", "gpu", "cpu")),
		GPUMemory:  r.size("gpu_memory", minMemory, codeMem),
		Memory:     r.size("memory", minMemory, codeMem),
		CPUs:       r.cpus("cpus"),
		ShmSize:    r.size("shm_size", 4096, codeRange),
		GPUSharing: r.enum("gpu_sharing", codeValue, "auto", "mps", "time_slicing", "exclusive"),
	}

	if resources.GPUMemorySpill = r.truth("gpu_memory_spill"); resources.GPUMemorySpill {
		switch {
		case resources.Device == berth.DeviceCPU:
			r.add(r.field("gpu_memory_spill").Offset, r.at("gpu_memory_spill"), codeValue, "trials on cores have no GPU's memory to spill; leave it out, or device: cpu")
		case berth.SharingMode(resources.GPUSharing) == berth.SharingMPS:
			r.add(r.field("gpu_memory_spill").Offset, r.at("gpu_memory_spill"), codeValue, "a trial in unified memory never shares its GPU by MPS; leave one of the two out")
		}
	}

	if r.field("gpus") != nil {
		r.unsupported("gpus", "a trial runs on one GPU; leave it out, and write device: gpu if it needs one")
	}

	return resources
}

// unsupported refuses a member that the format has and this version cannot do.
func (o *object) unsupported(name, why string) {
	o.add(o.field(name).Offset, o.at(name), codeUnsupported, "%s", why)
}

func (o *object) probe() berth.ProbeSpec {
	p := o.object("probe")
	defer p.finish()

	return berth.ProbeSpec{
		Mode:        berth.ProbeMode(p.enum("mode", codeValue, "auto", "full", "short", "off")),
		MaxDuration: p.duration("max_duration", time.Second, maxTrialDuration, codeTimeout, 0),
	}
}

// metrics reads where metrics come from.
func (o *object) metrics() berth.MetricsSpec {
	m := o.object("metrics")
	defer m.finish()

	return berth.MetricsSpec{
		Source:  m.enum("source", codeValue, berth.MetricsAuto, berth.MetricsFile, berth.MetricsStdout, berth.MetricsTensorBoard),
		Pattern: m.text("pattern"),
	}
}

func (o *object) retry() berth.RetrySpec {
	r := o.object("retry")
	defer r.finish()

	return berth.RetrySpec{MaxAttempts: int(r.integer("max_attempts", bounds{1, 10, codeRetries}, 3))}
}

func (o *object) datasets() []berth.DatasetMount {
	var out []berth.DatasetMount

	o.each("datasets", func(n *document.Node, pointer string) {
		d := o.open(n, pointer)
		out = append(out, berth.DatasetMount{Name: d.text("name"), Target: d.text("target"), Version: d.text("version")})
		d.finish()
	})

	return out
}

func (o *object) secrets() []berth.SecretMount {
	var out []berth.SecretMount

	o.each("secrets", func(n *document.Node, pointer string) {
		s := o.open(n, pointer)
		out = append(out, berth.SecretMount{Name: s.text("name"), File: s.text("file")})
		s.finish()
	})

	return out
}
