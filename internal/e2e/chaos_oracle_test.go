package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// good is a trial of a steady sweep as it must end.
func good(edit func(*trialRecord)) trialRecord {
	t := trialRecord{
		Number: 1, State: "succeeded", Kind: "ok", Value: new(200.0), Values: map[string]string{"ms": "200"},
		Attempts: []attemptRecord{{Number: 1, Kind: "ok", ReservedBytes: 64 * mib}},
	}
	if edit != nil {
		edit(&t)
	}

	return t
}

// second is the trial beside it.
func second(edit func(*trialRecord)) trialRecord {
	return good(func(t *trialRecord) {
		t.Number, t.Value, t.Values = 2, new(210.0), map[string]string{"ms": "210"}

		if edit != nil {
			edit(t)
		}
	})
}

// epochs200 is what a trial of the job steady prints whose ms is 200.
const epochs200 = `{"epoch": 1, "val": 50}
{"epoch": 2, "val": 100}
{"epoch": 3, "val": 150}
{"epoch": 4, "val": 200}
`

func TestOracle_Trial(t *testing.T) {
	t.Parallel()

	infra := attemptRecord{Number: 1, Kind: "infra", ReservedBytes: 64 * mib}
	hit := attemptRecord{Number: 1, Kind: "killed", Hit: true, ReservedBytes: 64 * mib}

	for name, c := range map[string]struct {
		job   string
		deeds deeds
		edit  func(*trialRecord)
		want  string // a part of the verdict; empty = none
	}{
		"as expected":        {job: "steady"},
		"wrong value":        {job: "steady", edit: func(t *trialRecord) { t.Value = new(0.25) }, want: "reported 0.25, expected succeeded 200"},
		"value of a sibling": {job: "wide", edit: func(t *trialRecord) { t.Value = new(210.0) }, want: "reported 210, expected succeeded 200"},
		"half its value":     {job: "negative", edit: func(t *trialRecord) { t.Value = new(-100.0) }},
		"a point is missing": {job: "steady", edit: func(t *trialRecord) {
			t.Attempts[0].Heard = &heard{map[int64]float64{1: 50, 2: 100, 4: 200}, epochs200}
		}, want: "has the points map[1:50 2:100 4:200] of attempt 1"},
		"a point of a sibling": {job: "steady", edit: func(t *trialRecord) {
			t.Attempts[0].Heard = &heard{map[int64]float64{1: 50, 2: 100, 3: 157.5, 4: 200}, epochs200}
		}, want: "has the points map[1:50 2:100 3:157.5 4:200]"},
		"a line twice": {job: "steady", edit: func(t *trialRecord) {
			t.Attempts[0].Heard = &heard{map[int64]float64{1: 50, 2: 100, 3: 150, 4: 200}, epochs200 + epochs200[75:]}
		}, want: "has the log"},
		"no log": {job: "steady", edit: func(t *trialRecord) {
			t.Attempts[0].Heard = &heard{map[int64]float64{1: 50, 2: 100, 3: 150, 4: 200}, ""}
		}, want: `has the log ""`},
		"all that it said": {job: "steady", edit: func(t *trialRecord) {
			t.Attempts[0].Heard = &heard{map[int64]float64{1: 50, 2: 100, 3: 150, 4: 200}, epochs200}
		}},
		"what a restored database lacks": {job: "steady", deeds: deeds{Restored: true}, edit: func(t *trialRecord) {
			t.Attempts[0].Heard = &heard{Log: epochs200}
		}},
		"no value":        {job: "steady", edit: func(t *trialRecord) { t.Value = nil }, want: "reported nothing"},
		"a machine fault": {job: "steady", edit: func(t *trialRecord) { t.State, t.Kind, t.Message = "failed", "infra", "gave up" }, want: "ended failed infra (gave up), expected succeeded 200"},
		"blamed for the machine": {
			job: "steady", edit: func(t *trialRecord) { t.State, t.Kind = "failed", "bad_command" }, want: "ended failed bad_command",
		},
		"repeated after a machine fault": {job: "steady", edit: func(t *trialRecord) { t.Attempts = []attemptRecord{infra, {Number: 2, Kind: "ok"}} }},
		"killed by a person once":        {job: "steady", edit: func(t *trialRecord) { t.Attempts = []attemptRecord{hit, {Number: 2, Kind: "ok"}} }},
		"lost for no reason": {job: "steady", edit: func(t *trialRecord) {
			t.Attempts = []attemptRecord{{Number: 1, Kind: "infra", Message: "its container was removed", Host: "host-1", Unprovoked: true}, {Number: 2, Kind: "ok"}}
		}, want: "lost attempt 1 (infra: its container was removed), and nothing befell host-1"},
		"removed by a person": {job: "steady", edit: func(t *trialRecord) {
			t.Attempts = []attemptRecord{{Number: 1, Kind: "infra", Unprovoked: true, Hit: true}, {Number: 2, Kind: "ok"}}
		}},
		"timed out within its limit": {job: "steady", edit: failed("timed_out", 1), want: "was charged for attempt 1 (timed_out"},
		"charged for a machine fault": {job: "steady", edit: func(t *trialRecord) {
			t.Attempts = []attemptRecord{{Number: 1, Kind: "killed", ReservedBytes: 64 * mib}, {Number: 2, Kind: "ok"}}
		}, want: "was charged for attempt 1 (killed"},
		"crashed beside a person's kill": {job: "steady", edit: func(t *trialRecord) {
			t.Attempts = []attemptRecord{hit, {Number: 2, Kind: "crashed"}, {Number: 3, Kind: "ok"}}
		}, want: "was charged for attempt 2 (crashed"},
		"killed by a person three times": {job: "steady", edit: func(t *trialRecord) {
			t.State, t.Kind, t.Value, t.Attempts = "failed", "killed", nil, []attemptRecord{hit, hit, hit}
		}},
		"gave up after one kill": {job: "steady", edit: func(t *trialRecord) {
			t.State, t.Kind, t.Value, t.Attempts = "failed", "killed", nil, []attemptRecord{hit}
		}, want: "ended failed killed"},
		"canceled by a person": {job: "steady", deeds: deeds{Canceled: true}, edit: canceled},
		"canceled by a stop":   {job: "steady", deeds: deeds{Stopped: true}, edit: canceled},
		"stopped while it ran": {job: "steady", deeds: deeds{Stopped: true}, edit: func(t *trialRecord) {
			canceled(t)
			t.Attempts = []attemptRecord{{Number: 1, Kind: "canceled", Started: true}}
		}, want: "was canceled in attempt 1, which ran: a stop lets it finish"},
		"its attempt was forgotten": {job: "steady", edit: func(t *trialRecord) {
			t.Forgotten, t.Attempts = true, []attemptRecord{{Number: 1, Kind: "canceled", Started: true}, {Number: 2, Kind: "ok"}}
		}},
		"canceled beside its result": {job: "steady", edit: func(t *trialRecord) {
			t.Attempts = []attemptRecord{{Number: 1, Kind: "canceled", Started: true}, {Number: 2, Kind: "ok"}}
		}, want: "was charged for attempt 1 (canceled"},
		"stopped before it ran again": {job: "steady", deeds: deeds{Stopped: true}, edit: func(t *trialRecord) {
			canceled(t)
			t.Attempts = []attemptRecord{{Number: 1, Kind: "infra", Started: true}, {Number: 2, Kind: "canceled"}}
		}},
		"canceled by Berth":              {job: "steady", edit: canceled, want: "was canceled (gone), and no person asked for it"},
		"canceled while paused":          {job: "steady", deeds: deeds{Paused: true}, edit: canceled, want: "was canceled"},
		"its workflow ended":             {job: "steady", deeds: deeds{TrialsEnded: map[int]bool{1: true}}, edit: canceled},
		"the workflow of another ended":  {job: "steady", deeds: deeds{TrialsEnded: map[int]bool{2: true}}, edit: canceled, want: "was canceled"},
		"out of memory in a small shape": {job: "shared", edit: func(t *trialRecord) { t.Attempts[0].Kind = "host_oom" }, want: "ran out of memory in attempt 1 with 64 MiB"},
		"reserves a whole host":          {job: "shared", edit: func(t *trialRecord) { t.Attempts[0].ReservedBytes = 1024 * mib }, want: "reserved 1024 MiB in attempt 1, expected at most 320"},
		"out of memory as declared":      {job: "grows", edit: func(t *trialRecord) { t.Attempts[0].Kind = "host_oom" }},
		"fails as declared":              {job: "caught", edit: failed("user_error", 1)},
		"fails after three attempts":     {job: "caught", edit: failed("user_error", 3), want: "was charged for 3 attempts"},
		"fails otherwise":                {job: "caught", edit: failed("host_oom", 1), want: "ended failed host_oom"},
		"succeeds against expectation":   {job: "caught", want: "ended succeeded ok (), expected failed user_error"},
		"small sibling":                  {job: "greedy", edit: func(t *trialRecord) { t.Values["want"] = "16" }},
		"small sibling is infeasible": {job: "greedy", edit: func(t *trialRecord) {
			t.State, t.Kind, t.Value, t.Values["want"] = "infeasible", "too_big", nil, "16"
		}, want: "ended infeasible too_big"},
		"large sibling": {job: "greedy", edit: func(t *trialRecord) {
			t.State, t.Kind, t.Value, t.Values["want"] = "infeasible", "too_big", nil, "4096"
		}},
		"on cores instead of a GPU": {job: "gpu", want: `had GPU "" in attempt 1`},
		"on a GPU instead of cores": {job: "steady", edit: onCard, want: `had GPU "GPU-1" in attempt 1`},
		"within its GPU":            {job: "gpu", edit: onCard},
		"over its part of a GPU":    {job: "gpu", edit: func(t *trialRecord) { onCard(t); t.Attempts[0].DevicePeak = 1025 * mib }, want: "held 1025 MiB of its GPU in attempt 1 and had reserved 1024"},
		"outgrows it as declared":   {job: "gpu grows", edit: func(t *trialRecord) { onCard(t); t.Attempts[0].DevicePeak = 1025 * mib }},
		"outgrows it under MPS": {job: "gpu grows", edit: func(t *trialRecord) {
			onCard(t)
			t.Attempts[0].DevicePeak, t.Attempts[0].MPS = 1025*mib, true
		}, want: "held 1025 MiB of its GPU in attempt 1 and had reserved 1024"},
		"out of memory on its GPU":  {job: "gpu", edit: func(t *trialRecord) { onCard(t); t.Attempts[0].Kind = "device_oom" }, want: "ran out of memory in attempt 1"},
		"the same as declared":      {job: "gpu grows", edit: func(t *trialRecord) { onCard(t); t.Attempts[0].Kind = "device_oom" }},
		"charged for its neighbour": {job: "gpu", edit: func(t *trialRecord) { onCard(t); t.Attempts[0].Kind = "crashed" }, want: "was charged for attempt 1 (crashed"},
		"ended by its neighbour":    {job: "gpu", edit: func(t *trialRecord) { onCard(t); t.Attempts[0].Kind = "neighbour_fault" }},
		"contaminated":              {job: "checkpoint", edit: func(t *trialRecord) { t.Value = new(2.0) }, want: "reported 2, expected succeeded 1"},
		"a mutant's own fault":      {job: "mutant", edit: failed("bad_command", 1)},
		"its row was forgotten":     {job: "steady", edit: failed("infra", 1), want: "ended failed infra"},
		"a mutant without a cause":  {job: "mutant", edit: failed("infra", 10), want: "ended failed infra"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			verdict := judgeTrial(order{Job: c.job}, c.deeds, good(c.edit))
			if c.want == "" {
				require.Empty(t, verdict)
			} else {
				require.Contains(t, verdict, c.want)
			}
		})
	}
}

func onCard(t *trialRecord) { t.Attempts[0].Device, t.Attempts[0].DeviceBytes = "GPU-1", 1024*mib }

func canceled(t *trialRecord) {
	t.State, t.Kind, t.Value, t.Message, t.Attempts = "canceled", "canceled", nil, "gone", nil
}

func failed(kind string, attempts int) func(*trialRecord) {
	return func(t *trialRecord) {
		t.State, t.Kind, t.Value, t.Attempts = "failed", kind, nil, nil
		for i := range attempts {
			t.Attempts = append(t.Attempts, attemptRecord{Number: i + 1, Kind: kind})
		}
	}
}

func TestOracle_Sweep(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		job   string
		deeds deeds
		s     sweepRecord
		want  string
	}{
		"as expected":    {"steady", deeds{}, sweepRecord{State: "succeeded", Planned: 1, Trials: []trialRecord{good(nil)}}, ""},
		"lost a trial":   {"steady", deeds{}, sweepRecord{State: "succeeded", Planned: 2, Trials: []trialRecord{good(nil)}}, "with 1 of 2 trials"},
		"names a trial":  {"steady", deeds{}, sweepRecord{State: "succeeded", Planned: 1, Trials: []trialRecord{good(canceled)}}, "trial 1 was canceled"},
		"all failed":     {"fails", deeds{}, sweepRecord{State: "failed", Planned: 1, Trials: []trialRecord{good(failed("user_error", 1))}}, ""},
		"wrongly failed": {"steady", deeds{}, sweepRecord{State: "failed", Reason: "x", Planned: 1, Trials: []trialRecord{good(nil)}}, "ended failed (x), expected succeeded"},
		"canceled":       {"steady", deeds{Canceled: true}, sweepRecord{State: "canceled", Planned: 3, Trials: []trialRecord{good(nil), second(canceled)}}, ""},
		"a trial too many": {"greedy", deeds{}, sweepRecord{State: "succeeded", Planned: 1, Trials: []trialRecord{
			good(func(t *trialRecord) { t.Values["want"] = "16" }), good(func(t *trialRecord) { t.Number, t.Values["want"] = 2, "99" }),
		}}, "with 2 trials, more than the 1"},
		"one point twice": {"steady", deeds{}, sweepRecord{State: "succeeded", Planned: 2, Trials: []trialRecord{
			good(nil), good(func(t *trialRecord) { t.Number = 2 }),
		}}, "trial 2 has the values of trial 1: map[ms:200]"},
		"a point of another file": {"steady", deeds{}, sweepRecord{State: "succeeded", Planned: 1, Trials: []trialRecord{
			good(func(t *trialRecord) { t.Value, t.Values["ms"] = new(220.0), "220" }),
		}}, `trial 1 has ms = "220", which is none of [200 210]`},
		"both points":   {"steady", deeds{}, sweepRecord{State: "succeeded", Planned: 2, Trials: []trialRecord{good(nil), second(nil)}}, ""},
		"canceled late": {"steady", deeds{Canceled: true}, sweepRecord{State: "succeeded", Planned: 1, Trials: []trialRecord{good(nil)}}, ""},
		"by Berth":      {"steady", deeds{}, sweepRecord{State: "canceled", Reason: "gone", Planned: 1}, "ended canceled (gone), expected failed"},
		"lost all":      {"steady", deeds{}, sweepRecord{State: "succeeded", Planned: 1}, "ended succeeded (), expected failed"},
		"stopped":       {"steady", deeds{Stopped: true}, sweepRecord{State: "stopped", Planned: 3, Trials: []trialRecord{good(nil)}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			verdicts := judgeSweep(order{Job: c.job, Times: []int{200, 210}}, c.deeds, c.s)
			if c.want == "" {
				require.Empty(t, verdicts)
			} else {
				require.Len(t, verdicts, 1)
				require.Contains(t, verdicts[0], c.want)
			}
		})
	}
}

// A rule of a sweep's file ends it when it holds, and only then.
func TestOracle_Rules(t *testing.T) {
	t.Parallel()

	const (
		all     = "every combination was tried"
		reached = "trial 1 reached the target: 200"
		limited = "2 trials failed, more than limits.max_failed_trials (1)"
	)

	aims := order{Job: "aims", Times: []int{200, 210}, Target: 200}
	misses := order{Job: "aims", Times: []int{200, 210}, Target: 100}
	fragile := order{Job: "fails", Times: []int{200, 210}, MaxFailed: 1}
	robust := order{Job: "fails", Times: []int{200, 210}, MaxFailed: 2}
	both := []trialRecord{good(nil), second(nil)}
	stopped := []trialRecord{good(nil), second(canceled)}
	bothFailed := []trialRecord{good(failed("user_error", 1)), second(failed("user_error", 1))}

	for name, c := range map[string]struct {
		order  order
		deeds  deeds
		state  string
		reason string
		trials []trialRecord
		want   string
	}{
		"reached":                       {aims, deeds{}, "succeeded", reached, both, ""},
		"reached and missed":            {aims, deeds{}, "succeeded", all, both, `ended succeeded (every combination was tried), expected "reached the target" in its reason`},
		"stopped the others":            {aims, deeds{}, "succeeded", reached, stopped, ""},
		"before the others were stored": {aims, deeds{}, "succeeded", reached, stopped[:1], ""},
		"stopped while it ran": {aims, deeds{}, "succeeded", reached, []trialRecord{good(nil), second(func(t *trialRecord) {
			canceled(t)
			t.Attempts = []attemptRecord{{Number: 1, Kind: "canceled", Started: true}}
		})}, "was canceled in attempt 1, which ran: a stop lets it finish"},
		"a rule is no person":          {aims, deeds{}, "stopped", reached, both, "ended stopped"},
		"not reached":                  {misses, deeds{}, "succeeded", all, both, ""},
		"not reached, and said to be":  {misses, deeds{}, "succeeded", reached, both, `"reached the target" not to be in its reason`},
		"not reached, and stopped":     {misses, deeds{}, "succeeded", all, stopped, "no person asked for it"},
		"no target":                    {order{Job: "wide", Times: aims.Times}, deeds{}, "succeeded", all, both, ""},
		"a person was faster":          {aims, deeds{Stopped: true}, "stopped", "stopped by a person", both, ""},
		"a person ended a trial":       {aims, deeds{TrialsEnded: map[int]bool{1: true}}, "succeeded", all, both, ""},
		"a restored database":          {aims, deeds{Restored: true}, "succeeded", "it had completed", both, ""},
		"too many failed":              {fragile, deeds{}, "failed", limited, bothFailed, ""},
		"too many failed, and missed":  {fragile, deeds{}, "failed", all, bothFailed, `expected "more than limits.max_failed_trials" in its reason`},
		"not too many failed":          {robust, deeds{}, "failed", all, bothFailed, ""},
		"too few failed for its limit": {robust, deeds{}, "failed", limited, bothFailed, `"more than limits.max_failed_trials" not to be in its reason`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			verdicts := judgeSweep(c.order, c.deeds, sweepRecord{State: c.state, Reason: c.reason, Planned: 2, Trials: c.trials})
			if c.want == "" {
				require.Empty(t, verdicts)
			} else {
				require.Len(t, verdicts, 1)
				require.Contains(t, verdicts[0], c.want)
			}
		})
	}
}

// The file of a sweep says its rules.
func TestOracle_RulesAreOfTheFile(t *testing.T) {
	t.Parallel()

	require.Contains(t, order{Job: "aims", Name: "x", Times: []int{200}, Target: 200}.file(), "objective: {metric: val, goal: minimize, target: 200}\n")
	require.Contains(t, order{Job: "fails", Name: "x", Times: []int{200}, MaxFailed: 1}.file(), "limits: {max_failed_trials: 1}\n")
}

// A shape that was measured reserves what it needs, and not what one reserves
// that is not known.
func TestOracle_Measured(t *testing.T) {
	t.Parallel()

	reserves := func(bytes int64) sweepRecord {
		return sweepRecord{Trials: []trialRecord{good(nil), second(func(t *trialRecord) { t.Attempts[0].ReservedBytes = bytes })}}
	}

	require.Empty(t, judgeMeasured(reserves(128*mib)))
	require.Contains(t, judgeMeasured(reserves(probeBytes)), "trial 2 reserved 256 MiB in attempt 1, expected at most 192")
}

// An attempt is repeated for nothing only where something befell its host that
// explains it.
func TestOracle_Provoked(t *testing.T) {
	t.Parallel()

	const (
		late    = "host host-1 did not answer (ScheduleToStart); the attempt goes elsewhere"
		refused = "host host-1 could not carry the attempt out: E_NAME_COLLISION"
		gone    = "Docker went away when it ended; Berth runs it again (turn on Docker's live-restore)"
		sick    = "its GPU failed under it, through no fault of the trial; Berth runs it again elsewhere: XID 79"
		lost    = `ended well while Docker was away, and its report of "val" was lost with its output`
	)

	placed := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	finished := placed.Add(20 * time.Second)
	during := func(kind troubleKind, host string, from, lasts time.Duration) trouble {
		return trouble{span{placed.Add(from), placed.Add(from + lasts)}, kind, host}
	}
	short := during(absence, "host-1", time.Second, 4*time.Second)

	for name, c := range map[string]struct {
		all     []trouble
		message string
		want    bool
	}{
		"nothing":                         {nil, late, false},
		"a worker that was soon replaced": {[]trouble{short}, late, false},
		"a worker that was away":          {[]trouble{during(absence, "host-1", time.Second, 7*time.Second)}, late, true},
		"a worker that is away":           {[]trouble{{span{from: placed.Add(time.Second)}, absence, "host-1"}}, late, true},
		"a worker that was away twice":    {[]trouble{short, during(absence, "host-1", 6*time.Second, 4*time.Second)}, late, true},
		"another worker that was away":    {[]trouble{during(absence, "host-2", time.Second, 15*time.Second)}, late, false},
		"away before it was placed":       {[]trouble{during(absence, "host-1", -20*time.Second, 15*time.Second)}, late, false},
		"mostly before it was placed":     {[]trouble{during(absence, "host-1", -20*time.Second, 25*time.Second)}, late, false},
		"away and refused":                {[]trouble{during(absence, "host-1", time.Second, 15*time.Second)}, refused, false},
		"a cut":                           {[]trouble{during(silence, "host-1", time.Second, time.Second)}, late, true},
		"a cut a moment before":           {[]trouble{during(silence, "host-1", -10*time.Second, time.Second)}, late, true},
		"a cut and refused":               {[]trouble{during(silence, "host-1", time.Second, time.Second)}, refused, false},
		"without Temporal":                {[]trouble{during(silence, "", time.Second, time.Second)}, late, true},
		"without Docker":                  {[]trouble{during(breakdown, "host-1", time.Second, time.Second)}, refused, true},
		"without Docker soon after":       {[]trouble{during(breakdown, "host-1", 49*time.Second, time.Second)}, gone, true},
		"output lost soon after":          {[]trouble{during(breakdown, "host-1", 49*time.Second, time.Second)}, lost, true},
		"without Docker long after":       {[]trouble{during(breakdown, "host-1", 51*time.Second, time.Second)}, gone, false},
		"refused, without Docker after":   {[]trouble{during(breakdown, "host-1", 49*time.Second, time.Second)}, refused, false},
		"another without Docker":          {[]trouble{during(breakdown, "host-2", time.Second, time.Second)}, refused, false},
		"a restored database":             {[]trouble{during(breakdown, "", time.Second, time.Second)}, refused, true},
		"its GPU failed":                  {[]trouble{during(cardFault, "host-1", time.Second, time.Second)}, sick, true},
		"the GPU of another failed":       {[]trouble{during(cardFault, "host-2", time.Second, time.Second)}, sick, false},
		"a GPU failed and refused":        {[]trouble{during(cardFault, "host-1", time.Second, time.Second)}, refused, false},
		"no GPU failed":                   {nil, sick, false},
		"its GPU failed soon after":       {[]trouble{during(cardFault, "host-1", 29*time.Second, time.Second)}, sick, true},
		"its GPU failed long after":       {[]trouble{during(cardFault, "host-1", 31*time.Second, time.Second)}, sick, false},
		"after its end":                   {[]trouble{during(breakdown, "host-1", 21*time.Second, time.Second)}, refused, false},
	} {
		require.Equal(t, c.want, provoked(c.all, "host-1", c.message, placed, finished), name)
	}
}

// What a person asked for, and a server acknowledged, is demanded.
func TestOracle_Deeds(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	after := now.Add
	trial := func(placed, finished time.Time, state string) trialRecord {
		return good(func(t *trialRecord) {
			t.State, t.FinishedAt, t.Attempts[0].PlacedAt = state, finished, placed
		})
	}

	var paused, resumed, forgotten deeds

	paused.acknowledged("pause", now)
	resumed.acknowledged("pause", now)
	resumed.resuming(after(time.Minute))
	forgotten.acknowledged("pause", now)
	forgotten.acknowledged("stop", now)
	forgotten.acknowledged("cancel", now)
	forgotten.forget()

	canceling := deeds{CanceledAt: now, CancelDue: after(30 * time.Second)}

	for name, c := range map[string]struct {
		deeds deeds
		trial trialRecord
		state string
		want  string // empty = nothing
	}{
		"placed before a pause":              {paused, trial(after(-time.Second), after(time.Hour), "succeeded"), "succeeded", ""},
		"placed by the round of the pause":   {paused, trial(after(placeLate), after(time.Hour), "succeeded"), "succeeded", ""},
		"placed in a pause":                  {paused, trial(after(placeLate+time.Second), after(time.Hour), "succeeded"), "succeeded", "was placed in attempt 1 at 12:00:11.000, after a pause"},
		"placed before the resume":           {resumed, trial(after(50*time.Second), after(time.Hour), "succeeded"), "succeeded", "after a pause"},
		"placed after the resume":            {resumed, trial(after(61*time.Second), after(time.Hour), "succeeded"), "succeeded", ""},
		"placed by the round of the stop":    {deeds{StoppedAt: now}, trial(after(placeLate), after(time.Hour), "succeeded"), "stopped", ""},
		"placed after a stop":                {deeds{StoppedAt: now}, trial(after(placeLate+1), after(time.Hour), "succeeded"), "stopped", "after a stop"},
		"canceled":                           {canceling, trial(after(-time.Second), after(time.Second), "canceled"), "canceled", ""},
		"placed before the cancel was heard": {canceling, trial(after(29*time.Second), after(time.Minute), "canceled"), "canceled", ""},
		"placed after the cancel was heard":  {canceling, trial(after(31*time.Second), after(time.Minute), "canceled"), "canceled", "after a cancellation"},
		"all had ended before the cancel":    {canceling, trial(after(-time.Minute), after(-time.Second), "succeeded"), "succeeded", ""},
		"a cancel that was lost":             {canceling, trial(after(-time.Minute), after(time.Second), "succeeded"), "succeeded", "ended succeeded (), although its cancellation was acknowledged at 12:00:00.000"},
		"forgotten by a restored database":   {forgotten, trial(after(time.Minute), after(time.Hour), "succeeded"), "succeeded", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			verdicts := judgeDeeds(c.deeds, sweepRecord{State: c.state, Trials: []trialRecord{c.trial}})
			if c.want == "" {
				require.Empty(t, verdicts)
			} else {
				require.Len(t, verdicts, 1)
				require.Contains(t, verdicts[0], c.want)
			}
		})
	}
}

func TestOracle_Pause(t *testing.T) {
	t.Parallel()

	paused := sweepRecord{State: "paused", Reason: "doubt"}
	require.Empty(t, judgePause(deeds{Paused: true}, paused))
	require.Empty(t, judgePause(deeds{}, sweepRecord{State: "running"}))
	require.Contains(t, judgePause(deeds{}, paused), "is paused (doubt)")
}

// Every file of a storm that is not a mutant names what its trials must end
// as, also before its trials are known.
func TestOracle_EveryJobExpectsSomething(t *testing.T) {
	t.Parallel()

	for _, j := range jobs {
		want := j.want(nil)
		require.True(t, want.Any || want.State != "", j.name)
		require.NotEmpty(t, order{Job: j.name, Name: "x", Times: []int{1}, Probe: "off"}.file())
	}
}

// A job that must succeed has a limit of time that it keeps, beside max_parallel.
func TestOracle_SteadyTrialsHaveALimit(t *testing.T) {
	t.Parallel()

	file := order{Job: "steady", Name: "x", Times: []int{200}, MaxParallel: 2}.file()
	require.Contains(t, file, "limits: {max_parallel: 2, max_trial_duration: 8s}\n")
	require.Equal(t, 1, strings.Count(file, "limits:"), "YAML takes a key once")
	require.NotContains(t, order{Job: "mutant", Name: "x", Times: []int{200}}.file(), "limits:", "mutations write their own")
}
