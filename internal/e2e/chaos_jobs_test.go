package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

const mib = 1 << 20

// lateLasts is how long the job late runs, in ms. It keeps its memory for the
// last four tenths, which is longer than what Berth takes for a gap in its
// measurements (2 s): a run whose peak was not seen is known to have one.
const lateLasts = 6000

// order is one sweep of a storm, drawn before the storm begins. It says all
// that the sweep's file depends on.
type order struct {
	Job         string
	Name        string
	Group       int    // sweeps of one group share their shapes
	Probe       string // auto, full, short or off; the job decides when empty
	Times       []int  // ms that each trial works
	MaxParallel int    // 0 = no limit
	Mutations   []int  // indexes into mutations
	Size        int    // MiB of a follower
	Target      int    // ms of the trial that ends the sweep; 0 = none
	MaxFailed   int    // limits.max_failed_trials; 0 = none
}

// expectation is how one trial of a job must end.
type expectation struct {
	State string   // of the trial
	Kinds []string // failure kinds that may be named; none = any
	Value *float64 // what it must report
	// Epochs is what it reports on the way, and prints; none = one line at its end.
	Epochs []float64
	// Once: one attempt must do, unless the machine or a person ended it.
	Once bool
	// NoOOM: its shape is small, so no attempt may run out of memory.
	NoOOM bool
	// MaxBytes is the most that an attempt may reserve; 0 = any.
	MaxBytes int64
	// Outgrows: it takes more of its GPU than it reserves, which MPS alone forbids.
	Outgrows bool
	// Any: any state and kind that names what the user did; infra never.
	Any bool
}

// job is one kind of sweep of a storm: how many cards of the deck are its own,
// its file, and how each of its trials must end. A run of a minute submits about
// as many sweeps as the deck has cards.
type job struct {
	name   string
	weight int
	trials [2]int                                     // the least and the most trials
	file   func(o order) string                       // without the lines that all sweeps share
	want   func(values map[string]string) expectation // by the trial's parameters
	// hittable: a person may kill containers of it. The others would be charged
	// for that, and end in another way than declared.
	hittable bool
	// refusable: Berth may refuse the file.
	refusable bool
	// shared: the job has probes that sweeps share.
	shared bool
	// limit is limits.max_trial_duration; 0 = none.
	limit time.Duration
	// onGPU: its trials are for GPUs, and all that run have one; the others are for cores.
	onGPU bool
}

// steadyLimit ends no trial of the job steady, which runs for 4.1 s at most: a
// busy machine has as long again. A worker may come back after it, and finds
// what ended before.
const steadyLimit = 8 * time.Second

// gpuJob is the file of trials that run a program on a GPU: two steps, each as many
// ms as the trial reports in the end. resources are those beside the lightest.
func gpuJob(o order, mib int, flags, resources string) string {
	return fmt.Sprintf("command: [/busy, gpu, '--mib', '%d', '--steps', '2', '--cpu', 0s, '--gpu', '{{ms}}ms', '--retry', 200ms, '--value', '{{ms}}'%s]\n", mib, flags) +
		parameters(o.times(), "{name: shape, values: [1], memory: true}") +
		"resources: {device: gpu, memory: 64MiB, cpus: 0.1" + resources + "}\n" + o.environment()
}

// probeBytes is what a shape that was not measured reserves on hosts of 1 GiB:
// a quarter of the largest.
const probeBytes = 256 * mib

// slackBytes is what a reservation may be over what a probe gets, such as the
// rounding of a margin.
const slackBytes = 64 * mib

func succeeds(value float64) expectation {
	return expectation{State: "succeeded", Kinds: []string{"ok"}, Value: &value}
}

// reports is the end of a trial that reports its own ms, multiplied, so that no
// trial can have the result of another.
func reports(values map[string]string, factor float64) expectation {
	e := expectation{State: "succeeded", Kinds: []string{"ok"}}

	if ms, err := strconv.ParseFloat(values["ms"], 64); err == nil { // else judgePoints says so
		e.Value = new(factor * ms)
	}

	return e
}

func fails(kind string) expectation {
	return expectation{State: "failed", Kinds: []string{kind}, Once: true}
}

const (
	sharedCommand = "command: [/busy, train, '{{ms}}', '{{ms}}', '{{mib}}']\n"
	halfCore      = "resources: {memory: 64MiB, cpus: 0.5}\nprobe: {mode: 'off'}\n"
)

// jobs are what the sweeps of a storm run.
var jobs = []job{
	{
		name: "steady", weight: 4, trials: [2]int{2, 8}, hittable: true, limit: steadyLimit,
		file: func(o order) string {
			return "command: [/busy, epochs, '{{ms}}', '{{ms}}', '8']\n" + parameters(o.times()) + halfCore
		},
		want: wantEpochs,
	},
	{ // so many trials that a sweep would doubt them and pause itself, were they to fail
		name: "wide", weight: 1, trials: [2]int{12, 12},
		file: wideFile, want: wantTiny,
	},
	{ // all at once, so that ends of trials come together, and one of them ends the sweep
		name: "aims", weight: 1, trials: [2]int{8, 12},
		file: wideFile, want: wantTiny,
	},
	{
		name: "shared", weight: 4, trials: [2]int{2, 5}, hittable: true, shared: true,
		file: func(o order) string {
			resources := quarterCore
			if o.Probe == "off" { // nothing is measured, so the file must say
				resources = "resources: {cpus: 0.25, memory: 128MiB}\n"
			}

			return sharedCommand + parameters(o.times(), sharedShape(o)) + resources + probe(o) + o.environment()
		},
		want: wantSmall,
	},
	{ // its probe is thrown away, and nothing of it may reach the run; it reports how it resumed
		name: "checkpoint", weight: 2, trials: [2]int{1, 2},
		file: func(o order) string {
			o.Probe = "short"

			return "command: [/busy, checkpoint, '{{ms}}']\n" + parameters(o.times(), "{name: shape, values: [1], memory: true}") +
				quarterCore + probe(o) + o.environment()
		},
		want: func(map[string]string) expectation {
			e := succeeds(1)
			e.NoOOM, e.MaxBytes = true, probeBytes+slackBytes

			return e
		},
	},
	{ // takes its memory at the end of its life
		name: "late", weight: 1, trials: [2]int{3, 4},
		file: func(o order) string {
			o.Probe = "full"

			return "command: [/busy, late, '" + strconv.Itoa(lateLasts) + "', '{{ms}}', '150']\n" + parameters(o.times(), "{name: shape, values: [1], memory: true}") +
				quarterCore + probe(o) + o.environment()
		},
		want: func(values map[string]string) expectation {
			e := reports(values, 1)
			e.NoOOM, e.MaxBytes = true, probeBytes+slackBytes

			return e
		},
	},
	{ // one trial wants more than any host has; its siblings want little
		name: "greedy", weight: 1, trials: [2]int{1, 1},
		file: func(o order) string { return greedyFile(o, "16, 17, 4096, 18") },
		want: func(values map[string]string) expectation {
			if values["want"] == "4096" {
				return expectation{State: "infeasible", Kinds: []string{"too_big"}}
			}

			return reports(values, 1)
		},
	},
	{ // comes after a greedy one has ended, and has its shape
		name: "modest", trials: [2]int{1, 1},
		file: func(o order) string { return greedyFile(o, "19, 20") },
		want: func(values map[string]string) expectation { // an out-of-memory adds one step of 512 MiB, until three runs have succeeded
			e := wantSmall(values)
			e.MaxBytes = 64*mib + 512*mib + slackBytes

			return e
		},
	},
	{ // a parameter has one value for all trials
		name: "fixed", weight: 1, trials: [2]int{1, 2},
		file: func(o order) string { return fixedFile(o, 8) }, want: wantSmall,
	},
	{ // comes after a fixed one has ended; the user has given that parameter another value, which needs more
		name: "edited", trials: [2]int{1, 1},
		file: func(o order) string { return fixedFile(o, editedSize) }, want: wantSmall,
	},
	{
		name: "negative", weight: 1, trials: [2]int{1, 3}, refusable: true,
		file: func(o order) string {
			return "command: [/busy, train, '{{ms}}', '{{z}}', '8']\n" +
				parameters(o.times(), "{name: z, type: derived, expr: '-0.5 * ms'}") + halfCore
		},
		want: func(values map[string]string) expectation { return reports(values, -0.5) },
	},
	{ // the script caught the error of a request that nothing could fill
		name: "caught", weight: 1, trials: [2]int{1, 3},
		file: func(o order) string {
			return "command: [/busy, caught, '{{ms}}']\n" + parameters(o.times()) + halfCore
		},
		want: func(map[string]string) expectation { return fails("user_error") },
	},
	{ // the kernel kills its first attempt
		name: "grows", weight: 1, trials: [2]int{1, 3},
		file: func(o order) string {
			return "command: [/busy, train, '{{ms}}', '{{ms}}', '90']\n" + parameters(o.times()) + halfCore + o.environment()
		},
		want: func(values map[string]string) expectation { return reports(values, 1) },
	},
	{
		name: "fails", weight: 1, trials: [2]int{2, 6},
		file: func(o order) string {
			return "command: [/busy, exit, '3', '{{ms}}']\n" + parameters(o.times()) + halfCore
		},
		want: func(map[string]string) expectation { return fails("user_error") },
	},
	{
		name: "silent", weight: 1, trials: [2]int{2, 6},
		file: func(o order) string {
			return "command: [/busy, exit, '0', '{{ms}}']\n" + parameters(o.times()) + halfCore
		},
		want: func(map[string]string) expectation { return fails("no_result") },
	},
	{
		name: "hangs", weight: 1, trials: [2]int{1, 3}, limit: 4 * time.Second,
		file: func(o order) string {
			return "command: [/busy, ignore, '{{ms}}']\n" + parameters(o.times()) + halfCore
		},
		want: func(map[string]string) expectation { return fails("timed_out") },
	},
	{
		name: "impossible", weight: 1, trials: [2]int{1, 2}, refusable: true,
		file: func(o order) string {
			return "command: [/busy, train, '{{ms}}', '{{ms}}', '8']\n" + parameters(o.times()) + "resources: {memory: 8GiB, cpus: 0.5}\nprobe: {mode: 'off'}\n"
		},
		want: func(map[string]string) expectation {
			return expectation{State: "infeasible", Kinds: []string{"too_big"}}
		},
	},
	{
		name: "mutant", weight: 2, trials: [2]int{1, 4}, refusable: true,
		file: func(o order) string { return steadyFile(o, "0.5") }, // edited with the lines that all sweeps share
		want: func(map[string]string) expectation { return expectation{Any: true} },
	},
	{ // small on its GPU, whatever runs beside it there
		name: "gpu", weight: 4, trials: [2]int{2, 6}, hittable: true, onGPU: true,
		file: func(o order) string {
			resources := ""
			if o.Probe == "off" {
				resources = ", gpu_memory: 1200MiB"
			}

			return gpuJob(o, 200, "", resources) + probe(o)
		},
		want: wantTiny,
	},
	{ // its first attempt has too little of a GPU
		name: "gpu grows", weight: 1, trials: [2]int{1, 3}, onGPU: true,
		file: func(o order) string { return gpuJob(o, 700, "", ", gpu_memory: 1GiB") },
		want: func(values map[string]string) expectation {
			e := reports(values, 1)
			e.Outgrows = true

			return e
		},
	},
	{ // no GPU of the cluster holds it
		name: "gpu large", weight: 1, trials: [2]int{1, 2}, onGPU: true,
		file: func(o order) string { return gpuJob(o, 30_000, "", "") },
		want: func(map[string]string) expectation {
			return expectation{State: "infeasible", Kinds: []string{"too_big"}}
		},
	},
	{ // a fault of its own, which ends all clients of MPS on its GPU
		name: "gpu faults", weight: 1, trials: [2]int{1, 2}, onGPU: true,
		file: func(o order) string {
			return gpuJob(o, 200, ", '--fault-at', '2'", ", gpu_memory: 1200MiB") + "retry: {max_attempts: 1}\n"
		},
		want: func(map[string]string) expectation { return fails("crashed") },
	},
	{ // as many trials as there are GPUs, which must all run at once
		name: "gpu roll call", trials: [2]int{1, 3}, onGPU: true,
		file: func(o order) string { return gpuJob(o, 200, "", ", gpu_sharing: exclusive") },
		want: wantTiny,
	},
	{ // one small trial of a shape of its own, which must be placed soon
		name: "canary", trials: [2]int{1, 1},
		file: func(o order) string {
			return "command: [/busy, train, '{{ms}}', '{{ms}}', '4']\n" + parameters(o.times()) +
				"resources: {memory: 16MiB, cpus: 0.1}\nprobe: {mode: 'off'}\n" + o.environment()
		},
		want: func(values map[string]string) expectation {
			e := reports(values, 1)
			e.NoOOM, e.MaxBytes = true, 16*mib

			return e
		},
	},
	{ // its second trial waits for the first, and measures a shape
		name: "carrier", trials: [2]int{1, 1}, file: func(o order) string { return carrierFile(o, carrierSizes...) }, want: wantSmall,
	},
	{ // as many trials as there are cores, which must all run at once
		name: "roll call", trials: [2]int{1, 5},
		file: func(o order) string {
			return "command: [/busy, train, '{{ms}}', '{{ms}}', '8']\n" + parameters(o.times()) + "resources: {memory: 64MiB, cpus: 0.9}\nprobe: {mode: 'off'}\n"
		},
		want: func(values map[string]string) expectation { return reports(values, 1) },
	},
	{ // has that shape, and must not wait for the carrier's sweep
		name: "follower", trials: [2]int{1, 1}, file: func(o order) string { return carrierFile(o, o.Size) }, want: wantSmall,
	},
	{ // runs for longer than anything that is done to it
		name: "vigil", trials: [2]int{3, 3},
		file: func(o order) string {
			return "command: [/busy, train, '{{ms}}', '{{ms}}', '8']\n" + parameters(o.times()) + "resources: {memory: 64MiB, cpus: 0.2}\nprobe: {mode: 'off'}\n"
		},
		want: func(values map[string]string) expectation { return reports(values, 1) },
	},
}

// measuredBytes is the most that an attempt of a small shape may reserve which
// was measured: 64 MiB over what the largest of them takes, and a step of 64 MiB
// for what the process takes itself.
const measuredBytes = 192 * mib

// quarterCore lets several trials of a shape run on one host.
const quarterCore = "resources: {cpus: 0.25}\n"

// sharedSizes are the MiB that the shapes of the job "shared" take.
var sharedSizes = []int{8, 24, 40, 56}

// sharedShape gives a sweep one of the shapes of its group. Scenes that need
// two shapes write their own parameter.
func sharedShape(o order) string {
	return fmt.Sprintf("{name: mib, values: [%d], memory: true}", sharedSizes[o.Group%len(sharedSizes)])
}

// wantSmall is what all trials of a small, measured shape must end as, whatever
// their siblings did.
func wantSmall(values map[string]string) expectation {
	e := reports(values, 1)
	e.NoOOM, e.MaxBytes = true, probeBytes+slackBytes

	return e
}

// wantTiny is the same of trials whose file says how little they need.
func wantTiny(values map[string]string) expectation {
	e := reports(values, 1)
	e.NoOOM, e.MaxBytes = true, 64*mib

	return e
}

// wantEpochs is the same of those that run epochs.
func wantEpochs(values map[string]string) expectation {
	e := wantTiny(values)
	if e.Value != nil {
		for epoch := 1.0; epoch <= 4; epoch++ {
			e.Epochs = append(e.Epochs, *e.Value*epoch/4)
		}
	}

	return e
}

// wideFile is the file of trials that run all at once.
func wideFile(o order) string {
	return "command: [/busy, train, '{{ms}}', '{{ms}}', '8']\n" + parameters(o.times()) + "resources: {memory: 64MiB, cpus: 0.1}\nprobe: {mode: 'off'}\n"
}

// steadyFile is the file of small trials that report the value.
func steadyFile(o order, value string) string {
	return "command: [/busy, train, '{{ms}}', '" + value + "', '8']\n" + parameters(o.times()) + halfCore
}

func greedyFile(o order, wants string) string {
	o.Probe, o.Job = "full", "greedy" // one shape for both jobs

	return "command: [/busy, train, '{{ms}}', '{{ms}}', '{{want}}']\n" +
		parameters("{name: want, values: ["+wants+"]}", o.times(), "{name: shape, values: [1], memory: true}") +
		quarterCore + probe(o) + o.environment()
}

// sequels are the jobs that come, in the calm, after each sweep of another job
// has ended, with its group.
var sequels = map[string]string{"greedy": "modest", "fixed": "edited"}

// editedSize is more MiB than a small shape reserves, and fits a shape that is
// not measured.
const editedSize = 150

func fixedFile(o order, size int) string {
	o.Probe, o.Job = "full", "fixed" // one group for both jobs

	return sharedCommand + parameters(o.times(), fmt.Sprintf("{name: mib, type: fixed, value: %d}", size), "{name: shape, values: [1], memory: true}") +
		quarterCore + probe(o) + o.environment()
}

// carrierSizes are the MiB that the two shapes of a carrier take.
var carrierSizes = []int{8, 24}

func carrierFile(o order, sizes ...int) string {
	o.Job = "carrier" // one shape for both jobs

	return sharedCommand + parameters("{name: mib, values: ["+list(sizes)+"], memory: true}", o.times()) + quarterCore + probe(o) + o.environment()
}

func (o order) times() string { return "{name: ms, values: [" + list(o.Times) + "]}" }

func list(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}

	return strings.Join(texts, ", ")
}

// environment makes the shapes of one group their own.
func (o order) environment() string {
	return fmt.Sprintf("environment_variables: {GROUP: '%s %d'}\n", o.Job[:1], o.Group)
}

func parameters(each ...string) string {
	return "parameters: [" + strings.Join(each, ", ") + "]\n"
}

func probe(o order) string { return "probe: {mode: '" + o.Probe + "'}\n" }

// file is the sweep's file.
func (o order) file() string {
	lines := jobNamed(o.Job).file(o)
	if !jobNamed(o.Job).onGPU {
		lines = strings.Replace(lines, "resources: {", "resources: {device: cpu, ", 1)
	}

	text := "name: '" + o.Name + "'\nimage: berth-test/busy:1\n" + lines +
		"search: {algorithm: grid}\n" + o.objective() + "metrics: {source: stdout}\n"

	return mutate(text+o.limits(), o.Mutations)
}

func (o order) objective() string {
	if o.Target == 0 {
		return "objective: {metric: val}\n"
	}

	return fmt.Sprintf("objective: {metric: val, goal: minimize, target: %d}\n", o.Target)
}

func (o order) limits() string {
	var each []string

	if o.MaxParallel > 0 {
		each = append(each, fmt.Sprintf("max_parallel: %d", o.MaxParallel))
	}

	if o.MaxFailed > 0 {
		each = append(each, fmt.Sprintf("max_failed_trials: %d", o.MaxFailed))
	}

	if limit := jobNamed(o.Job).limit; limit > 0 {
		each = append(each, fmt.Sprintf("max_trial_duration: %s", limit))
	}

	if len(each) == 0 {
		return ""
	}

	return "limits: {" + strings.Join(each, ", ") + "}\n"
}

func jobNamed(name string) job {
	i := slices.IndexFunc(jobs, func(j job) bool { return j.name == name })
	if i < 0 {
		panic("no job is called " + name)
	}

	return jobs[i]
}

// planned is how many trials a sweep of the order has.
func (o order) planned() int {
	switch o.Job {
	case "greedy":
		return 4 * len(o.Times)
	case "modest", "carrier":
		return 2 * len(o.Times)
	case "mutant":
		return 0
	default:
		return len(o.Times)
	}
}

// drawOrder draws a sweep of a job.
func drawOrder(r *rand.Rand, j job, n, group int) order {
	o := order{
		Job: j.name, Name: fmt.Sprintf("%s %d", j.name, n), Group: group,
		Probe: []string{"auto", "full", "full", "short", "off"}[r.IntN(5)],
	}

	for i := range j.trials[0] + r.IntN(j.trials[1]-j.trials[0]+1) {
		o.Times = append(o.Times, 200+8*i+r.IntN(3000)/100*100) // no two of twelve are equal
	}

	if r.IntN(4) == 0 {
		o.MaxParallel = 1 + r.IntN(2)
	}

	switch j.name {
	case "aims": // all end within a moment, and one in their middle, whose value is the least, is the target
		o.Target = o.Times[0]
		for i := range o.Times {
			o.Times[i] = o.Target + 5*(1+i)
		}

		o.Times[len(o.Times)/2] = o.Target
	case "fails":
		o.MaxFailed = r.IntN(4) // some sweeps have fewer trials
	case "mutant":
		for range 1 + r.IntN(2) {
			o.Mutations = append(o.Mutations, r.IntN(len(mutations)))
		}
	}

	return o
}
