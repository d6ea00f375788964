package berth_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func TestBytesText(t *testing.T) {
	t.Parallel()

	for n, want := range map[int64]string{
		0: "0 bytes", 1023: "1023 bytes", 1024: "1 KiB", 128 << 10: "128 KiB", 1 << 20: "1 MiB", 1310 << 20: "1,310 MiB",
		21485026713: "20,490 MiB", 307200 << 20: "307,200 MiB", 1 << 50: "1,073,741,824 MiB", -64 << 20: "-64 MiB",
		math.MaxInt64 - 1<<20: "8,796,093,022,207 MiB",
	} {
		require.Equal(t, want, berth.BytesText(n))
	}
}
