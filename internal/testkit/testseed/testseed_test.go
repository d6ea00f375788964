package testseed

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What rapid draws is the same each time, unless RAPID_SEED is 0.
func TestSeed(t *testing.T) {
	t.Parallel()

	draw := func() (drawn []int) {
		rapid.Check(t, func(r *rapid.T) { drawn = append(drawn, rapid.Int().Draw(r, "n")) })

		return drawn
	}

	fixed := flag.Lookup(seedFlag).Value.String() != "0"
	first, second, seed := draw(), draw(), Seed(t)

	if !fixed {
		require.NotEqual(t, first, second)
		require.NotEqual(t, seed, Seed(t))

		return
	}

	require.Equal(t, first, second)
	require.Equal(t, seed, Seed(t))
}
