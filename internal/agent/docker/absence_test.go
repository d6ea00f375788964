package docker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAbsence(t *testing.T) {
	t.Parallel()

	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

	var a absence

	require.False(t, a.covers(noon), "it was never away")

	for _, second := range []int{0, 15, 60, 110} { // away for two minutes, with some calls in it
		a.noteAbsent(at(second))
	}

	for second, covered := range map[int]bool{
		-31: false, -29: true, 55: true, 139: true, // 55 s is far from the last failure, and in the middle of the absence
		141: false,
	} {
		require.Equal(t, covered, a.covers(at(second)), "after %d s", second)
	}

	require.True(t, a.mayHaveKilled(at(-5), at(125)), "it ran when the daemon went away")
	require.True(t, a.mayHaveKilled(time.Time{}, at(125)), "when it began is not known")
	require.False(t, a.mayHaveKilled(at(112), at(125)), "it began when the daemon was back")

	a.noteAbsent(at(1000)) // another absence
	require.False(t, a.covers(at(60)))
	require.True(t, a.covers(at(990)))
}
