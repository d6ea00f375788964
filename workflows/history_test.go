package workflows_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/converter"

	"github.com/berthml/berth/workflows"
)

// readHistory reads a history of testdata.
func readHistory(t *testing.T, path string) *history.History {
	t.Helper()

	file, err := os.Open(path)
	require.NoError(t, err)

	defer file.Close() //nolint:errcheck // only read

	unzipped, err := gzip.NewReader(file)
	require.NoError(t, err)

	var data bytes.Buffer

	_, err = data.ReadFrom(unzipped)
	require.NoError(t, err)

	var h history.History
	require.NoError(t, temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}.Unmarshal(data.Bytes(), &h))

	return &h
}

// writeHistory writes one, as small as it gets.
func writeHistory(t *testing.T, path string, h *history.History) {
	t.Helper()

	data, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(h)
	require.NoError(t, err)

	var compact, zipped bytes.Buffer

	require.NoError(t, json.Compact(&compact, data))

	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	require.NoError(t, err)

	_, err = compact.WriteTo(w)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(filepath.Clean(path), zipped.Bytes(), 0o600))
}

// story tells a history in one line for each event that a workflow or the
// world caused. Workflow tasks and timers are left out.
func story(h *history.History) []string {
	var (
		lines []string
		names = make(map[int64]string) // of activities by the event that scheduled them
	)

	for _, e := range h.GetEvents() {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			names[e.GetEventId()] = a.GetActivityType().GetName()
		}

		for _, line := range []string{lifeOf(e), stepOf(e), activityOf(e, names), messageOf(e)} {
			if line != "" {
				lines = append(lines, line)
			}
		}
	}

	return lines
}

// lifeOf describes the workflow's own beginning and end, and its children's.
func lifeOf(e *history.HistoryEvent) string {
	switch {
	case e.GetWorkflowExecutionStartedEventAttributes() != nil:
		var in struct { // a SweepInput or a ProbeInput
			Carried *workflows.CarriedState `json:"carried"`
			Waiting []string                `json:"waiting"`
		}
		decode(e.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in)

		if in.Carried != nil || len(in.Waiting) > 0 {
			return "started with what an earlier run carried over"
		}

		return "started"
	case e.GetWorkflowExecutionCompletedEventAttributes() != nil:
		var result struct {
			State string `json:"state"`
			Known *bool  `json:"known"`
		}
		decode(e.GetWorkflowExecutionCompletedEventAttributes().GetResult(), &result)

		if result.Known != nil {
			return fmt.Sprintf("completed: known %t", *result.Known)
		}

		return "completed: " + result.State
	case e.GetWorkflowExecutionContinuedAsNewEventAttributes() != nil:
		return "continued as new"
	case e.GetStartChildWorkflowExecutionInitiatedEventAttributes() != nil:
		return "child initiated"
	case e.GetChildWorkflowExecutionCompletedEventAttributes() != nil:
		return "child completed"
	default:
		return ""
	}
}

// stepOf describes local activities.
func stepOf(e *history.HistoryEvent) string {
	m := e.GetMarkerRecordedEventAttributes()
	if m.GetMarkerName() != "LocalActivity" {
		return ""
	}

	var data struct{ ActivityType string }
	decode(m.GetDetails()["data"], &data)

	return "step " + data.ActivityType
}

// activityOf describes attempts on hosts.
func activityOf(e *history.HistoryEvent, names map[int64]string) string {
	switch {
	case e.GetActivityTaskScheduledEventAttributes() != nil:
		return names[e.GetEventId()] + " scheduled"
	case e.GetActivityTaskStartedEventAttributes() != nil:
		return names[e.GetActivityTaskStartedEventAttributes().GetScheduledEventId()] + " started"
	case e.GetActivityTaskCompletedEventAttributes() != nil:
		return names[e.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()] + " completed"
	case e.GetActivityTaskFailedEventAttributes() != nil:
		a := e.GetActivityTaskFailedEventAttributes()

		return fmt.Sprintf("%s failed: %s", names[a.GetScheduledEventId()], a.GetFailure().GetApplicationFailureInfo().GetType())
	case e.GetActivityTaskTimedOutEventAttributes() != nil:
		a := e.GetActivityTaskTimedOutEventAttributes()

		return fmt.Sprintf("%s timed out: %s", names[a.GetScheduledEventId()], a.GetFailure().GetTimeoutFailureInfo().GetTimeoutType())
	case e.GetActivityTaskCanceledEventAttributes() != nil:
		return names[e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId()] + " canceled"
	default:
		return ""
	}
}

// messageOf describes signals, updates and cancellations, received and sent.
func messageOf(e *history.HistoryEvent) string {
	switch {
	case e.GetWorkflowExecutionSignaledEventAttributes() != nil:
		a := e.GetWorkflowExecutionSignaledEventAttributes()

		return "hears " + a.GetSignalName() + roleOf(a.GetSignalName(), a.GetInput())
	case e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes() != nil:
		a := e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes()

		return "tells " + a.GetSignalName() + roleOf(a.GetSignalName(), a.GetInput())
	case e.GetWorkflowExecutionUpdateAcceptedEventAttributes() != nil:
		return "update " + e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetName()
	case e.GetWorkflowExecutionCancelRequestedEventAttributes() != nil:
		return "cancel requested"
	case e.GetRequestCancelExternalWorkflowExecutionInitiatedEventAttributes() != nil:
		return "cancels a trial"
	default:
		return ""
	}
}

// roleOf is the content of a probe's signals, with a colon before it.
func roleOf(signal string, in *common.Payloads) string {
	switch signal {
	case workflows.SignalProbe:
		var role workflows.ProbeRole
		decode(in, &role)

		switch {
		case role.Ready:
			return ": ready"
		case role.Beside:
			return ": beside"
		case role.Short:
			return ": carry, short"
		default:
			return ": carry"
		}
	case workflows.SignalMeasured:
		var measured workflows.ProbeMeasured
		decode(in, &measured)

		if measured.Capped {
			return ": capped"
		}

		return ""
	default:
		return ""
	}
}

// decode reads a payload that our own code wrote. An unreadable one stays zero,
// and its line matches no content.
func decode(in *common.Payloads, to any) {
	_ = converter.GetDefaultDataConverter().FromPayloads(in, to)
}

// content is the required content of a history.
type content struct {
	order  []string       // these lines, in this order; others may lie between
	never  []string       // none of these
	counts map[string]int // at least this many of these
	open   int            // at least this many children open at once
	last   string         // the last line; empty = any
}

// check fails a test whose history lacks the required content.
func (c content) check(t *testing.T, lines []string) {
	t.Helper()

	rest := lines
	for i, want := range c.order {
		at := slices.Index(rest, want)
		require.GreaterOrEqual(t, at, 0, "line %d (%q) does not follow the ones before it; the history is %q", i, want, lines)
		rest = rest[at+1:]
	}

	counts := make(map[string]int)
	open, most := 0, 0

	for _, line := range lines {
		counts[line]++

		switch line {
		case "child initiated":
			open++
		case "child completed":
			open--
		}

		most = max(most, open)
	}

	for _, line := range c.never {
		require.Zero(t, counts[line], "%q must not be in the history", line)
	}

	for line, least := range c.counts {
		require.GreaterOrEqual(t, counts[line], least, "%q", line)
	}

	require.GreaterOrEqual(t, most, c.open, "children open at once")

	if c.last != "" {
		require.Equal(t, c.last, lines[len(lines)-1])
	}
}
