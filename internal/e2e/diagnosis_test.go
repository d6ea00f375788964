//go:build integration

package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/berthml/berth/internal/testkit/pgtest"
)

const (
	diagnosisTimeout = 20 * time.Second
	lastEvents       = 12 // of each open workflow
)

// diagnose logs the pending work of a failed test's Berth: the open rows of the
// ledger, its containers, and the open workflows with their last events.
func (s *stack) diagnose(postgresURL, temporalAddress string) {
	ctx, cancel := context.WithTimeout(context.Background(), diagnosisTimeout)
	defer cancel()

	var text strings.Builder

	for _, one := range s.containers() {
		fmt.Fprintf(&text, "container %s %s %s\n", one.id[:12], one.name, one.state)
	}

	if err := describeLedger(ctx, &text, postgresURL); err != nil {
		fmt.Fprintf(&text, "ledger: %v\n", err)
	}

	if err := describeWorkflows(ctx, &text, temporalAddress); err != nil {
		fmt.Fprintf(&text, "workflows: %v\n", err)
	}

	s.t.Logf("still open at %s:\n%s", time.Now().UTC().Format(time.RFC3339Nano), text.String())
}

// describeLedger writes the invariants that are broken although everything has
// ended.
func describeLedger(ctx context.Context, text *strings.Builder, url string) error {
	inspector, err := pgtest.Inspect(ctx, url)
	if err != nil {
		return err
	}
	defer inspector.Close(ctx)

	open, err := inspector.Broken(ctx, true)
	for _, one := range open {
		fmt.Fprintf(text, "ledger: %s\n", one)
	}

	return err
}

// dialTemporal connects to Temporal and logs nothing.
func dialTemporal(ctx context.Context, address string) (temporal.Client, error) {
	return temporal.DialContext(ctx, temporal.Options{
		HostPort: address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
}

func describeWorkflows(ctx context.Context, text *strings.Builder, address string) error {
	connected, err := dialTemporal(ctx, address)
	if err != nil {
		return err
	}
	defer connected.Close()

	open, err := connected.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: "ExecutionStatus = 'Running'"})
	if err != nil {
		return err
	}

	for _, info := range open.GetExecutions() {
		at := info.GetExecution()

		described, err := connected.DescribeWorkflowExecution(ctx, at.GetWorkflowId(), at.GetRunId())
		if err != nil {
			return err
		}

		fmt.Fprintf(text, "workflow %s (%s)\n", at.GetWorkflowId(), info.GetType().GetName())

		for _, activity := range described.GetPendingActivities() {
			fmt.Fprintf(text, "  pending activity %s: %s, attempt %d, last failure %s\n", activity.GetActivityType().GetName(),
				activity.GetState(), activity.GetAttempt(), activity.GetLastFailure().GetMessage())
		}

		var events []string

		for history := connected.GetWorkflowHistory(ctx, at.GetWorkflowId(), at.GetRunId(), false, 0); history.HasNext(); {
			event, err := history.Next()
			if err != nil {
				return err
			}

			events = append(events, fmt.Sprintf("  %d %s %s", event.GetEventId(),
				event.GetEventTime().AsTime().Format(time.TimeOnly+".000"), event.GetEventType()))
		}

		text.WriteString(strings.Join(events[max(0, len(events)-lastEvents):], "\n") + "\n")
	}

	return nil
}

// backends are the addresses that `berth dev` wrote for a worker: of
// PostgreSQL and of Temporal.
func (s *stack) backends() (postgresURL, temporalAddress string) {
	fields := strings.Fields(readFile(s.t, filepath.Join(s.dir, "backends")))

	return fields[0], fields[1]
}
