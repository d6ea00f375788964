package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/simulate"
)

// The reconciler asks a simulated machine's attempts, too: after its grace of half a minute a
// worker without any would end.
func TestSimulated_HasAttempts(t *testing.T) {
	t.Parallel()

	attempts := simulated(simulate.New(nil, 0), berth.Host{}).attempts
	require.NotNil(t, attempts)
	require.False(t, attempts.Busy("a"))
}
