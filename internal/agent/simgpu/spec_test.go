package simgpu

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func TestParse(t *testing.T) {
	t.Parallel()

	const gib = int64(1) << 30

	for text, want := range map[string][]int64{
		"24GiB":            {24 * gib},
		"2x24GiB,1x80GiB":  {24 * gib, 24 * gib, 80 * gib},
		"1X80gb , 2 x 24g": {80 * gib, 24 * gib, 24 * gib},
		"1x2560MiB":        {2560 << 20},
		"64x2GiB":          slices.Repeat([]int64{2 * gib}, 64),
		"63x2GiB,1024GiB":  append(slices.Repeat([]int64{2 * gib}, 63), 1024*gib),
		"1x3000000000":     {2861 << 20},
	} {
		got, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}

	for text, want := range map[string]string{
		"":                "no size of memory",
		"2x":              `"2x" has no size of memory`,
		"x24GiB":          "no number of cards",
		"0x24GiB":         "no number of cards",
		"-1x24GiB":        "no number of cards",
		"2x24GiB,":        "no size of memory",
		"2*24GiB":         "no size of memory",
		"1x1GiB":          "from 2 GiB to 1024 GiB",
		"1x2TiB":          "from 2 GiB to 1024 GiB",
		"65x24GiB":        "more than 64 cards",
		"64x24GiB,1x2GiB": "more than 64 cards",
		"9223372036854775807x2GiB,9223372036854775807x2GiB": "more than 64 cards",
	} {
		_, err := Parse(text)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err), text)
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "such as 2x24GiB,1x80GiB", text)
	}
}

func TestUUID(t *testing.T) {
	t.Parallel()

	require.Equal(t, "GPU-51500000-af63-dc4c-8601-000000000003", UUID("a", 3), "the same each time")
	require.NotEqual(t, UUID("a", 3), UUID("a", 4))
	require.NotEqual(t, UUID("a", 3), UUID("b", 3))
	require.Regexp(t, `^GPU-51500000-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-000000000063$`, UUID("a", 63))
}
