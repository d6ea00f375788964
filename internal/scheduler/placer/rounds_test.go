package placer

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Health reports a failing round, and its recovery.
func TestRun_NotesHowRoundsEnd(t *testing.T) {
	t.Parallel()

	p, f := setup(t)

	for _, err := range []error{errors.New("no queue"), nil} {
		f.noted, f.rounds, f.errs["queue"] = nil, 1, err
		require.NoError(t, p.Run(t.Context()))
		require.Len(t, f.noted, 1)
		require.ErrorIs(t, f.noted[0], err)
	}
}
