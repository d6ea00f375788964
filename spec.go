package berth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Placeholder stands in a file of `berth init` where only the script's author knows the
// value; a sweep with it is refused.
const Placeholder = "REPLACE-ME"

// Spec is a decoded, defaulted and validated sweep file. It marshals
// to a document that decodes to the same Spec.
type Spec struct {
	Version              int               `json:"version"`              // 1
	Name                 string            `json:"name"`                 // 1-200 characters
	Image                string            `json:"image"`                // reference as the user wrote it
	Command              []string          `json:"command"`              // argv with {{name}} placeholders; never a shell
	Entrypoint           bool              `json:"entrypoint,omitempty"` // the image's ENTRYPOINT stands before Command
	Workdir              string            `json:"workdir,omitempty"`
	EnvironmentVariables map[string]string `json:"environment_variables,omitempty"`
	Parameters           []Parameter       `json:"parameters,omitempty"`
	Forbid               []string          `json:"forbid,omitempty"`  // boolean expressions; true = never tried
	Enqueue              []Assignment      `json:"enqueue,omitempty"` // tried first, in this order
	Stages               []Stage           `json:"stages,omitempty"`  // each runs before Command, once for equal inputs
	Search               SearchSpec        `json:"search"`
	Objective            *Objective        `json:"objective,omitempty"`
	Constraints          []Constraint      `json:"constraints,omitempty"`
	EarlyStop            *EarlyStop        `json:"early_stop,omitempty"`
	Limits               Limits            `json:"limits"`
	Resources            Resources         `json:"resources"`
	Probe                ProbeSpec         `json:"probe"`
	Metrics              MetricsSpec       `json:"metrics"`
	Retry                RetrySpec         `json:"retry"`
	Network              bool              `json:"network,omitempty"` // true = the container may reach the network
	Shim                 *bool             `json:"shim,omitempty"`    // nil = true
	Datasets             []DatasetMount    `json:"datasets,omitempty"`
	Secrets              []SecretMount     `json:"secrets,omitempty"`
	Labels               map[string]string `json:"labels,omitempty"`
}

// Plan returns the parts of the file that running the sweep's trials needs. It leaves
// out the listed assignments, and keeps one value of each parameter of a search that
// only tries these, for its type. A list of 10,000 trials makes both as long as the
// file.
func (s Spec) Plan() Spec {
	s.Enqueue = nil
	if s.Search.Algorithm != SearchList {
		return s
	}

	s.Parameters = slices.Clone(s.Parameters)
	for i := range s.Parameters {
		p := &s.Parameters[i]
		p.Values = p.Values[:min(len(p.Values), 1)]
		p.Probabilities = p.Probabilities[:min(len(p.Probabilities), 1)]
	}

	return s
}

// DatasetIDs are the data sets that trials mount, as NAME or NAME@VERSION.
func (s Spec) DatasetIDs() []string {
	ids := make([]string, len(s.Datasets))
	for i, d := range s.Datasets {
		ids[i] = d.ID()
	}

	return ids
}

// DatasetNames are the names of the data sets that trials mount.
func (s Spec) DatasetNames() []string {
	names := make([]string, len(s.Datasets))
	for i, d := range s.Datasets {
		names[i] = d.Name
	}

	return names
}

// WantsShim reports whether trials run with the shim: Berth's Python files that
// report metrics of an unchanged script (docs/shim.md).
func (s Spec) WantsShim() bool { return s.Shim == nil || *s.Shim }

// Search algorithms that exist today.
const (
	SearchGrid   = "grid"
	SearchRandom = "random"
	SearchSobol  = "sobol"
	SearchTPE    = "tpe"
	SearchGP     = "gp"
	SearchAuto   = "auto" // gp, or tpe where that is better
	SearchList   = "list" // only the assignments in Enqueue
)

// SearchSpec chooses the algorithm.
type SearchSpec struct {
	Algorithm string `json:"algorithm"`         // default auto with an objective, else random
	Seed      int64  `json:"seed"`              // default 0
	Startup   int    `json:"startup,omitempty"` // ended trials before a search that learns does so: default 10

	// From names earlier sweeps, by name or id, whose trials a search that learns knows from the start.
	From []string `json:"from,omitempty"`
}

// Learns says whether later trials depend on the results of earlier ones.
func (s SearchSpec) Learns() bool {
	return s.Algorithm == SearchTPE || s.Algorithm == SearchGP || s.Algorithm == SearchAuto
}

// Rules of early stopping.
const (
	StopASHA      = "asha"      // at rung Min·Eta^k only the best 1/Eta go on
	StopMedian    = "median"    // worse than the median of finished trials
	StopPatience  = "patience"  // no better for so many reports: the trial ends well
	StopThreshold = "threshold" // a value beyond a bound
)

// EarlyStop stops trials while they run, by what they report of the objective. A step is what
// the job logs the metric at, mostly an epoch.
type EarlyStop struct {
	Rule     string   `json:"rule"`
	Min      int64    `json:"min"`                 // the first step that is judged; default 1
	Max      int64    `json:"max,omitempty"`       // steps from here on are not judged; 0 = all are; asha needs it
	Eta      int64    `json:"eta,omitempty"`       // asha: 2 or more; default 3
	Startup  int      `json:"startup,omitempty"`   // asha: other trials that must have come to the step, default 4; median: that must have succeeded, default 5
	Interval int64    `json:"interval,omitempty"`  // median: steps from one judgement to the next; default 1
	Patience int      `json:"patience,omitempty"`  // patience: reports without an improvement
	MinDelta float64  `json:"min_delta,omitempty"` // patience: an improvement is more than this
	Above    *float64 `json:"above,omitempty"`     // threshold: a value above it stops the trial
	Below    *float64 `json:"below,omitempty"`     // threshold: a value below it stops the trial
}

// Goal is the direction of an objective.
type Goal string

// The two goals.
const (
	GoalMaximize Goal = "maximize"
	GoalMinimize Goal = "minimize"
)

// Strategy says which of a metric's reported values counts for a trial.
type Strategy string

// The strategies; a "final" record overrides them all.
const (
	StrategyLast Strategy = "last"
	StrategyBest Strategy = "best"
	StrategyMean Strategy = "mean"
)

// Objective is the metric that the search improves. It marshals to an object, or with further
// ones to a list.
type Objective struct {
	Metric   string   `json:"metric"`
	Goal     Goal     `json:"goal"`             // default maximize
	Target   *float64 `json:"target,omitempty"` // reached = the sweep ends with success
	Strategy Strategy `json:"strategy"`         // default last

	// Further objectives, at most 3, each without Further and Target. The search looks for
	// trials that are best at some trade between all. Lists and charts show the first.
	Further []Objective `json:"-"`
}

// objective is an Objective without its methods.
type objective Objective

// MarshalJSON writes an object, or a list.
func (o Objective) MarshalJSON() ([]byte, error) {
	if len(o.Further) == 0 {
		return json.Marshal(objective(o))
	}

	list := []objective{objective(o)}
	for _, f := range o.Further {
		list = append(list, objective(f))
	}

	return json.Marshal(list)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Objective) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte("[")) {
		return json.Unmarshal(data, (*objective)(o))
	}

	var list []Objective
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}

	if len(list) > 0 {
		*o = list[0]
		o.Further = list[1:]
	}

	return nil
}

// Loss is a value of the metric as a number of which less is better.
func (o Objective) Loss(value float64) float64 {
	if o.Goal == GoalMaximize {
		return -value
	}

	return value
}

// All are the objective and the further ones.
func (o Objective) All() []Objective { return append([]Objective{o}, o.Further...) }

// Losses are the losses of results by objective.
func (o Objective) Losses(results Results) []float64 {
	losses := make([]float64, 0, 1+len(o.Further))
	for _, one := range o.All() {
		losses = append(losses, one.Loss(results[one.Metric]))
	}

	return losses
}

// Constraint bounds a result. A trial that breaks one has no value, so that it is never the
// best; the search learns how far it was off.
type Constraint struct {
	Metric string   `json:"metric"`
	Max    *float64 `json:"max,omitempty"`
	Min    *float64 `json:"min,omitempty"`
}

// Beyond is by how much a value is beyond the bounds; 0 or less = it is within.
func (c Constraint) Beyond(value float64) float64 {
	beyond := math.Inf(-1)
	if c.Max != nil {
		beyond = value - *c.Max
	}

	if c.Min != nil {
		beyond = max(beyond, *c.Min-value)
	}

	return beyond
}

// Results are what a trial reported, by metric of Spec.Wanted. Nil = its sweep has neither
// further objectives nor constraints.
type Results map[string]float64

// Wanted are the metrics that each trial reports: the objectives, the first one first, then
// those of constraints, whose last value counts. It is empty without an objective.
func (s Spec) Wanted() []Objective {
	if s.Objective == nil {
		return nil
	}

	wanted := s.Objective.All()

	for _, c := range s.Constraints {
		if !slices.ContainsFunc(wanted, func(o Objective) bool { return o.Metric == c.Metric }) {
			wanted = append(wanted, Objective{Metric: c.Metric, Goal: GoalMaximize, Strategy: StrategyLast})
		}
	}

	return wanted
}

// Better reports whether a is better than b for this goal.
func (o Objective) Better(a, b float64) bool {
	if o.Goal == GoalMinimize {
		return a < b
	}

	return a > b
}

// Limits end a sweep. Zero means no limit unless said otherwise.
type Limits struct {
	MaxTrials        int      `json:"max_trials,omitempty"`        // 1-100,000; 0 = until the space is exhausted
	MaxParallel      Parallel `json:"max_parallel"`                // 0 = auto: as many as the machines hold
	MaxFailedTrials  int      `json:"max_failed_trials,omitempty"` // more than this many failed trials end the sweep; 0 = no limit
	MaxDuration      Duration `json:"max_duration,omitempty"`      // of the sweep
	MaxTrialDuration Duration `json:"max_trial_duration"`          // of one attempt; default 24h, at most 7 days
	MaxOutput        Size     `json:"max_output,omitempty"`        // files of one attempt; 0 = what its worker allows, which bounds it
}

// DeviceWanted is the kind of device that a trial computes on.
type DeviceWanted string

// The devices a spec may ask for.
const (
	DeviceAuto DeviceWanted = "auto" // a GPU when a host has one, else the CPU
	DeviceGPU  DeviceWanted = "gpu"
	DeviceCPU  DeviceWanted = "cpu"
)

// Resources are what one attempt may use. Zero sizes mean auto: measured by a probe.
type Resources struct {
	Device     DeviceWanted `json:"device"`
	GPUMemory  Size         `json:"gpu_memory"`
	Memory     Size         `json:"memory"`             // host memory, limit of the container
	CPUs       CPUs         `json:"cpus"`               // thousandths of a core
	ShmSize    Size         `json:"shm_size,omitempty"` // of /dev/shm, counted inside Memory; 0 = as much as Memory
	GPUSharing string       `json:"gpu_sharing"`

	// GPUMemorySpill lets a trial that is larger than any GPU run alone in unified memory.
	GPUMemorySpill bool `json:"gpu_memory_spill,omitempty"`
}

// DefaultCPUMilli is one core: small TensorFlow jobs gain little from a second
// thread, and one each packs best (25.2 s against 118.8 s unpinned for four
// jobs on two cores, reference measurement of 2026-11-21).
const DefaultCPUMilli = 1000

// ThreadCapMilli is how many threads an attempt's libraries may use, in
// thousandths of a core: the spec's value, or one.
func (r Resources) ThreadCapMilli() int64 {
	if r.CPUs == 0 {
		return DefaultCPUMilli
	}

	return int64(r.CPUs)
}

// Threads is how many threads libraries may start under a cap in thousandths of a core:
// whole ones, rounded up.
func Threads(capMilli int64) int64 { return (capMilli + 999) / 1000 }

// ProbeMode says how a shape is measured before it is packed.
type ProbeMode string

// The probe modes.
const (
	ProbeAuto  ProbeMode = "auto"  // full with a time cap; short if the cap is hit
	ProbeFull  ProbeMode = "full"  // the shape's first trial runs to its end and its result counts
	ProbeShort ProbeMode = "short" // two epochs under the Keras caps, thrown away
	ProbeOff   ProbeMode = "off"   // reserve the spec's value, measure nothing
)

// ProbeSpec is the probing policy.
type ProbeSpec struct {
	Mode        ProbeMode `json:"mode"`
	MaxDuration Duration  `json:"max_duration"` // default 2m
}

// Metric sources.
const (
	MetricsAuto        = "auto" // the file, else the shim, else stdout
	MetricsFile        = "file"
	MetricsStdout      = "stdout"
	MetricsTensorBoard = "tensorboard"
	MetricsShim        = "shim" // of an outcome: no sweep file names it
)

// MetricsSpec says where metrics come from.
type MetricsSpec struct {
	Source  string `json:"source"`            // auto, file, stdout or tensorboard; default auto
	Pattern string `json:"pattern,omitempty"` // auto, stdout: regular expression with groups name and value; default name=value and name: value
}

// RetrySpec bounds attempts.
type RetrySpec struct {
	MaxAttempts int `json:"max_attempts"` // 1-10; default 3; only attempts that were the trial's own fault count
}

// DatasetMount names a path an administrator mapped; always read-only.
type DatasetMount struct {
	Name   string `json:"name"`
	Target string `json:"target"`
	// Only hosts with this version take trials; empty = any. With stages it is set when the
	// sweep is submitted.
	Version string `json:"version,omitempty"`
	Pinned  bool   `json:"pinned,omitempty"` // Berth set Version
}

// ID names the data set with its version, as hosts do: NAME, or NAME@VERSION.
func (d DatasetMount) ID() string {
	if d.Version == "" {
		return d.Name
	}

	return d.Name + "@" + d.Version
}

// HasDataset reports whether a host with these data sets has the wanted one. Each is NAME
// or NAME@VERSION; a host says no version of one that it does not know yet.
func HasDataset(has []string, want string) bool {
	return slices.ContainsFunc(has, func(id string) bool {
		name, _, _ := strings.Cut(id, "@")

		return id == want || name == want
	})
}

// DatasetVersions are the versions that a host has of the named data set; none = it does
// not know.
func DatasetVersions(has []string, name string) (versions []string) {
	for _, id := range has {
		if version, found := strings.CutPrefix(id, name+"@"); found {
			versions = append(versions, version)
		}
	}

	return versions
}

// SecretMount names a secret an administrator stored; mounted as a file.
type SecretMount struct {
	Name string `json:"name"`
	File string `json:"file"`
}

const auto = `"auto"`

// Size is a number of bytes; zero is auto. It marshals to "auto" or a number.
type Size int64

// MarshalJSON writes "auto" or bytes.
func (s Size) MarshalJSON() ([]byte, error) { return marshalAuto(int64(s)) }

// UnmarshalJSON reads "auto" or bytes.
func (s *Size) UnmarshalJSON(data []byte) error { return unmarshalAuto(data, (*int64)(s)) }

// CPUs is thousandths of a core; zero is auto. It marshals to "auto" or cores.
type CPUs int64

// MarshalJSON writes "auto" or cores, such as 1.5.
func (c CPUs) MarshalJSON() ([]byte, error) {
	if c == 0 {
		return []byte(auto), nil
	}

	return []byte(strconv.FormatFloat(float64(c)/1000, 'f', -1, 64)), nil
}

// UnmarshalJSON reads "auto" or cores.
func (c *CPUs) UnmarshalJSON(data []byte) error {
	if string(data) == auto {
		*c = 0

		return nil
	}

	var cores float64
	if err := json.Unmarshal(data, &cores); err != nil {
		return fmt.Errorf("reading cpus: %w", err)
	}

	*c = CPUs(cores*1000 + 0.5)

	return nil
}

// Parallel is a number of trials at once; zero is auto.
type Parallel int

// MarshalJSON writes "auto" or a number.
func (p Parallel) MarshalJSON() ([]byte, error) { return marshalAuto(int64(p)) }

// UnmarshalJSON reads "auto" or a number.
func (p *Parallel) UnmarshalJSON(data []byte) error { return unmarshalAuto(data, (*int)(p)) }

// Duration is a time.Duration that marshals to text such as "1h30m0s".
type Duration time.Duration

// MarshalJSON writes the text of time.Duration.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON reads the text of time.ParseDuration.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("reading duration: %w", err)
	}

	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("reading duration: %w", err)
	}

	*d = Duration(parsed)

	return nil
}

func marshalAuto(n int64) ([]byte, error) {
	if n == 0 {
		return []byte(auto), nil
	}

	return strconv.AppendInt(nil, n, 10), nil
}

func unmarshalAuto[T int | int64](data []byte, n *T) error {
	if string(data) == auto {
		*n = 0

		return nil
	}

	if err := json.Unmarshal(data, n); err != nil {
		return fmt.Errorf("reading a number or \"auto\": %w", err)
	}

	return nil
}
