package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/berthml/berth"
)

const mib = 1 << 20

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
}

// expectation is how one trial of a job must end.
type expectation struct {
	State string   // of the trial
	Kinds []string // failure kinds that may be named; none = any
	Value *float64 // what it must report
	// Once: one attempt must do, unless the machine or a person ended it.
	Once bool
	// NoOOM: its shape is small, so no attempt may run out of memory.
	NoOOM bool
	// MaxBytes is the most that an attempt may reserve; 0 = any.
	MaxBytes int64
	// Any: any state and kind that names what the user did; infra never.
	Any bool
}

// job is one kind of sweep of a storm: how often it is drawn, its file, and how
// each of its trials must end.
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

func fails(kind string) expectation {
	return expectation{State: "failed", Kinds: []string{kind}, Once: true}
}

const (
	sharedCommand = "command: [/busy, train, '{{ms}}', '0.5', '{{mib}}']\n"
	halfCore      = "resources: {memory: 64MiB, cpus: 0.5}\nprobe: {mode: 'off'}\n"
)

// jobs are what the sweeps of a storm run.
var jobs = []job{
	{
		name: "steady", weight: 26, trials: [2]int{2, 8}, hittable: true,
		file: steadyFile,
		want: func(map[string]string) expectation {
			e := succeeds(0.5)
			e.NoOOM, e.MaxBytes = true, 64*mib

			return e
		},
	},
	{
		name: "shared", weight: 30, trials: [2]int{2, 5}, hittable: true, shared: true,
		file: func(o order) string {
			resources := quarterCore
			if o.Probe == "off" { // nothing is measured, so the file must say
				resources = "resources: {cpus: 0.25, memory: 128MiB}\n"
			}

			return sharedCommand + parameters(o.times(), sharedShape(o)) + resources + probe(o) + o.environment()
		},
		want: wantSmall,
	},
	{ // its probe is thrown away, and nothing of it may reach the run
		name: "checkpoint", weight: 8, trials: [2]int{1, 2},
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
		name: "late", weight: 6, trials: [2]int{3, 4},
		file: func(o order) string {
			o.Probe = "full"

			return "command: [/busy, late, '{{ms}}', '0.5', '150']\n" + parameters(o.times(), "{name: shape, values: [1], memory: true}") +
				quarterCore + probe(o) + o.environment()
		},
		want: func(map[string]string) expectation {
			e := succeeds(0.5)
			e.NoOOM, e.MaxBytes = true, probeBytes+slackBytes

			return e
		},
	},
	{ // one trial wants more than any host has; its siblings want little
		name: "greedy", weight: 5, trials: [2]int{1, 1},
		file: func(o order) string { return greedyFile(o, "16, 17, 4096, 18") },
		want: func(values map[string]string) expectation {
			if values["want"] == "4096" {
				return expectation{State: "infeasible", Kinds: []string{"too_big"}}
			}

			return succeeds(0.5)
		},
	},
	{ // comes after a greedy one has ended, and has its shape
		name: "modest", trials: [2]int{1, 1},
		file: func(o order) string { return greedyFile(o, "19, 20") },
		want: wantSmall,
	},
	{
		name: "negative", weight: 5, trials: [2]int{1, 3}, refusable: true,
		file: func(o order) string {
			return "command: [/busy, train, '{{ms}}', '{{z}}', '8']\n" +
				parameters(o.times(), "{name: one, values: [1]}", "{name: z, type: derived, expr: '-0.5 * one'}") + halfCore
		},
		want: func(map[string]string) expectation { return succeeds(-0.5) },
	},
	{ // the script caught the error of a request that nothing could fill
		name: "caught", weight: 5, trials: [2]int{1, 3},
		file: func(o order) string {
			return "command: [/busy, caught, '{{ms}}']\n" + parameters(o.times()) + halfCore
		},
		want: func(map[string]string) expectation { return fails("user_error") },
	},
	{ // the kernel kills its first attempt
		name: "grows", weight: 4, trials: [2]int{1, 3},
		file: func(o order) string {
			return "command: [/busy, train, '{{ms}}', '0.5', '90']\n" + parameters(o.times()) + halfCore + o.environment()
		},
		want: func(map[string]string) expectation { return succeeds(0.5) },
	},
	{
		name: "fails", weight: 3, trials: [2]int{2, 6},
		file: func(o order) string {
			return "command: [/busy, exit, '3', '{{ms}}']\n" + parameters(o.times()) + halfCore
		},
		want: func(map[string]string) expectation { return fails("user_error") },
	},
	{
		name: "silent", weight: 3, trials: [2]int{2, 6},
		file: func(o order) string {
			return "command: [/busy, exit, '0', '{{ms}}']\n" + parameters(o.times()) + halfCore
		},
		want: func(map[string]string) expectation { return fails("no_result") },
	},
	{
		name: "hangs", weight: 3, trials: [2]int{1, 3},
		file: func(o order) string {
			return "command: [/busy, ignore, '{{ms}}']\nlimits: {max_trial_duration: 4s}\n" + parameters(o.times()) + halfCore
		},
		want: func(map[string]string) expectation { return fails("timed_out") },
	},
	{
		name: "impossible", weight: 3, trials: [2]int{1, 2}, refusable: true,
		file: func(o order) string {
			return "command: [/busy, train, '{{ms}}', '0.5', '8']\n" + parameters(o.times()) + "resources: {memory: 8GiB, cpus: 0.5}\nprobe: {mode: 'off'}\n"
		},
		want: func(map[string]string) expectation {
			return expectation{State: "infeasible", Kinds: []string{"too_big"}}
		},
	},
	{
		name: "mutant", weight: 12, trials: [2]int{1, 4}, refusable: true,
		file: steadyFile, // edited with the lines that all sweeps share
		want: func(map[string]string) expectation { return expectation{Any: true} },
	},
	{ // one small trial of a shape of its own, which must be placed soon
		name: "canary", trials: [2]int{1, 1},
		file: func(o order) string {
			return "command: [/busy, train, '{{ms}}', '0.25', '4']\n" + parameters(o.times()) +
				"resources: {memory: 16MiB, cpus: 0.1}\nprobe: {mode: 'off'}\n" + o.environment()
		},
		want: func(map[string]string) expectation {
			e := succeeds(0.25)
			e.NoOOM, e.MaxBytes = true, 16*mib

			return e
		},
	},
	{ // its second trial waits for the first, and measures a shape
		name: "carrier", trials: [2]int{1, 1}, file: func(o order) string { return carrierFile(o, carrierSizes...) }, want: wantSmall,
	},
	{ // has that shape, and must not wait for the carrier's sweep
		name: "follower", trials: [2]int{1, 1}, file: func(o order) string { return carrierFile(o, o.Size) }, want: wantSmall,
	},
	{ // runs for longer than anything that is done to it
		name: "vigil", trials: [2]int{3, 3},
		file: func(o order) string {
			return "command: [/busy, train, '{{ms}}', '0.5', '8']\n" + parameters(o.times()) + "resources: {memory: 64MiB, cpus: 0.2}\nprobe: {mode: 'off'}\n"
		},
		want: func(map[string]string) expectation { return succeeds(0.5) },
	},
}

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
func wantSmall(map[string]string) expectation {
	e := succeeds(0.5)
	e.NoOOM, e.MaxBytes = true, probeBytes+slackBytes

	return e
}

func steadyFile(o order) string {
	return "command: [/busy, train, '{{ms}}', '0.5', '8']\n" + parameters(o.times()) + halfCore
}

func greedyFile(o order, wants string) string {
	o.Probe, o.Job = "full", "greedy" // one shape for both jobs

	return "command: [/busy, train, '{{ms}}', '0.5', '{{want}}']\n" +
		parameters("{name: want, values: ["+wants+"]}", o.times(), "{name: shape, values: [1], memory: true}") +
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
	text := "name: '" + o.Name + "'\nimage: berth-test/busy:1\n" + jobNamed(o.Job).file(o) +
		"search: {algorithm: grid}\nobjective: {metric: val}\nmetrics: {source: stdout}\n"

	if o.MaxParallel > 0 && !strings.Contains(text, "limits:") {
		text += fmt.Sprintf("limits: {max_parallel: %d}\n", o.MaxParallel)
	}

	return mutate(text, o.Mutations)
}

func jobNamed(name string) job {
	i := slices.IndexFunc(jobs, func(j job) bool { return j.name == name })
	if i < 0 {
		panic("no job is called " + name)
	}

	return jobs[i]
}

// mutations are edits of a valid sweep file. Berth refuses what comes out, or
// it is runnable.
var mutations = []struct{ old, recent string }{
	{"memory: 64MiB", "memory: 1KiB"},
	{"memory: 64MiB", "memory: 6MiB"},
	{"memory: 64MiB", "memory: -1"},
	{"memory: 64MiB", "memory: 9999TiB"},
	{"memory: 64MiB", "memory: 64MiB, shm_size: 10GiB"},
	{"memory: 64MiB", "memory: 64MiB, shm_size: 1"},
	{"cpus: 0.5", "cpus: 0.0001"},
	{"cpus: 0.5", "cpus: 0.001"},
	{"cpus: 0.5", "cpus: 1e9"},
	{"cpus: 0.5", "cpus: .nan"},
	{"'0.5'", "'{{'"},
	{"'0.5'", "''"},
	{"'0.5'", `"a\0b"`},
	{"'0.5'", "NaN"},
	{"/busy, train", "/busy, ''"},
	{"/busy, train", "'', train"},
	{"/busy, train", "/absent, train"},
	{"'{{ms}}'", "'{{nothing}}'"},
	{"'{{ms}}'", "'--ms={{ms}}'"},
	{"{name: ms, values: [", "{name: ms, values: [-5, "},
	{"{name: ms, values: [", "{name: ms, values: [1e308, "},
	{"{name: ms, values: [", "{name: ms, values: ['x y', "},
	{"{name: ms, values: [", "{name: ms, values: ['-x', "},
	{"{name: ms, values: [", "{name: ms, values: [true, "},
	{"{name: ms, values: [", "{name: x, type: derived, expr: '1/0*ms'}, {name: ms, values: ["},
	{"{name: ms, values: [", "{name: x, type: derived, expr: 'ms - 1e6'}, {name: ms, values: ["},
	{"image: ", "environment_variables: {'A=B': x}\nimage: "},
	{"image: ", "environment_variables: {A: \"\\0\"}\nimage: "},
	{"image: ", "environment_variables: {PATH: ''}\nimage: "},
	{"image: ", "environment_variables: {LD_PRELOAD: /absent.so}\nimage: "},
	{"image: ", "workdir: relative\nimage: "},
	{"image: ", "workdir: /absent\nimage: "},
	{"image: ", "limits: {max_parallel: 0}\nimage: "},
	{"image: ", "limits: {max_trial_duration: 1ns}\nimage: "},
	{"image: ", "limits: {max_trial_duration: 1s}\nimage: "},
	{"image: ", "limits: {max_trials: 1}\nimage: "},
	{"image: ", "limits: {max_failed_trials: 1}\nimage: "},
	{"image: ", "retry: {max_attempts: 0}\nimage: "},
	{"image: ", "retry: {max_attempts: 1}\nimage: "},
	{"image: ", "network: maybe\nimage: "},
	{"image: ", "labels: {'': ''}\nimage: "},
	{"image: ", "datasets: [{name: absent, target: /data}]\nimage: "},
	{"image: ", "secrets: [{name: absent, file: key}]\nimage: "},
	{"image: ", "forbid: ['ms > 0']\nimage: "},
	{"image: ", "nothing: {}\nimage: "},
	{"image: berth-test/busy:1", "image: berth-test/absent:1"},
	{"image: berth-test/busy:1", "image: BERTH/test:1"},
	{"probe: {mode: 'off'}", "probe: {mode: short, max_duration: 1s}"},
	{"probe: {mode: 'off'}", "probe: {mode: auto, max_duration: 1ms}"},
	{"metric: val", "metric: ''"},
	{"metric: val", "metric: other"},
	{"metric: val", "metric: val, target: 0.1"},
	{"source: stdout", "source: file"},
	{"algorithm: grid", "algorithm: random"},
	{"algorithm: grid", "algorithm: list"},
	{"\n", "\r\n"},
	{"name: ", "name: \u202e"},
}

func mutate(file string, which []int) string {
	for _, i := range which {
		file = strings.Replace(file, mutations[i].old, mutations[i].recent, 1)
	}

	return file
}

// deeds are what people and the environment did to a sweep.
type deeds struct {
	Paused      bool         // by the last that a person asked for
	Canceled    bool         // asked for, acknowledged or not
	Stopped     bool         // the same
	Terminated  bool         // a person ended its workflow in Temporal
	TrialsEnded map[int]bool // the same of single trials
	Forgotten   bool         // the database was put back to before some of it
}

// attemptRecord and the others are what Berth says of a sweep, as far as the
// oracle looks at it.
type attemptRecord struct {
	Number        int
	Kind, Message string
	ReservedBytes int64
	Hit           bool // a person killed or removed its container
}

type trialRecord struct {
	Number               int
	State, Kind, Message string
	Value                *float64
	Values               map[string]string
	Attempts             []attemptRecord
}

type sweepRecord struct {
	State, Reason string
	Planned       int
	Trials        []trialRecord
}

// maxAttempts is the default of retry.max_attempts.
const maxAttempts = 3

// judgeTrial returns how a trial that has ended deviates from what it must end
// as, or nothing.
func judgeTrial(o order, d deeds, t trialRecord) string {
	want := jobNamed(o.Job).want(t.Values)

	if t.State == "canceled" {
		if d.Canceled || d.Stopped || d.Terminated || d.TrialsEnded[t.Number] || d.Forgotten || want.Any {
			return ""
		}

		return fmt.Sprintf("trial %d was canceled (%s), and no person asked for it", t.Number, t.Message)
	}

	if text := judgeAttempts(want, t); text != "" {
		return text
	}

	if want.Any {
		if t.Kind == "infra" {
			return fmt.Sprintf("trial %d ended %s infra (%s), expected an end that names what is wrong with its file", t.Number, t.State, t.Message)
		}

		return ""
	}

	if t.State == want.State && (len(want.Kinds) == 0 || slices.Contains(want.Kinds, t.Kind)) {
		return judgeValue(want, t)
	}

	if t.State == "failed" && t.Kind == "killed" && t.hits() >= maxAttempts {
		return "" // a person killed every attempt that it has
	}

	return fmt.Sprintf("trial %d ended %s %s (%s), expected %s", t.Number, t.State, t.Kind, t.Message, want)
}

func judgeValue(want expectation, t trialRecord) string {
	if want.Value == nil || t.Value != nil && *t.Value == *want.Value {
		return ""
	}

	got := "nothing"
	if t.Value != nil {
		got = fmt.Sprint(*t.Value)
	}

	return fmt.Sprintf("trial %d reported %s, expected %s", t.Number, got, want)
}

// judgeAttempts looks at what each attempt was given and charged for.
func judgeAttempts(want expectation, t trialRecord) string {
	charged := 0

	for _, a := range t.Attempts {
		switch {
		case want.NoOOM && berth.FailureKind(a.Kind).OutOfMemory():
			return fmt.Sprintf("trial %d ran out of memory in attempt %d with %d MiB reserved (%s), although all of its shape fit",
				t.Number, a.Number, a.ReservedBytes/mib, a.Message)
		case want.MaxBytes > 0 && a.ReservedBytes > want.MaxBytes:
			return fmt.Sprintf("trial %d reserved %d MiB in attempt %d, expected at most %d", t.Number, a.ReservedBytes/mib, a.Number, want.MaxBytes/mib)
		case a.Kind != "" && a.Kind != "ok" && !a.Hit && berth.FailureKind(a.Kind).Policy().Charges:
			charged++
		}
	}

	if want.Once && charged > 1 {
		return fmt.Sprintf("trial %d was charged for %d attempts (%s), expected 1", t.Number, charged, t.Attempts[0].Message)
	}

	return ""
}

func (t trialRecord) hits() (n int) {
	for _, a := range t.Attempts {
		if a.Hit {
			n++
		}
	}

	return n
}

func (e expectation) String() string {
	text := e.State
	if len(e.Kinds) > 0 && e.Kinds[0] != "ok" {
		text += " " + strings.Join(e.Kinds, " or ")
	}

	if e.Value != nil {
		text += fmt.Sprintf(" %g", *e.Value)
	}

	return text
}

// judgeSweep returns how a sweep that has ended deviates, trial by trial.
func judgeSweep(o order, d deeds, s sweepRecord) []string {
	var wrong []string

	succeeded := 0

	for _, t := range s.Trials {
		if text := judgeTrial(o, d, t); text != "" {
			wrong = append(wrong, text)
		}

		if t.State == "succeeded" {
			succeeded++
		}
	}

	if len(wrong) > 0 { // the sweep's own end follows from those
		return wrong
	}

	natural := "failed"
	if succeeded > 0 {
		natural = "succeeded"
	}

	allowed := []string{natural}
	if d.Canceled || d.Terminated || d.Forgotten {
		allowed = append(allowed, "canceled")
	}

	if d.Stopped {
		allowed = append(allowed, "stopped")
	}

	if !slices.Contains(allowed, s.State) && !jobNamed(o.Job).want(nil).Any {
		wrong = append(wrong, fmt.Sprintf("ended %s (%s), expected %s", s.State, s.Reason, strings.Join(allowed, " or ")))
	}

	if s.State == natural && len(s.Trials) < s.Planned && !d.Canceled && !d.Stopped && !jobNamed(o.Job).want(nil).Any {
		wrong = append(wrong, fmt.Sprintf("ended %s with %d of %d trials", s.State, len(s.Trials), s.Planned))
	}

	return wrong
}

// judgePause says whether a sweep may be paused.
func judgePause(d deeds, s sweepRecord) string {
	if s.State != "paused" || d.Paused || d.Forgotten {
		return ""
	}

	return "is paused (" + s.Reason + "), and no person asked for it"
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
		o.Times = append(o.Times, 200+10*i+r.IntN(3000)/100*100) // no two are equal
	}

	if r.IntN(4) == 0 {
		o.MaxParallel = 1 + r.IntN(2)
	}

	if j.name == "mutant" {
		for range 1 + r.IntN(2) {
			o.Mutations = append(o.Mutations, r.IntN(len(mutations)))
		}
	}

	return o
}
