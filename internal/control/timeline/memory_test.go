package timeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/control/timeline"
)

func TestMemoryInterval(t *testing.T) {
	t.Parallel()

	for second, want := range map[int]int{0: 1, 499: 1, 500: 2, 999: 2, 1000: 4, 7 * 24 * 3600: 2048} {
		require.Equal(t, want, timeline.MemoryInterval(second), second)
	}
}

func TestThinMemory_KeepsPeaks(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		figure := rapid.Ptr(rapid.Int64Range(0, 1<<40), true)
		points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) berth.MemoryPoint {
			return berth.MemoryPoint{
				Second:    rapid.IntRange(0, 1_000_000).Draw(t, "second"),
				HostBytes: figure.Draw(t, "host"), DeviceBytes: figure.Draw(t, "device"), SMMilli: figure.Draw(t, "sm"),
			}
		}), 1, 1500).Draw(t, "points")

		last := 0
		for _, p := range points {
			last = max(last, p.Second)
		}

		every := timeline.MemoryInterval(last)
		thin := timeline.ThinMemory(points, every)

		require.LessOrEqual(t, len(thin), berth.MaxMemoryPoints)

		largest := make(map[int]berth.MemoryPoint, len(thin))

		for i, p := range thin {
			require.Zero(t, p.Second%every)
			require.True(t, i == 0 || p.Second > thin[i-1].Second, "ascending")

			largest[p.Second] = p
		}

		reached := make(map[[2]int]bool) // by interval and figure

		for _, p := range points {
			kept := largest[p.Second-p.Second%every]

			for i, pair := range [][2]*int64{{p.HostBytes, kept.HostBytes}, {p.DeviceBytes, kept.DeviceBytes}, {p.SMMilli, kept.SMMilli}} {
				if pair[0] == nil {
					continue
				}

				require.NotNil(t, pair[1])
				require.LessOrEqual(t, *pair[0], *pair[1], "no peak is lost")

				reached[[2]int{kept.Second, i}] = reached[[2]int{kept.Second, i}] || *pair[0] == *pair[1]
			}
		}

		for _, p := range thin {
			for i, figure := range []*int64{p.HostBytes, p.DeviceBytes, p.SMMilli} {
				require.Equal(t, figure != nil, reached[[2]int{p.Second, i}], "nothing was made up")
			}
		}

		require.Equal(t, thin, timeline.ThinMemory(thin, every))
	})
}
