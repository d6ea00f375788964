package activities_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/activities"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// shelf stores the trials of one sweep.
type shelf struct {
	activities.Sweeps
	activities.Placements

	hosts  []berth.Host
	spec   berth.Spec
	trials []berth.NewTrial
	states []berth.TrialState // of the first trials; the others wait

	started *time.Time
}

func (s *shelf) SweepRecord(context.Context, string) (berth.Sweep, error) {
	return berth.Sweep{Spec: s.spec, StartedAt: s.started}, nil
}

func (s *shelf) ListHosts(context.Context) ([]berth.Host, error) { return s.hosts, nil }

func (s *shelf) Suggest(
	_ context.Context, _ string, first, count int, needs berth.SearchNeeds,
	suggest func(berth.Tried) ([]berth.NewTrial, bool, error),
) (numbers []int, exhausted bool, err error) {
	if len(s.trials) >= first {
		return sequence(first, min(len(s.trials), first+count-1)), false, nil
	}

	made := map[string]bool{}
	tried := berth.Tried{Made: len(s.trials), Seen: func([]string) (map[string]bool, error) { return made, nil }}

	for i, trial := range s.trials {
		made[trial.Params.Key()], tried.Last = true, trial.Params

		if needs.Past {
			o := berth.Observation{Number: i + 1, Params: trial.Params, State: berth.TrialWaiting}
			if i < len(s.states) {
				o.State = s.states[i]
			}

			if trial.Lost != "" {
				o.State = berth.TrialCanceled
			}

			if o.State == berth.TrialSucceeded {
				o.Value = new(float64(i))
			}

			tried.Past = append(tried.Past, o)
		}
	}

	trials, exhausted, err := suggest(tried)
	s.trials = append(s.trials, trials...)

	return sequence(first, len(s.trials)), exhausted, err
}

// A search that learns chooses while few trials wait, and says what it knew. It makes no
// other trials under the numbers that a restored database forgot.
func TestSuggestTrials_ChoosesLate(t *testing.T) {
	t.Parallel()

	s, err := spec.Decode([]byte("name: a\nimage: b\ncommand: [train, /trial/in/params.json]\nparameters: [{name: x, min: 0.1, max: 9}]\n"+
		"objective: {metric: m, goal: maximize}\nsearch: {algorithm: tpe, startup: 4}\nlimits: {max_trials: 99}\n"), "")
	require.NoError(t, err)

	l := &shelf{spec: s}
	a := &activities.Activities{Sweeps: l, Placements: l, Trials: unmeasured{}}
	ask := func(first, count int) activities.SuggestResult {
		result, err := a.SuggestTrials(t.Context(), activities.SuggestInput{SweepID: restoredID, First: first, Count: count})
		require.NoError(t, err)

		return result
	}

	require.Equal(t, []int{1, 2, 3, 4}, ask(1, 8).Numbers, "the startup points")
	require.Equal(t, "sobol", l.trials[3].Origin.By)

	again := ask(5, 8)
	require.Empty(t, again.Numbers)
	require.True(t, again.Later, "four wait")
	require.False(t, again.Exhausted)

	l.states = []berth.TrialState{berth.TrialSucceeded, berth.TrialRunning, berth.TrialRunning, berth.TrialSucceeded}
	again = ask(5, 8)
	require.Equal(t, []int{5, 6}, again.Numbers)
	require.True(t, again.Later)

	l.states = []berth.TrialState{berth.TrialSucceeded, berth.TrialSucceeded, berth.TrialRunning, berth.TrialSucceeded, berth.TrialSucceeded, berth.TrialRunning}
	require.Equal(t, []int{7}, ask(7, 1).Numbers)
	require.Equal(t, berth.Origin{By: "tpe", Ended: 4, Open: 2, Known: "1-2,4-5"}, l.trials[6].Origin)

	require.Equal(t, []int{10}, ask(10, 1).Numbers)

	for _, lost := range l.trials[7:9] {
		require.Contains(t, lost.Lost, "its values are not known")
		require.Empty(t, lost.Params)
	}

	require.Empty(t, l.trials[9].Lost)
}

// Other shapes wait for the corners, which predict them: until these have ended or are known,
// a minute at most.
func TestSuggestTrials_CornersMeasureFirst(t *testing.T) {
	t.Parallel()

	s, err := spec.Decode([]byte("name: a\nimage: b\ncommand: [train, /trial/in/params.json]\n"+
		"parameters: [{name: x, min: 1, max: 9, memory: true}, {name: y, min: 1, max: 9, memory: true}]\n"+
		"objective: {metric: m, goal: maximize}\nsearch: {algorithm: auto}\nlimits: {max_trials: 99}\n"), "")
	require.NoError(t, err)

	for name, test := range map[string]struct {
		states  []berth.TrialState
		started time.Duration // ago
		known   bool
		waits   bool
	}{
		"they run":             {nil, time.Second, false, true},
		"one runs":             {[]berth.TrialState{berth.TrialSucceeded, berth.TrialFailed, berth.TrialSucceeded, berth.TrialRunning}, time.Second, false, true},
		"all have ended":       {[]berth.TrialState{berth.TrialSucceeded, berth.TrialFailed, berth.TrialSucceeded, berth.TrialSucceeded}, time.Second, false, false},
		"they run for long":    {nil, 2 * time.Minute, false, false},
		"another sweep did it": {nil, time.Second, true, false},
	} {
		l := &shelf{spec: s, states: test.states, started: new(time.Now().Add(-test.started))}
		a := &activities.Activities{Sweeps: l, Placements: l, Trials: corners{shelf: l, known: test.known}}

		for _, first := range []int{1, 3} { // the largest and the smallest, then the two others
			result, err := a.SuggestTrials(t.Context(), activities.SuggestInput{SweepID: restoredID, First: first, Count: 8})
			require.NoError(t, err)
			require.Len(t, result.Numbers, 2)
		}

		result, err := a.SuggestTrials(t.Context(), activities.SuggestInput{SweepID: restoredID, First: 5, Count: 8})
		require.NoError(t, err)
		require.Equal(t, test.waits, len(result.Numbers) == 0, name)
		require.True(t, result.Later, name)
	}
}

// corners has the footprints of all shapes, or of none.
type corners struct {
	activities.Trials
	*shelf

	known bool
}

func (c corners) ListTrials(context.Context, string, []string, int, int) (open []berth.Trial, err error) {
	for i, trial := range c.trials {
		if i >= len(c.states) || !c.states[i].Terminal() {
			open = append(open, berth.Trial{Number: i + 1, ShapeKey: trial.Shape.Key()})
		}
	}

	return open, nil
}

func (c corners) Footprints(_ context.Context, keys []string) (map[string]berth.Footprints, error) {
	known := make(map[string]berth.Footprints)

	for _, key := range keys {
		if c.known {
			known[key] = berth.Footprints{berth.ClassCPU: {Source: berth.FootprintFull, Samples: 1, MemoryPeakBytes: 1 << 30}}
		}
	}

	return known, nil
}

// Trials that have not started yet do not wait while the machines have room for them: they
// are about to start. Those that max_parallel keeps out do.
func TestSuggestTrials_ChoosesForFreePlaces(t *testing.T) {
	t.Parallel()

	for maxParallel, want := range map[string]int{"auto": 8 + 2 - 4, "6": 6 + 2 - 4, "1": 0} {
		s, err := spec.Decode([]byte("name: a\nimage: b\ncommand: [train, /trial/in/params.json]\nparameters: [{name: x, min: 0.1, max: 9}]\n"+
			"objective: {metric: m, goal: maximize}\nsearch: {algorithm: tpe, startup: 4}\nresources: {cpus: 1, memory: 64MiB}\n"+
			"limits: {max_trials: 99, max_parallel: "+maxParallel+"}\n"), "")
		require.NoError(t, err)

		l := &shelf{spec: s, hosts: []berth.Host{{
			ID: "h", Name: "h", State: berth.HostReady, CPUMilli: 20_000, CPUMilliReserved: 12_000, MemoryBytes: 512 << 30, MemoryFreeBytes: 512 << 30,
		}}}
		a := &activities.Activities{Sweeps: l, Placements: l, Trials: unmeasured{}}

		for i, count := range []int{4, want} {
			result, err := a.SuggestTrials(t.Context(), activities.SuggestInput{SweepID: restoredID, First: 1 + 4*i, Count: 4 + 4*i})
			require.NoError(t, err)
			require.Len(t, result.Numbers, count, "trial %d, max_parallel: %s", 1+4*i, maxParallel)
		}
	}
}

func sequence(first, last int) (numbers []int) {
	for n := first; n <= last; n++ {
		numbers = append(numbers, n)
	}

	return numbers
}

// Trials at the corners come alone, before the other startup points.
func TestSuggestTrials_CornersFirst(t *testing.T) {
	t.Parallel()

	s, err := spec.Decode([]byte("name: a\nimage: b\ncommand: [train, /trial/in/params.json]\nparameters: [{name: x, min: 1, max: 9, memory: true}]\n"+
		"enqueue: [{x: 5}]\nobjective: {metric: m, goal: maximize}\nsearch: {algorithm: auto}\nlimits: {max_trials: 9}\n"), "")
	require.NoError(t, err)

	l := &shelf{spec: s}
	a := &activities.Activities{Sweeps: l, Placements: l, Trials: unmeasured{}}

	for _, want := range [][]int{{1, 2, 3}, {4, 5, 6, 7, 8, 9}} {
		result, err := a.SuggestTrials(t.Context(), activities.SuggestInput{SweepID: restoredID, First: want[0], Count: 8})
		require.NoError(t, err)
		require.Equal(t, want, result.Numbers)
	}

	require.Equal(t, []berth.Value{berth.IntValue(5), berth.IntValue(9), berth.IntValue(1)},
		[]berth.Value{l.trials[0].Params["x"], l.trials[1].Params["x"], l.trials[2].Params["x"]})
}

func TestSuggestTrials_SaysWhyItEnds(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		more      string
		trials    int
		exhausted bool
		reason    string
	}{
		"max_trials": {"parameters: [{name: x, min: 1, max: 9}]\nlimits: {max_trials: 4}", 4, false, "limits.max_trials is reached"},
		"space":      {"parameters: [{name: x, min: 1, max: 3}]\nlimits: {max_trials: 4}", 3, true, "every combination was tried"},
		"forbid": {
			"parameters: [{name: x, min: 0.5, max: 1}]\nforbid: [x < 0.9999999]\nlimits: {max_trials: 4}", 0, true,
			"no further combination was found in 100,000 draws; forbid leaves too few",
		},
	} {
		s, err := spec.Decode([]byte("name: a\nimage: b\ncommand: [train, /trial/in/params.json]\n"+test.more), "")
		require.NoError(t, err)

		store := &shelf{spec: s}
		a := &activities.Activities{Sweeps: store, Trials: unmeasured{}, Placements: store}

		var last activities.SuggestResult

		for last.Reason == "" {
			in := activities.SuggestInput{SweepID: "6f1c0d3e-2f5f-4f0e-9b39-0d6f6bb1f0a1", First: len(store.trials) + 1, Count: 2}
			last, err = a.SuggestTrials(t.Context(), in)
			require.NoError(t, err)
			require.True(t, last.Reason != "" || len(last.Numbers) > 0, "a search that goes on suggests something")
		}

		require.Len(t, store.trials, test.trials, name)
		require.Equal(t, test.exhausted, last.Exhausted, name)
		require.Equal(t, test.reason, last.Reason, name)
	}
}

// unmeasured has no footprints.
type unmeasured struct{ activities.Trials }

func (unmeasured) Footprints(context.Context, []string) (map[string]berth.Footprints, error) {
	return nil, nil //nolint:nilnil // no shape is known
}

// With max_parallel: auto as many trials run as fit by their demands, and not as many as
// the hosts have cores.
func TestCapacity_IsWhatFits(t *testing.T) {
	t.Parallel()

	host := berth.Host{ID: "h", Name: "h", State: berth.HostReady, CPUMilli: 64_000, MemoryBytes: 512 << 30, MemoryFreeBytes: 512 << 30}

	for cpus, want := range map[string]int{"0.25": 256, "1": 64, "16": 64, "0.01": berth.MaxOpenTrials} {
		s, err := spec.Decode([]byte("name: a\nimage: b\ncommand: [train, /trial/in/params.json]\nparameters: [{name: x, min: 0.1, max: 1.5}]\nresources: {cpus: "+cpus+", memory: 256MiB}\nlimits: {max_trials: 1000}\n"), "")
		require.NoError(t, err)

		store := &shelf{spec: s, hosts: []berth.Host{host}}
		a := &activities.Activities{Sweeps: store, Trials: unmeasured{}, Placements: store}

		room, err := a.Capacity(t.Context(), activities.SweepRef{SweepID: restoredID})
		require.NoError(t, err)
		require.Equal(t, activities.Room{Capacity: want}, room, "%s cores each", cpus)
	}
}

// restored is a sweep whose database was restored from before its last trials.
// Temporal knows how they ended, but for the open one.
type restored struct {
	shelf
	activities.Trials
	activities.Workflows

	whole []berth.NewTrial // all trials before the restore
	open  int
	ends  map[int]berth.TrialUpdate
	state berth.SweepState
	why   string

	attempts int // of each trial

	footprints berth.Footprints // of every shape
}

const restoredID = "6f1c0d3e-2f5f-4f0e-9b39-0d6f6bb1f0a1"

func (*restored) Footprints(ctx context.Context, keys []string) (map[string]berth.Footprints, error) {
	return unmeasured{}.Footprints(ctx, keys)
}

// restoredSetup makes trials and makes the database forget all but the first kept.
func restoredSetup(t *testing.T, parameters string, trials, kept int) (*restored, *activities.Activities) {
	t.Helper()

	s, err := spec.Decode([]byte("name: a\nimage: b\ncommand: [train, /trial/in/params.json]\nparameters: "+parameters+"\n"), "")
	require.NoError(t, err)

	r := &restored{shelf: shelf{spec: s}, ends: make(map[int]berth.TrialUpdate)}
	a := &activities.Activities{Sweeps: r, Trials: r, Placements: r, Workflows: r}

	for first := 1; first <= trials; first += 2 {
		_, err := a.SuggestTrials(t.Context(), activities.SuggestInput{SweepID: restoredID, First: first, Count: min(2, trials-first+1)})
		require.NoError(t, err)
	}

	require.Len(t, r.trials, trials)
	require.Empty(t, r.ends, "nothing was forgotten")

	r.whole, r.trials = r.trials, slices.Clone(r.trials[:kept])
	for n := 1; n <= kept; n++ {
		r.ends[n] = berth.TrialUpdate{State: berth.TrialFailed}
	}

	return r, a
}

func (r *restored) TrialEnd(_ context.Context, sweepID string, number int) (*berth.TrialUpdate, error) {
	if number == r.open {
		return nil, nil //nolint:nilnil // it goes on
	}

	value := float64(number)

	return &berth.TrialUpdate{SweepID: sweepID, Number: number, State: berth.TrialSucceeded, Kind: berth.FailureOK, Value: &value}, nil
}

func (r *restored) SetTrialState(_ context.Context, u berth.TrialUpdate) (bool, error) {
	if _, ended := r.ends[u.Number]; ended || u.Number > len(r.trials) || u.TrialID != r.trials[u.Number-1].ID {
		return false, nil
	}

	r.ends[u.Number] = u

	return true, nil
}

func (r *restored) ListTrials(_ context.Context, _ string, _ []string, after, limit int) (page []berth.Trial, _ error) {
	for n := after + 1; n <= len(r.trials) && len(page) < limit; n++ {
		if _, ended := r.ends[n]; !ended {
			page = append(page, berth.Trial{Number: n, State: berth.TrialPending})
		}
	}

	return page, nil
}

func (r *restored) PlannedTrial(_ context.Context, _ string, number int, _ string) (berth.PlannedTrial, error) {
	if number > len(r.trials) {
		return berth.PlannedTrial{}, berth.Errorf(berth.KindNotFound, "no trial %d", number)
	}

	return berth.PlannedTrial{Trial: berth.Trial{ID: r.trials[number-1].ID, Attempts: r.attempts}, Spec: r.spec, Footprints: r.footprints}, nil
}

func (r *restored) GetSweep(context.Context, string) (berth.Sweep, error) {
	counts := berth.Counts{Total: len(r.trials)}

	for _, end := range r.ends {
		if end.State == berth.TrialSucceeded {
			counts.Succeeded++
		}
	}

	return berth.Sweep{State: r.state, Reason: r.why, Counts: counts}, nil
}

func (r *restored) SetSweepState(_ context.Context, _ string, state berth.SweepState, why string) (bool, error) {
	r.state, r.why = state, why

	return true, nil
}

// A database was restored from before trials 3 to 60, and the sweep goes on with
// trial 61, or trial 35 does: each number has its old values.
func TestSuggestTrials_FillsWhatARestoredDatabaseForgot(t *testing.T) {
	t.Parallel()

	r, a := restoredSetup(t, "[{name: x, min: 1, max: 99}]", 65, 2)

	brief, err := a.BeginTrial(t.Context(), activities.TrialRef{SweepID: restoredID, Number: 35})
	require.NoError(t, err)
	require.Equal(t, r.whole[34].ID, brief.TrialID)
	require.Equal(t, r.whole[:35], r.trials)

	got, err := a.SuggestTrials(t.Context(), activities.SuggestInput{SweepID: restoredID, First: 61, Count: 5})
	require.NoError(t, err)
	require.Equal(t, []int{61, 62, 63, 64, 65}, got.Numbers)
	require.Equal(t, r.whole, r.trials)
}

// A trial with attempts goes on when its workflow was lost: it neither waits for a
// probe nor measures again.
func TestBeginTrial_OfAnAdoptedTrial(t *testing.T) {
	t.Parallel()

	known := berth.Footprints{berth.ClassCPU: {Source: berth.FootprintFull, Samples: 1, MemoryPeakBytes: 1 << 30}}

	for name, tt := range map[string]struct {
		mode            berth.ProbeMode
		footprints      berth.Footprints
		attempts        int
		probes, guessed bool
	}{
		"begins":                  {berth.ProbeShort, nil, 0, true, false},
		"begins, measured":        {berth.ProbeShort, known, 0, false, false},
		"goes on":                 {berth.ProbeShort, nil, 1, false, true},
		"goes on, measured since": {berth.ProbeShort, known, 2, false, true},
		"goes on, never to probe": {berth.ProbeOff, nil, 1, false, false},
	} {
		r, a := restoredSetup(t, "[{name: x, min: 1, max: 99}]", 40, 40)
		r.spec.Probe.Mode, r.attempts, r.footprints = tt.mode, tt.attempts, tt.footprints

		brief, err := a.BeginTrial(t.Context(), activities.TrialRef{SweepID: restoredID, Number: 1})
		require.NoError(t, err)
		require.Equal(t, tt.probes, brief.NeedsProbe, name)
		require.Equal(t, tt.guessed, brief.Guessed, name)
	}
}

// A sweep that has suggested everything asks the search for no more. Trials
// that its database forgot are made again before it ends, and end as their
// workflows did.
func TestFinishSweep_FillsWhatARestoredDatabaseForgot(t *testing.T) {
	t.Parallel()

	r, a := restoredSetup(t, "[{name: x, min: 1, max: 50}]", 50, 8)

	sweep, err := a.FinishSweep(t.Context(), activities.SweepStateInput{
		SweepID: restoredID, State: berth.SweepSucceeded, Reason: "every combination was tried", Created: 50,
	})
	require.NoError(t, err)
	require.Equal(t, berth.SweepSucceeded, sweep.State)
	require.Equal(t, 50, sweep.Counts.Total)
	require.Equal(t, 42, sweep.Counts.Succeeded)
	require.InDelta(t, 50, *r.ends[50].Value, 0, "the value that its workflow knows")
}

// A sweep that ends leaves no trial open that a restored database believes to
// run: it ends as its workflow did, and counts.
func TestFinishSweep_EndsWhatARestoredDatabaseForgot(t *testing.T) {
	t.Parallel()

	const trials, open = 250, 7 // more than are read at once

	r, a := restoredSetup(t, "[{name: x, min: 1, max: 999}]", trials, trials)
	r.open = open
	clear(r.ends)

	sweep, err := a.FinishSweep(t.Context(), activities.SweepStateInput{
		SweepID: restoredID, State: berth.SweepSucceeded, Reason: "every combination was tried",
	})
	require.NoError(t, err)
	require.Equal(t, berth.SweepSucceeded, sweep.State)
	require.Equal(t, trials-1, sweep.Counts.Succeeded)
	require.NotContains(t, r.ends, open)
	require.InDelta(t, trials, *r.ends[trials].Value, 0)
}

// The last message of a sweep counts its outcomes, and does not count trials without
// room as run.
func TestFinishSweep_CountsInfeasibleTrials(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		counts berth.Counts
		reason string
	}{
		"some": {
			berth.Counts{Succeeded: 1, Infeasible: 39},
			"limits.max_trials is reached; 39 of its trials were infeasible: they needed more than any machine has",
		},
		"none":                       {berth.Counts{Succeeded: 40}, "limits.max_trials is reached"},
		"none keeps its constraints": {berth.Counts{Succeeded: 40}, "limits.max_trials is reached; each trial that succeeded breaks a constraint"},
	} {
		e := &counted{counts: tt.counts}
		if strings.Contains(name, "constraints") {
			e.constraints = []berth.Constraint{{Metric: "ms", Max: new(1.0)}}
		}

		a := &activities.Activities{Sweeps: e, Trials: e, Workflows: e}

		sweep, err := a.FinishSweep(t.Context(), activities.SweepStateInput{
			SweepID: restoredID, State: berth.SweepSucceeded, Reason: "limits.max_trials is reached",
		})
		require.NoError(t, err)
		require.Equal(t, tt.reason, sweep.Reason, name)
	}
}

// counted is a sweep whose trials have all ended, with these counts.
type counted struct {
	restored

	counts      berth.Counts
	constraints []berth.Constraint
}

func (c *counted) GetSweep(context.Context, string) (berth.Sweep, error) {
	return berth.Sweep{State: c.state, Reason: c.why, Counts: c.counts, Spec: berth.Spec{Constraints: c.constraints}}, nil
}

// entries hands the entries of a list to the search, a hundred at a call, as PostgreSQL does.
type entries struct {
	shelf

	all []berth.Assignment
}

func (e *entries) Suggest(
	ctx context.Context, id string, first, count int, needs berth.SearchNeeds, suggest func(berth.Tried) ([]berth.NewTrial, bool, error),
) ([]int, bool, error) {
	return e.shelf.Suggest(ctx, id, first, count, needs, func(tried berth.Tried) ([]berth.NewTrial, bool, error) {
		tried.Listed, tried.From = len(e.all), min(tried.Made, len(e.all))
		tried.Entries = e.all[tried.From:min(tried.From+100, len(e.all))]

		return suggest(tried)
	})
}

// A restored database gets all trials of a list again, also more than are read at once.
func TestFillTrials_MakesAllThatWereForgotten(t *testing.T) {
	t.Parallel()

	s, err := spec.Decode([]byte("name: a\nimage: b\ncommand: [train, /trial/in/params.json]\nparameters: [{name: x, type: int, min: 1, max: 999}]\nsearch: {algorithm: list}\nenqueue: [{x: 1}]\n"), "")
	require.NoError(t, err)

	e := &entries{shelf: shelf{spec: s}}
	for n := range 350 {
		e.all = append(e.all, berth.Assignment{"x": berth.IntValue(int64(n + 1))})
	}

	require.NoError(t, activities.FillTrials(t.Context(), e, restoredID, 300))
	require.Len(t, e.trials, 300)
}
