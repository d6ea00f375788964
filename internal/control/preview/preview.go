package preview

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/scheduler/memory"
	"github.com/berthml/berth/internal/scheduler/packing"
	"github.com/berthml/berth/internal/search"
)

// MaxEnumerated is how many trials are enumerated to find the shapes: enough
// for every grid that people write by hand, and a few milliseconds of work.
const MaxEnumerated = 2000

// launchOverhead is a container's overhead on a trial: 0.2-0.3 s to start it
// and as much to collect it (reference measurement, 2026-11-21).
const launchOverhead = 500 * time.Millisecond

// Preview predicts a sweep on the present machines.
type Preview struct {
	Trials       int  // total; 0 = not known
	Enumerated   int  // trials that were looked at
	Complete     bool // those are all
	Shapes       []Shape
	ProbesNeeded int
	ProbesCached int
	AtOnce       int    // when the machines are otherwise idle, berth.MaxOpenTrials at most; 0 = none can
	Why          string // why no more
	Hosts        []HostFit
	Waves        int       // 0 = not known
	Duration     *Duration // nil = nothing was measured
	Stages       []Stage
	Warnings     []berth.Problem
}

// SizedBy says where a reservation comes from.
type SizedBy string

// The sources of a reservation.
const (
	SizedBySpec       SizedBy = "spec"       // resources.memory
	SizedByMeasured   SizedBy = "measured"   // a footprint with its margin
	SizedByPredicted  SizedBy = "predicted"  // from measured shapes
	SizedByUnmeasured SizedBy = "unmeasured" // a guess, until the shape is measured
)

// Shape is one memory shape of the sweep.
type Shape struct {
	Key      string
	Values   berth.Assignment
	Trials   int // among the enumerated ones
	Cached   bool
	Demands  berth.Demands     // by the class of device that it can use; none = no host has its resources
	Class    berth.DeviceClass // the first of them
	Demand   berth.Demand      // on that
	SizedBy  SizedBy
	Known    berth.Footprint // zero when nothing is known
	Duration time.Duration   // of one attempt; 0 = not known
}

// Stage is a stage of the sweep's enumerated trials.
type Stage struct {
	Name  string
	Runs  int           // different keys: as often as it runs, if nothing is there
	Known int           // of them, those whose output is there
	Each  time.Duration // of one run, measured; 0 = not known
}

// Duration is a range of wall-clock time: packed perfectly, and wave by wave.
type Duration struct {
	Min, Max time.Duration
}

// Sketch is a sweep's trials by shape, before anything is known of them.
type Sketch struct {
	spec       berth.Spec
	trials     []int // index into shapes, trial by trial
	shapes     []Shape
	complete   bool
	planned    int                 // total number of trials; 0 = not known
	secretKeys []string            // that hosts must have: public parts
	tight      bool                // forbid leaves less than the search can be relied on to find
	stages     []map[string]string // by stage: shape by key
}

// fewFound is how many trials one call of the search must find for its next
// trials to be relied on. With ten in all its draws, a call misses the next one
// with chance exp(-10), once in 22,000 calls.
const fewFound = 10

// Planned is the number of trials a sweep will make, when that is known, else 0.
func Planned(s berth.Spec) int {
	sketch, err := Enumerate(s, "")
	if err != nil {
		return 0
	}

	return sketch.planned
}

// planned returns the number of trials, judged by the first MaxEnumerated.
func planned(s berth.Spec, suggestions []search.Suggestion, end search.End) int {
	limit := s.Limits.MaxTrials
	size, finite := search.Size(s)

	switch {
	case end != search.EndNone:
		return len(suggestions)
	case len(suggestions) < fewFound: // forbid leaves next to nothing
		return 0
	case !finite || limit > 0 && int64(limit) < size:
		return limit
	default:
		return int(min(size, 1<<31-1))
	}
}

// Enumerate runs the search over at most MaxEnumerated trials.
func Enumerate(s berth.Spec, imageDigest string) (*Sketch, error) {
	sketch, suggestions, err := enumerate(s, imageDigest, MaxEnumerated)
	if err != nil {
		return nil, err
	}

	return sketch, sketch.addStages(suggestions, imageDigest)
}

// addStages adds the keys of the stages that the trials need.
func (k *Sketch) addStages(suggestions []search.Suggestion, imageDigest string) error {
	recipes := search.NewRecipes(k.spec, "", imageDigest)

	for range k.spec.Stages {
		k.stages = append(k.stages, map[string]string{})
	}

	for _, suggestion := range suggestions {
		runs, err := recipes.Of(suggestion.Values)
		if err != nil {
			return err
		}

		for i, run := range runs {
			k.stages[i][run.Key] = run.Shape.Key()
		}
	}

	return nil
}

// AtOnce is how many trials of a sweep run at once on otherwise idle hosts, as the
// placer decides, and how many more the hosts take now, beside the running attempts: at
// most berth.MaxOpenTrials. It looks at as many trials, the first ones. footprints returns
// their shapes' footprints.
func AtOnce(
	s berth.Spec, imageDigest string, hosts []berth.Host, footprints func(keys []string) (map[string]berth.Footprints, error),
) (idle, now int, err error) {
	sketch, _, err := enumerate(s, imageDigest, berth.MaxOpenTrials)
	if err != nil {
		return 0, 0, err
	}

	known, err := footprints(sketch.Keys())
	if err != nil {
		return 0, 0, err
	}

	p := sketch.Preview(hosts, known)
	for _, h := range p.Hosts {
		now += h.AtOnceNow
	}

	return p.AtOnce, now, nil
}

func enumerate(s berth.Spec, imageDigest string, most int) (*Sketch, []search.Suggestion, error) {
	searcher, err := search.New(s)
	if err != nil {
		return nil, nil, err
	}

	suggestions, end, err := searcher.Next(berth.Tried{}, most)
	if err != nil {
		return nil, nil, err
	}

	sketch := &Sketch{
		spec: s, complete: end != search.EndNone, planned: planned(s, suggestions, end),
		tight: end == search.EndDraws || end == search.EndNone && len(suggestions) < fewFound,
	}
	index := map[string]int{}
	shapes := search.NewShapes(s, imageDigest, berth.StageMain)

	for _, suggestion := range suggestions {
		shape := shapes.Of(suggestion.Values)
		key := shape.Key()

		i, seen := index[key]
		if !seen {
			i = len(sketch.shapes)
			index[key] = i
			sketch.shapes = append(sketch.shapes, Shape{Key: key, Values: shape.Values})
		}

		sketch.shapes[i].Trials++
		sketch.trials = append(sketch.trials, i)
	}

	return sketch, suggestions, nil
}

// Keys are the shapes whose footprints Preview wants, the stages' shapes last.
func (k *Sketch) Keys() []string {
	keys := make([]string, 0, len(k.shapes))
	for _, shape := range k.shapes {
		keys = append(keys, shape.Key)
	}

	for _, stage := range k.stages {
		ofStage := slices.Sorted(maps.Values(stage))
		keys = append(keys, slices.Compact(ofStage)...)
	}

	return keys
}

// StageKeys are the keys of all stages. Preview wants those with an output.
func (k *Sketch) StageKeys() (keys []string) {
	for _, stage := range k.stages {
		keys = slices.AppendSeq(keys, maps.Keys(stage))
	}

	return keys
}

// seeStages counts the runs of each stage; made are outputs that are there.
func (k *Sketch) seeStages(made []string, known map[string]berth.Footprints) (stages []Stage) {
	for i, of := range k.stages {
		stage := Stage{Name: k.spec.Stages[i].Name, Runs: len(of)}

		for key, shape := range of {
			stage.Each = max(stage.Each, known[shape].Expected())

			if slices.Contains(made, key) {
				stage.Known++
			}
		}

		stages = append(stages, stage)
	}

	return stages
}

// stageShapes are the shapes of stages that have to run; made are outputs that are there.
func (k *Sketch) stageShapes(made []string) (shapes []string) {
	for _, of := range k.stages {
		for key, shape := range of {
			if !slices.Contains(made, key) && !slices.Contains(shapes, shape) {
				shapes = append(shapes, shape)
			}
		}
	}

	return shapes
}

// stagesTake bounds the time of the stages that have to run, one after the other: at least one
// run of each. known: each was measured.
func stagesTake(p Preview) (least, most time.Duration, known bool) {
	for _, stage := range p.Stages {
		runs := stage.Runs - stage.Known
		if runs == 0 {
			continue
		}

		if stage.Each == 0 {
			return 0, 0, false
		}

		each := stage.Each + launchOverhead
		least, most = least+each, most+each*time.Duration((runs+p.AtOnce-1)/p.AtOnce)
	}

	return least, most, true
}

// NeedSecretKey keeps the trials on hosts that have a key, by its public part.
func (k *Sketch) NeedSecretKey(key string) { k.secretKeys = append(k.secretKeys, key) }

// Preview predicts the sweep on these hosts, with these footprints and outputs of stages.
func (k *Sketch) Preview(hosts []berth.Host, known map[string]berth.Footprints, made ...string) Preview {
	p := Preview{
		Trials: k.planned, Enumerated: len(k.trials), Complete: k.complete, Shapes: slices.Clone(k.shapes), Stages: k.seeStages(made, known),
	}
	capacity := largest(hosts)

	for i := range p.Shapes {
		k.size(&p.Shapes[i], known, hosts)

		switch {
		case p.Shapes[i].Cached:
			p.ProbesCached++
		case k.spec.Probe.Mode != berth.ProbeOff:
			p.ProbesNeeded++
		}
	}

	for _, shape := range k.stageShapes(made) {
		switch {
		case memory.KnownAnywhere(known[shape]):
			p.ProbesCached++
		case k.spec.Probe.Mode != berth.ProbeOff:
			p.ProbesNeeded++
		}
	}

	needs := packing.Request{Datasets: k.spec.DatasetIDs(), SecretKeys: k.secretKeys}
	fit := fitAll(hosts, p.Shapes, k.trials, needs, int(k.spec.Limits.MaxParallel), k.complete)
	p.AtOnce, p.Hosts, p.Why = fit.atOnce, fit.hosts, fit.why

	if p.Trials > 0 && p.AtOnce > 0 {
		p.Waves = (p.Trials + p.AtOnce - 1) / p.AtOnce
		p.Duration = k.duration(p)
	}

	p.Warnings = k.warnings(p, hosts, capacity)

	return p
}

// size decides what each trial of a shape would reserve, as the placer does.
func (k *Sketch) size(shape *Shape, known map[string]berth.Footprints, hosts []berth.Host) {
	shape.Demands, _ = memory.Sizes(memory.Ask{Resources: k.spec.Resources}, known[shape.Key], hosts)
	if classes := shape.Demands.Classes(); len(classes) > 0 {
		shape.Class, shape.Demand = classes[0], shape.Demands[classes[0]]
	}

	f := memory.KnownOn(shape.Class, known[shape.Key])
	if f != nil {
		shape.Known = *f
	}

	shape.Cached = memory.KnownAnywhere(known[shape.Key])
	shape.SizedBy = SizedByUnmeasured

	switch {
	case k.spec.Resources.Memory > 0 && shape.Demand.MemoryBytes == int64(k.spec.Resources.Memory):
		shape.SizedBy = SizedBySpec
	case f != nil && f.Source == berth.FootprintPredicted:
		shape.SizedBy = SizedByPredicted
	case memory.Known(f), memory.Sized(f):
		shape.SizedBy = SizedByMeasured
	}

	if shape.Cached {
		shape.Duration = expected(known[shape.Key], shape.Demands.Classes())
	}
}

// expected is how long an attempt takes on that of the classes where it takes longest, or
// where it was measured when that is on none of them; 0 = not known.
func expected(known berth.Footprints, classes []berth.DeviceClass) time.Duration {
	longest := berth.Duration(0)

	for _, class := range classes {
		if f := memory.KnownOn(class, known); f != nil {
			longest = max(longest, f.Duration)
		}
	}

	return cmp.Or(time.Duration(longest), known.Expected())
}

// duration bounds the wall-clock time: at least the work spread evenly over the
// trials that run at once, at most every wave as long as its longest trial.
// Unmeasured shapes are taken to be like the measured ones.
func (k *Sketch) duration(p Preview) *Duration {
	var shortest, longest time.Duration

	measured, work := 0, 0.0 // in nanoseconds, which may be more than a Duration holds

	for _, shape := range p.Shapes {
		if shape.Duration == 0 {
			continue
		}

		each := shape.Duration + launchOverhead
		if measured == 0 || each < shortest {
			shortest = each
		}

		longest = max(longest, each)
		work += float64(each) * float64(shape.Trials)
		measured += shape.Trials
	}

	if measured == 0 {
		return nil
	}

	work += float64(shortest) * float64(p.Trials-measured)

	d := &Duration{
		Min: max(berth.DurationOf(work/float64(p.AtOnce)), longest),
		Max: berth.DurationOf(float64(longest) * float64(p.Waves)),
	}
	d.Max = max(d.Min, d.Max)

	least, most, known := stagesTake(p)
	if !known {
		return nil
	}

	d.Min, d.Max = d.Min+least, d.Max+most

	return d
}

// largest is the most memory that one host offers, as the placer sees it.
func largest(hosts []berth.Host) int64 {
	most := int64(0)
	for _, h := range hosts {
		most = max(most, h.CapacityBytes())
	}

	return most
}
