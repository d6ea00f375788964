package runtimetest

import (
	"fmt"
	"os"
	"testing"
)

// noSkip is the environment variable that makes skipped tests fail: `make test`
// sets it, so that a missing tool is not overlooked.
const noSkip = "BERTH_TEST_NO_SKIP"

// Skip skips a test that this machine cannot run, or fails it where every test
// must run.
func Skip(t testing.TB, format string, args ...any) {
	t.Helper()

	if os.Getenv(noSkip) != "" {
		t.Fatalf("would be skipped, and %s is set: %s", noSkip, fmt.Sprintf(format, args...))
	}

	t.Skipf(format, args...)
}
