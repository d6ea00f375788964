package berth_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berthml/berth"
	_ "github.com/berthml/berth/internal/testkit/testseed" // so that rapid draws the same each time
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// A reader that breaks off anywhere and goes on from its position gets every
// chunk once, for any jumps of Docker's stamps and any order of the streams.
func TestLogPosition_EveryChunkOnce(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(rt *rapid.T) {
		log, clock := drawLog(rt)

		var (
			position berth.LogPosition
			got      []berth.LogChunk
		)

		for {
			since := position.Since(slices.MinFunc(clock[len(got):], time.Time.Compare)) // it jumps once between two reads
			again := berth.LogResume{From: position}
			left := rapid.IntRange(1, len(log)).Draw(rt, "chunks before it breaks")

			for _, c := range log {
				if c.At.Before(since) || left == 0 || again.Read(c) {
					continue
				}

				left--

				position.Pass(c)
				got = append(got, c)
			}

			require.False(rt, again.Lost)

			if left > 0 || len(got) == len(log) {
				break
			}
		}

		require.Equal(rt, log, got)
	})
}

// drawLog is a log of two streams. Its clock is set forward and back; the pieces
// of a line share a stamp, up to a nanosecond each, also late pieces. The other
// result is the clock at the write of each chunk.
func drawLog(rt *rapid.T) (log []berth.LogChunk, clocks []time.Time) {
	clock := noon
	open := map[string]time.Time{}

	for i := range rapid.IntRange(1, 20).Draw(rt, "chunks") {
		jump := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour, -time.Hour}).Draw(rt, "time")
		clock = clock.Add(jump + time.Duration(i)*time.Microsecond) // no stamp comes twice

		c := berth.LogChunk{Stream: rapid.SampledFrom([]string{berth.Stdout, berth.Stderr}).Draw(rt, "stream"), At: clock, Data: []byte("x")}
		if at, ok := open[c.Stream]; ok {
			c.At = at.Add(1)
		}

		open[c.Stream] = c.At

		if rapid.Bool().Draw(rt, "ends its line") {
			c.Data = []byte("x\n")

			delete(open, c.Stream)
		}

		log, clocks = append(log, c), append(clocks, clock)
	}

	return log, clocks
}

// A stream silent for hours does not make the other one be read again from its
// start.
func TestLogPosition_ASilentStreamCostsNothing(t *testing.T) {
	t.Parallel()

	var p berth.LogPosition

	require.Zero(t, p.Since(noon), "nothing was read")

	last := noon.Add(8 * time.Hour)
	p.Pass(berth.LogChunk{Stream: berth.Stderr, At: noon, Data: []byte("a warning\n")})
	p.Pass(berth.LogChunk{Stream: berth.Stdout, At: last, Data: []byte("acc=1\n")})
	require.WithinDuration(t, last, p.Since(last.Add(time.Hour)), time.Minute)

	p.Pass(berth.LogChunk{Stream: berth.Stderr, At: noon.Add(time.Second), Data: []byte("10%\r")})
	p.Pass(berth.LogChunk{Stream: berth.Stdout, At: last.Add(1), Data: []byte("acc=1\n")})
	require.WithinDuration(t, noon, p.Since(last.Add(time.Hour)), time.Minute, "a line that has not ended keeps its stamp")
}

func TestLogResume_SaysThatAPartIsMissing(t *testing.T) {
	t.Parallel()

	var p berth.LogPosition

	p.Pass(berth.LogChunk{Stream: berth.Stdout, At: noon})

	again := berth.LogResume{From: p}
	require.False(t, again.Read(berth.LogChunk{Stream: berth.Stdout, At: noon.Add(1)}))
	require.True(t, again.Lost)

	first := berth.LogResume{}
	require.False(t, first.Read(berth.LogChunk{Stream: berth.Stdout, At: noon}))
	require.False(t, first.Lost)
}
