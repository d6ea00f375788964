package temporal_test

import (
	"testing"

	"go.uber.org/goleak"
)

const sweepID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
