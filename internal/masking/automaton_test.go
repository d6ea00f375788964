package masking

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// However a text is cut, each pattern is found where it is, and the longest beginning at
// the end is known: compared with a search for each pattern by itself.
func TestAutomaton_FindsWhatASearchFinds(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 1, 6)
		patterns := rapid.SliceOfN(word, 1, 5).Draw(t, "patterns")
		text := rapid.SliceOfN(rapid.SampledFrom([]byte("abc")), 0, 30).Draw(t, "text")
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")

		a := newAutomaton(patterns)

		first, at := a.find(0, text[:cut])
		second, at := a.find(at, text[cut:])

		covered := make([]bool, len(text))

		for i, part := range [][]span{first, second} {
			for _, s := range part {
				for at := s.from + i*cut; at < s.to+i*cut; at++ {
					covered[at] = true
				}
			}
		}

		want, begun := make([]bool, len(text)), 0

		for _, pattern := range patterns {
			for i := range text {
				for at := i; bytes.HasPrefix(text[i:], pattern) && at < i+len(pattern); at++ {
					want[at] = true
				}
			}

			for n := range pattern { // not in whole
				if bytes.HasSuffix(text, pattern[:n]) {
					begun = max(begun, n)
				}
			}
		}

		require.Equal(t, want, covered)
		require.Equal(t, begun, a.begun(at))
	})
}

func TestStarSpans(t *testing.T) {
	t.Parallel()

	text := []byte("0123456789")
	starSpans(text, []span{{-3, 1}, {2, 4}, {3, 5}, {2, 6}, {8, 9}})
	require.Equal(t, "*1****67*9", string(text))
}
