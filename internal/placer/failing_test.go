package placer

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Health is told of rounds that fail after three in a row, and of the first that does not.
func TestRun_NotesRoundsThatFail(t *testing.T) {
	t.Parallel()

	p, f := setup(t)
	ctx := t.Context()

	for _, err := range []error{nil, errors.New("one"), errors.New("two"), nil, errors.New("a"), errors.New("b"), errors.New("c"), errors.New("d"), nil, nil} {
		p.noteRound(ctx, err)
	}

	require.Len(t, f.noted, 4)
	require.Empty(t, f.noted[0], "of an earlier leader")
	require.Regexp(t, `^since .* UTC: c$`, f.noted[1])
	require.Regexp(t, `^since .* UTC: d$`, f.noted[2])
	require.Empty(t, f.noted[3])
}
