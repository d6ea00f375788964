package berth

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// Limits of stages.
const (
	MaxStages    = 8
	MaxStageName = 32 // bytes
)

// Stage is a part of the work of each trial, which runs before the trial's own command.
// Trials with the same inputs share one run of it: its container gets the values that the
// stage reads and nothing else that differs between trials.
type Stage struct {
	Name       string   `json:"name"`              // a-z, digits and -; not StageMain
	Command    []string `json:"command,omitempty"` // empty = the sweep's, with the arguments of other parameters left out
	Parameters []string `json:"parameters"`        // the values that it gets; the reader adds the parameters in Command
	Image      string   `json:"image,omitempty"`   // empty = the sweep's
	// ImageDigest is what Image was when the sweep was submitted.
	ImageDigest string     `json:"image_digest,omitempty"`
	Resources   *Resources `json:"resources,omitempty"` // nil = the sweep's
}

// LabelTry marks the sweep of a try with the value "true".
const LabelTry = "berth/try"

// RepeatsStages reports whether each trial runs its stages although their outputs are there, so
// that two runs can be compared: in a try.
func (s Spec) RepeatsStages() bool { return s.Labels[LabelTry] == "true" }

// StageRun is a stage of one trial.
type StageRun struct {
	Name  string
	Key   string // SHA-256 of all that its output depends on; trials with the same key share it
	Shape Shape
}

// ForStage is the sweep as the attempts of one stage see it: with its command and resources,
// and without an objective. Of StageMain it is the whole.
func (s Spec) ForStage(name string) Spec {
	i := s.StageIndex(name)
	if i < 0 {
		return s
	}

	stage := s.Stages[i]
	s.Objective, s.Constraints, s.EarlyStop = nil, nil, nil

	if len(stage.Command) > 0 {
		s.Command = stage.Command
	}

	if stage.Resources != nil {
		s.Resources = *stage.Resources
	}

	return s
}

// ValuesFor are the values that one stage reads; StageMain reads all.
func (s Spec) ValuesFor(name string, a Assignment) Assignment {
	i := s.StageIndex(name)
	if i < 0 {
		return a
	}

	read := Assignment{}

	for _, parameter := range s.Stages[i].Parameters {
		if value, active := a[parameter]; active {
			read[parameter] = value
		}
	}

	return read
}

// DigestFor is the image that one stage runs in a sweep with the given image.
func (s Spec) DigestFor(name, sweepDigest string) string {
	if i := s.StageIndex(name); i >= 0 && s.Stages[i].Image != "" {
		return s.Stages[i].ImageDigest
	}

	return sweepDigest
}

// Images are the images of the sweep and of the stages that have their own, by where they
// are in the sweep file.
func (s Spec) Images() iter.Seq2[string, string] {
	return func(yield func(pointer, image string) bool) {
		if !yield("/image", s.Image) {
			return
		}

		for i, stage := range s.Stages {
			if stage.Image != "" && !yield(fmt.Sprintf("/stages/%d/image", i), stage.Image) {
				return
			}
		}
	}
}

// AsWritten is the sweep without what Berth found when it was submitted: digests of images of
// stages, and versions of data sets.
func (s Spec) AsWritten() Spec {
	s = s.WithDigests(nil)

	s.Datasets = slices.Clone(s.Datasets)
	for i := range s.Datasets {
		if d := &s.Datasets[i]; d.Pinned {
			d.Version, d.Pinned = "", false
		}
	}

	return s
}

// WithDigests is the sweep whose stages run these images, by where Images has them.
func (s Spec) WithDigests(digests map[string]string) Spec {
	s.Stages = slices.Clone(s.Stages)
	for i := range s.Stages {
		s.Stages[i].ImageDigest = digests[fmt.Sprintf("/stages/%d/image", i)]
	}

	return s
}

// StagesBefore are the names of the stages whose outputs one stage gets, in order; StageMain
// gets all.
func (s Spec) StagesBefore(name string) []string {
	before := s.Stages
	if i := s.StageIndex(name); i >= 0 {
		before = s.Stages[:i]
	}

	names := make([]string, len(before))
	for i, stage := range before {
		names[i] = stage.Name
	}

	return names
}

// StageIndex is the place of a stage in Stages; -1 = it is not there, as StageMain.
func (s Spec) StageIndex(name string) int {
	return slices.IndexFunc(s.Stages, func(stage Stage) bool { return stage.Name == name })
}

// StageState is what the ledger knows of a stage of one trial.
type StageState struct {
	Key      string
	Known    bool // its output is there
	Repeated bool // the trial ran it with success, and the output is of another attempt
	// Failed is how the stage failed in a trial of the same sweep; nil = it did not.
	Failed *TrialUpdate
}

// StageInput is an output of an earlier stage, for an attempt.
type StageInput struct {
	Name      string
	Key       string
	AttemptID string // that wrote it; empty = it is lost
	HostID    string // where
	Stored    bool   // the store has it
}

// StageRecord is a key of a stage, as the ledger has it.
type StageRecord struct {
	Key         string
	Stage       string // its name
	SweepID     string // of the trial
	SweepName   string
	Trial       int          // number of the trial that ran it; without an output, of the newest trial that uses it
	Output      *StageOutput // nil = it has none yet
	OpenTrials  int          // that use it
	EndedTrials int
	Held        bool // an unfinished trial needs it, or a container reads it
}

// StageOutput is the output of a stage, as the ledger has it.
type StageOutput struct {
	AttemptID string // that wrote it
	HostID    string
	HostName  string
	MadeAt    time.Time
	Took      time.Duration
	Files     int    // that are stored; 0 = not known
	Bytes     int64  // of these
	Lost      string // why no trial can use it; empty = trials can
}

// StagePosition is a place in a list of stages, newest output first; zero = at the beginning.
type StagePosition struct {
	At  time.Time `json:"at"`
	Key string    `json:"key"`
}

// NoOutput is the time in StagePosition of a stage without an output: it comes first.
var NoOutput = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Position is the place of a stage in a list.
func (r StageRecord) Position() StagePosition {
	if r.Output == nil {
		return StagePosition{At: NoOutput, Key: r.Key}
	}

	return StagePosition{At: r.Output.MadeAt, Key: r.Key}
}

// StageSource is a trial whose values decide the key of a stage.
type StageSource struct {
	Key    string
	Sweep  Sweep // without its counts
	Trial  int
	Params Assignment
}
