package placer

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Health is told of a round that fails, and of one that does not.
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
