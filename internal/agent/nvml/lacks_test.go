//go:build cgo && linux

package nvml

import (
	"errors"
	"fmt"
	"os"
	"reflect"
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

// losses are the fields of a view lost with functions. Functions that are not in this table lose
// nothing, since another version of them exists, or since their loss is silent.
var losses = map[string]string{
	"nvmlInit_v2 nvmlInit":                                     "Open Machine H200 Busy Whole Old",
	"nvmlSystemGetDriverVersion":                               "Machine Warnings",
	"nvmlSystemGetCudaDriverVersion_v2":                        "Machine Warnings",
	"nvmlDeviceGetCount_v2 nvmlDeviceGetCount":                 "Inventory Machine Events Whole Old",
	"nvmlDeviceGetHandleByIndex_v2 nvmlDeviceGetHandleByIndex": "Inventory Machine Events Whole Old",
	"nvmlDeviceGetHandleByUUID":                                "Read H200 Activity Busy",
	"nvmlDeviceGetUUID":                                        "Inventory Machine Whole Old",
	"nvmlDeviceGetName":                                        "Machine Problems",
	"nvmlDeviceGetCudaComputeCapability":                       "Machine",
	"nvmlDeviceGetMemoryInfo_v2":                               "H200",
	"nvmlDeviceGetMemoryInfo_v2 nvmlDeviceGetMemoryInfo":       "Machine Problems Read H200",

	"nvmlDeviceGetComputeRunningProcesses_v3 nvmlDeviceGetComputeRunningProcesses_v2 nvmlDeviceGetComputeRunningProcesses":          "H200",
	"nvmlDeviceGetMPSComputeRunningProcesses_v3 nvmlDeviceGetMPSComputeRunningProcesses_v2 nvmlDeviceGetMPSComputeRunningProcesses": "H200",

	"nvmlDeviceGetMigMode":                 "Machine",
	"nvmlDeviceGetMaxMigDeviceCount":       "Machine Problems",
	"nvmlDeviceGetMigDeviceHandleByIndex":  "Machine Problems",
	"nvmlGpmSampleAlloc":                   "Busy",
	"nvmlGpmSampleGet":                     "Busy",
	"nvmlGpmMetricsGet":                    "Busy",
	"nvmlGpmSampleFree":                    "Busy",
	"nvmlEventSetCreate":                   "Events Whole Old",
	"nvmlDeviceGetSupportedEventTypes":     "Events Whole Old",
	"nvmlDeviceRegisterEvents":             "Events Whole Old",
	"nvmlEventSetFree":                     "Events Whole Old",
	"nvmlEventSetWait_v2 nvmlEventSetWait": "Events Whole Old",
}

// If the library lacks any one function, the process lives, reports the loss and
// reads all the rest. Each is left out alone, and then all versions of one.
func TestLacks(t *testing.T) {
	t.Parallel()

	cases := slices.Clone(symbols)

	for names := range losses {
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
				want, got := complete(), look(t, f, lacking)

				for field := range strings.FieldsSeq(losses[names]) {
					lost := reflect.ValueOf(&got).Elem().FieldByName(field)
					had := reflect.ValueOf(want).FieldByName(field)
					require.NotEqual(t, had.Interface(), lost.Interface(), field)
					lost.Set(had)
				}

				require.Equal(t, want, got)

				for _, call := range f.calls(t) {
					require.True(t, strings.HasPrefix(call, "left ") || slices.Contains(symbols, call), "%s is not among the symbols", call)
				}
			})
		})
	}
}
