package forecast_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/forecast"
	"github.com/berthml/berth/internal/packing"
)

// With one slot the request behind k others starts after what runs and k times what each takes.
func TestStarts_OneSlot(t *testing.T) {
	t.Parallel()

	w := forecast.World{Hosts: []berth.Host{host("a", 1)}}
	hold(&w, 0, "s", 1, takes(7*time.Minute))

	const d = 10 * time.Minute
	for i := range 20 {
		w.Requests = append(w.Requests, request("s", i, 1, takes(d)))
	}

	starts := forecast.Starts(w)
	for i, r := range w.Requests {
		want := 7*time.Minute + time.Duration(i)*d
		require.Equal(t, berth.ExpectedStart{Min: want, Max: want}, starts[r.AttemptID], i)
	}
}

// Where times differ, the range is from the short ones to the long ones.
func TestStarts_Range(t *testing.T) {
	t.Parallel()

	w := forecast.World{Hosts: []berth.Host{host("a", 1)}}
	hold(&w, 0, "s", 1, berth.RunTime{Known: true, Min: time.Minute, Max: 3 * time.Minute})

	each := berth.RunTime{Known: true, Min: 2 * time.Minute, Max: 5 * time.Minute}
	w.Requests = []forecast.Request{request("s", 0, 1, each), request("s", 1, 1, each)}

	require.Equal(t, map[string]berth.ExpectedStart{
		"s-000": {Min: time.Minute, Max: 3 * time.Minute},
		"s-001": {Min: 3 * time.Minute, Max: 8 * time.Minute},
	}, forecast.Starts(w))
}

// What fits starts now; an end of many makes room for many.
func TestStarts_ManySlots(t *testing.T) {
	t.Parallel()

	w := forecast.World{Hosts: []berth.Host{host("a", 4), host("b", 4)}}
	for i := range 24 {
		w.Requests = append(w.Requests, request("s", i, 1, takes(time.Hour)))
	}

	starts := forecast.Starts(w)
	for i, r := range w.Requests {
		want := time.Duration(i/8) * time.Hour
		require.Equal(t, berth.ExpectedStart{Min: want, Max: want}, starts[r.AttemptID], i)
	}
}

// A host that runs one at a time is full with one, whatever room it has.
func TestStarts_MaxAttempts(t *testing.T) {
	t.Parallel()

	w := forecast.World{Hosts: []berth.Host{host("a", 8)}}
	w.Hosts[0].MaxAttempts = 1

	for i := range 3 {
		w.Requests = append(w.Requests, request("s", i, 1, takes(time.Minute)))
	}

	require.Equal(t, 2*time.Minute, forecast.Starts(w)["s-002"].Max)
}

// A start that cannot be known has its reason, and no figures.
func TestStarts_Unknown(t *testing.T) {
	t.Parallel()

	known := takes(time.Minute)

	for name, tt := range map[string]struct {
		change func(w *forecast.World)
		want   berth.StartUnknown
	}{
		"nothing could hold it": {func(w *forecast.World) { w.Hosts[0] = host("a", 1) }, berth.StartNothingFits},
		"no host":               {func(w *forecast.World) { w.Hosts = nil }, berth.StartHostAway},
		"the host is lost":      {func(w *forecast.World) { w.Hosts[0].State = berth.HostLost }, berth.StartHostAway},
		"the host drains":       {func(w *forecast.World) { w.Hosts[0].State = berth.HostDraining }, berth.StartHostAway},
		"the host is cordoned, and its test is due": {func(w *forecast.World) {
			w.Hosts[0].CordonedAt, w.Hosts[0].TestDue = new(time.Time), true
		}, berth.StartHostAway},
		"others hold the memory": {func(w *forecast.World) { w.Hosts[0].MemoryFreeBytes = gib }, berth.StartNoEndHelps},
		"what runs was never measured": {func(w *forecast.World) {
			hold(w, 0, "new", 1, berth.RunTime{})
		}, berth.StartTimeUnknown},
		"what runs is on a silent host, which still takes attempts": {func(w *forecast.World) {
			hold(w, 0, "s", 1, known)
			w.Running[0].Silent = true
		}, berth.StartHostAway},
		"what comes first was never measured": {func(w *forecast.World) {
			w.Requests = append(w.Requests, request("new", 0, 2, berth.RunTime{}))
		}, berth.StartTimeUnknown},
		"places of its sweep are for a lost host's": {func(w *forecast.World) {
			w.Sweeps = map[string]packing.SweepLimit{"s": {MaxParallel: 1, Away: 1}}
		}, berth.StartHostAway},
		"it is too long until then": {func(w *forecast.World) {
			hold(w, 0, "s", 1, takes(30*24*time.Hour))
			hold(w, 0, "s", 1, takes(40*24*time.Hour))
			w.Requests = append(w.Requests, request("s", 0, 2, takes(time.Hour)))
		}, berth.StartFarAhead},
	} {
		w := forecast.World{Hosts: []berth.Host{host("a", 2)}, Requests: []forecast.Request{request("s", 1, 2, known)}}
		tt.change(&w)
		require.Equal(t, berth.ExpectedStart{Unknown: tt.want}, forecast.Starts(w)["s-001"], name)
	}
}

// What nobody has measured does not matter to one that finds a place beside it; it may end at any time.
func TestStarts_UnknownElsewhere(t *testing.T) {
	t.Parallel()

	w := forecast.World{Hosts: []berth.Host{host("a", 1), host("b", 1)}, Requests: []forecast.Request{request("s", 1, 1, takes(time.Minute))}}
	hold(&w, 0, "new", 1, berth.RunTime{})
	hold(&w, 1, "s", 1, takes(time.Minute))
	require.Equal(t, berth.ExpectedStart{Max: time.Minute}, forecast.Starts(w)["s-001"])
}

// A sweep's own limit holds in a replay, too.
func TestStarts_MaxParallel(t *testing.T) {
	t.Parallel()

	w := forecast.World{Hosts: []berth.Host{host("a", 8)}, Sweeps: map[string]packing.SweepLimit{"s": {MaxParallel: 1, Running: 1}}}
	hold(&w, 0, "s", 1, takes(time.Minute))

	for i := range 3 {
		w.Requests = append(w.Requests, request("s", i, 1, takes(time.Minute)))
	}

	starts := forecast.Starts(w)
	require.Equal(t, time.Minute, starts["s-000"].Max)
	require.Equal(t, 3*time.Minute, starts["s-002"].Min)
}

// Trials of another sweep that have not asked yet come first where they are heavier, until the light one is overdue.
func TestStarts_LaterTrials(t *testing.T) {
	t.Parallel()

	w := forecast.World{Hosts: []berth.Host{host("a", 1)}, Requests: []forecast.Request{
		request("heavy", 1, 1, takes(3*time.Minute)), request("light", 290, 1, takes(time.Second)),
	}}
	hold(&w, 0, "heavy", 1, takes(3*time.Minute))

	require.Equal(t, berth.ExpectedStart{Min: 6 * time.Minute, Max: 6 * time.Minute}, forecast.Starts(w)["light-290"])

	w.More = map[string]int{"heavy": 1000}
	require.Equal(t, berth.ExpectedStart{Min: 6 * time.Minute, Max: 12 * time.Minute}, forecast.Starts(w)["light-290"])
}

// A host that is kept free is so in a replay; its turn ends without an end of an attempt.
func TestStarts_Kept(t *testing.T) {
	t.Parallel()

	w := forecast.World{Hosts: []berth.Host{host("a", 2)}, Requests: []forecast.Request{
		request("wide", 1, 2, takes(time.Hour)), request("s", 2, 1, takes(time.Minute)),
	}}
	w.Requests[0].Waited = packing.DrainAfter
	hold(&w, 0, "s", 1, takes(20*time.Minute))

	starts := forecast.Starts(w)
	require.Equal(t, 20*time.Minute, starts["wide-001"].Max)
	require.Equal(t, 80*time.Minute, starts["s-002"].Max, "behind it")

	w.Running[0].Left = takes(50 * time.Hour)
	require.Equal(t, time.Hour, forecast.Starts(w)["s-002"].Max, "the first turn is over")
}

// Of a long queue those get a range that are decided first, not the oldest.
func TestStarts_FarBack(t *testing.T) {
	t.Parallel()

	w := forecast.World{Hosts: []berth.Host{host("a", 1)}}
	for i := range forecast.Most {
		w.Requests = append(w.Requests, request("light", i, 1, takes(time.Second)))
	}

	w.Requests = append(w.Requests, request("heavy", 299, 1, takes(time.Minute)))

	starts := forecast.Starts(w)
	require.Len(t, starts, forecast.Most+1)
	require.Equal(t, berth.ExpectedStart{}, starts["heavy-299"])
	require.Equal(t, berth.StartFarBack, starts["light-199"].Unknown)
	require.Empty(t, starts["light-198"].Unknown)
}

// On a GPU the modes, its processes and its memory are booked and released.
func TestStarts_OnGPUs(t *testing.T) {
	t.Parallel()

	h := host("a", 64)
	h.Devices = []berth.Device{{ID: "GPU-1", HostID: "a", Model: "GPU", Mode: berth.SharingTimeSlicing, MemoryBytes: 4 * gib, FreeBytes: 4 * gib, MaxContexts: 2}}
	w := forecast.World{Hosts: []berth.Host{h}}

	for i := range 6 {
		r := request("s", i, 1, takes(time.Minute))
		d := demand(1)
		d.DeviceBytes, d.ExclusiveDevice = gib, i == 2
		r.Demands = berth.Demands{"GPU": d}
		w.Requests = append(w.Requests, r)
	}

	var got []time.Duration

	starts := forecast.Starts(w)
	for _, r := range w.Requests {
		require.Empty(t, starts[r.AttemptID].Unknown)
		got = append(got, starts[r.AttemptID].Max/time.Minute)
	}

	require.Equal(t, []time.Duration{1, 1, 0, 2, 2, 3}, got, "two at once; the third, which is to be alone, is overdue after a minute and comes first")
}

// What can never start is told so however many others wait.
func TestStarts_NeverBesideManyOthers(t *testing.T) {
	t.Parallel()

	for _, others := range []int{3, 16} { // 16 trials of a sweep are open on the smallest machine
		w := forecast.World{Hosts: []berth.Host{host("a", 1), host("big", 8)}}
		w.Hosts[1].State = berth.HostLost
		hold(&w, 0, "new", 1, berth.RunTime{}) // never measured

		for i := range others {
			w.Requests = append(w.Requests, request("s", i, 1, takes(time.Minute)))
		}

		w.Requests = append(w.Requests, request("large", 250, 4, takes(time.Minute)), request("huge", 251, 9, takes(time.Minute)))
		starts := forecast.Starts(w)
		require.Equal(t, berth.StartHostAway, starts["large-250"].Unknown, others)
		require.Equal(t, berth.StartNothingFits, starts["huge-251"].Unknown, others)
		require.Equal(t, berth.StartTimeUnknown, starts["s-000"].Unknown, others)
	}
}

func TestStarts_BehindWhatCannotStart(t *testing.T) {
	t.Parallel()

	w := forecast.World{Hosts: []berth.Host{host("a", 1), host("big", 64)}}
	w.Hosts[1].State = berth.HostLost
	hold(&w, 0, "light", 1, takes(time.Minute))

	for i := range forecast.Most {
		w.Requests = append(w.Requests, request("heavy", i, 2, takes(time.Hour)))
	}

	w.Requests = append(w.Requests, request("light", 250, 1, takes(time.Minute)))
	starts := forecast.Starts(w)
	require.Equal(t, berth.StartHostAway, starts["heavy-000"].Unknown)
	require.Equal(t, berth.ExpectedStart{Min: time.Minute, Max: time.Minute}, starts["light-250"], "it starts at the next end")
}

// Behind its sweep's own limit a request does not become overdue: others go first.
func TestStarts_BehindTheLimitIsNoWait(t *testing.T) {
	t.Parallel()

	w := forecast.World{Hosts: []berth.Host{host("a", 4)}, Sweeps: map[string]packing.SweepLimit{"alone": {MaxParallel: 1, Running: 1}}}
	hold(&w, 0, "alone", 4, takes(5*time.Minute))

	alone := request("alone", 1, 4, takes(5*time.Minute)) // the next of it, which wants the host for itself
	d := demand(4)
	d.Exclusive = true
	alone.Demands, alone.Waited = berth.Demands{berth.ClassCPU: d}, 0 // all of its wait is behind the limit
	w.Requests = append(w.Requests, alone)

	for i := range 4 { // heavier: they come first
		w.Requests = append(w.Requests, request("long", 100+i, 1, takes(2*time.Hour)))
	}

	then := make([]packing.Request, len(w.Requests)) // as the placer asks after 5 minutes
	for i, r := range w.Requests {
		then[i] = r.Request
		if then[i].Asked += 5 * time.Minute; r.SweepID != "alone" {
			then[i].Waited += 5 * time.Minute
		}
	}

	for _, d := range packing.Decide([]berth.Host{host("a", 4)}, map[string]packing.SweepLimit{"alone": {MaxParallel: 1}}, then) {
		require.Equal(t, d.AttemptID != "alone-001", d.Placed, d.AttemptID)
	}

	starts := forecast.Starts(w)
	require.Equal(t, 5*time.Minute, starts["long-100"].Max)
	require.Greater(t, starts["alone-001"].Max, time.Hour)
}

func TestStarts_UnknownOfItsOwnReason(t *testing.T) {
	t.Parallel()

	w := forecast.World{
		Hosts: []berth.Host{host("a", 2), host("b", 8)}, Requests: []forecast.Request{request("s", 1, 2, takes(time.Minute))},
		Sweeps: map[string]packing.SweepLimit{"s": {MaxParallel: 1, Away: 1}},
	}
	hold(&w, 1, "new", 1, berth.RunTime{}) // of another sweep, never measured
	require.Equal(t, berth.StartHostAway, forecast.Starts(w)["s-001"].Unknown, "its only place is for a lost host's")
}
