//go:build cgo && linux

package nvml

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/gpu"
)

// view is all that can be read of a machine: each value, or the reason for its
// absence.
type view struct {
	Open, Inventory, Read, Activity, Events string // errors by their kind; empty = none

	Machine    gpu.Inventory // without warnings and the texts of problems
	Warnings   int
	Problems   []string // UUIDs of cards with a problem
	H200       gpu.Reading
	Busy       gpu.Activity
	Whole, Old gpu.Event // of the H200, of the T4
}

// complete is the view of a library that lacks nothing.
func complete() view {
	return view{
		Machine: healthy(), H200: healthyReading(), Busy: healthyActivity(2),
		Whole: gpu.Event{UUID: h200, XID: 79}, Old: gpu.Event{UUID: t4, XID: 31},
	}
}

// short is an error as a view has it. A function that lacks is named.
func short(t *testing.T, err error, lacking []string) string {
	t.Helper()

	if err == nil {
		return ""
	}

	if !errors.Is(err, gpu.ErrUnsupported) {
		return fmt.Sprint(berth.KindOf(err))
	}

	require.ErrorContains(t, err, "install a newer NVIDIA driver")
	require.True(t, strings.Contains(err.Error(), "cannot wait for events") ||
		slices.ContainsFunc(lacking, func(name string) bool { return strings.Contains(err.Error(), name) }), "%v names none of %v", err, lacking)

	return "unsupported"
}

// look looks at everything.
func look(t *testing.T, f fake, lacking []string) view {
	t.Helper()

	var v view

	d, err := Open(t.Context(), Config{LibraryPath: os.Getenv(libraryEnv)})
	if v.Open = short(t, err, lacking); err != nil {
		return v
	}

	defer func() { require.NoError(t, d.Close()) }()

	v.Machine, err = d.Inventory(t.Context())
	v.Inventory = short(t, err, lacking)
	v.Warnings = len(v.Machine.Warnings)

	for _, warning := range v.Machine.Warnings {
		require.True(t, slices.ContainsFunc(lacking, func(name string) bool { return strings.Contains(warning, name) }), "%s names none of %v", warning, lacking)
	}

	v.Machine.Warnings = nil

	for i, card := range v.Machine.Cards {
		if card.Problem != "" {
			require.True(t, slices.ContainsFunc(lacking, func(name string) bool { return strings.Contains(card.Problem, name) }), card.Problem)

			v.Problems, v.Machine.Cards[i].Problem = append(v.Problems, card.UUID), ""
		}
	}

	var reading gpu.Reading
	reading, err = d.Read(t.Context(), h200)
	v.Read = short(t, err, lacking)
	reading.At = v.H200.At
	v.H200 = reading

	activity, err := d.Activity(t.Context(), h200)
	v.Activity = short(t, err, lacking)
	v.Busy = timeless(activity)

	f.send(t, 0, xid, 79)

	if v.Whole, err = d.WaitEvent(t.Context()); err != nil {
		v.Events = short(t, err, lacking)
		f.clear(t, "event")

		return v
	}

	v.Whole = gpu.Event{UUID: v.Whole.UUID, XID: v.Whole.XID}

	f.send(t, 1, xid, 31)
	v.Old = wait(t, d)

	return v
}

// effects are the values lost with functions. Functions not in this table have
// no effect, since another version of them exists, or since their loss is
// silent.
var effects = map[string]func(*view){
	"nvmlInit_v2 nvmlInit": func(v *view) { *v = view{Open: "unsupported"} },
	"nvmlSystemGetDriverVersion": func(v *view) {
		v.Machine.DriverVersion, v.Warnings = "", 1
	},
	"nvmlSystemGetCudaDriverVersion_v2": func(v *view) {
		v.Machine.CUDAVersion, v.Warnings = "", 1
	},
	"nvmlDeviceGetCount_v2 nvmlDeviceGetCount":                 noIndex,
	"nvmlDeviceGetHandleByIndex_v2 nvmlDeviceGetHandleByIndex": noIndex,
	"nvmlDeviceGetHandleByUUID": func(v *view) {
		v.Read, v.H200 = "unsupported", gpu.Reading{}
		v.Activity, v.Busy = "unsupported", gpu.Activity{}
	},
	"nvmlDeviceGetUUID": func(v *view) {
		v.Inventory, v.Machine = "unsupported", gpu.Inventory{}
		v.Whole.UUID, v.Old.UUID = "", ""
	},
	"nvmlDeviceGetName": func(v *view) {
		allHaveProblems(v)
		v.Machine.Cards, v.Problems = []gpu.Card{{UUID: h200, Index: "0"}, {UUID: t4, Index: "1"}, {UUID: h100, Index: "2"}}, v.Problems[:3]
	},
	"nvmlDeviceGetCudaComputeCapability": func(v *view) {
		for i := range v.Machine.Cards {
			v.Machine.Cards[i].Major = 0
		}
	},
	"nvmlDeviceGetMemoryInfo_v2": func(v *view) {
		v.H200.ReservedBytes, v.H200.UsedBytes = 0, 4600*mib
	},
	"nvmlDeviceGetMemoryInfo_v2 nvmlDeviceGetMemoryInfo": func(v *view) {
		allHaveProblems(v)
		v.Machine.Cards = []gpu.Card{
			{UUID: h200, Index: "0", Model: "NVIDIA H200"}, {UUID: t4, Index: "1", Model: "Tesla T4"}, {UUID: h100, Index: "2", Model: "NVIDIA H100 80GB HBM3"},
		}
		v.Problems = v.Problems[:3]
		v.Read, v.H200 = "unsupported", gpu.Reading{}
	},
	"nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetComputeRunningProcesses_v2 nvmlDeviceGetComputeRunningProcesses": func(v *view) {
		p := v.H200.Processes
		v.H200.Processes, v.H200.ProcessesKnown = []gpu.Process{p[1], {PID: 4003, MPS: true}, p[5], p[6]}, false
	},
	"nvmlDeviceGetMPSComputeRunningProcesses_v3 nvmlDeviceGetMPSComputeRunningProcesses_v2 nvmlDeviceGetMPSComputeRunningProcesses": func(v *view) {
		v.H200.Processes = v.H200.Processes[:6]
		v.H200.Processes[1], v.H200.Processes[2].MPS, v.H200.Processes[5].MPS = gpu.Process{PID: 4002}, false, false
	},
	"nvmlDeviceGetMigMode": func(v *view) {
		v.Machine.Cards[2].MIG = false
		v.Machine.Cards = v.Machine.Cards[:3]
	},
	"nvmlDeviceGetMaxMigDeviceCount":       noParts,
	"nvmlDeviceGetMigDeviceHandleByIndex":  noParts,
	"nvmlGpmSampleAlloc":                   noGPM,
	"nvmlGpmSampleGet":                     noGPM,
	"nvmlGpmMetricsGet":                    noGPM,
	"nvmlGpmSampleFree":                    noGPM,
	"nvmlEventSetCreate":                   noEvents,
	"nvmlDeviceGetSupportedEventTypes":     noEvents,
	"nvmlDeviceRegisterEvents":             noEvents,
	"nvmlEventSetFree":                     noEvents,
	"nvmlEventSetWait_v2 nvmlEventSetWait": noEvents,
}

func noIndex(v *view) {
	v.Inventory, v.Machine = "unsupported", gpu.Inventory{}
	v.Events, v.Whole, v.Old = "unsupported", gpu.Event{}, gpu.Event{}
}

func allHaveProblems(v *view) {
	for _, card := range v.Machine.Cards {
		v.Problems = append(v.Problems, card.UUID)
	}
}

func noParts(v *view) {
	v.Machine.Cards = v.Machine.Cards[:3]
	v.Problems = []string{h100}
}

func noGPM(v *view) { v.Busy = gpu.Activity{} }

func noEvents(v *view) {
	v.Events, v.Whole, v.Old = "unsupported", gpu.Event{}, gpu.Event{}
}

// If the library lacks any one function, the process lives, reports the loss and
// reads all the rest. Each is left out alone, and then all versions of one.
func TestLacks(t *testing.T) {
	t.Parallel()

	cases := slices.Clone(symbols)

	for names := range effects {
		if !slices.Contains(cases, names) {
			cases = append(cases, names)
		}
	}

	cases = append(cases, "", // nothing
		"nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetComputeRunningProcesses_v2",
		"nvmlDeviceGetMPSComputeRunningProcesses_v3 nvmlDeviceGetMPSComputeRunningProcesses_v2")

	for _, names := range cases {
		t.Run(names, func(t *testing.T) {
			t.Parallel()

			lacking := strings.Fields(names)
			inChild(t, lacking, nil, func(t *testing.T, f fake) {
				want := complete()
				if effect := effects[names]; effect != nil {
					effect(&want)
				}

				require.Equal(t, want, look(t, f, lacking))

				for _, call := range f.calls(t) {
					require.True(t, strings.HasPrefix(call, "left ") || slices.Contains(symbols, call), "%s is not among the symbols", call)
				}
			})
		})
	}
}
