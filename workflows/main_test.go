package workflows_test

import (
	"log/slog"
	"testing"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// environment runs a workflow on a simulated clock. The SDK's log of every step
// would bury a test's output.
func environment() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite

	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))

	return suite.NewTestWorkflowEnvironment()
}
