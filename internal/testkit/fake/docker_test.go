package fake_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// busy imitates internal/testkit/runtimetest/busy, as far as a fake can.
func busy(p *fake.Process) int {
	args := slices.Concat(p.Launch.Command, []string{"", ""})
	number, _ := strconv.Atoi(args[2])

	switch args[1] {
	case "exit":
		return number
	case "sleep":
		p.Print(berth.Stdout, "ready\n")
		p.Sleep(time.Hour)

		return 143
	case "ignore":
		p.Print(berth.Stdout, "ready\n")
		<-p.Killed()
	case "spam":
		for n := range number {
			p.Print([]string{berth.Stdout, berth.Stderr}[n%2], "line "+strconv.Itoa(n)+"\n")
		}
	case "long":
		const piece = 16 << 10
		for n := 0; n*piece < number; n++ {
			p.Print(berth.Stdout, strings.Repeat(string(rune('a'+n%26)), min(piece, number-n*piece)))
			p.Sleep(time.Millisecond)
			p.Print(berth.Stderr, "after piece "+strconv.Itoa(n)+"\n")
		}

		p.Print(berth.Stdout, "\nend\n")
	case "binary":
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}

		p.Print(berth.Stdout, string(all))
	default:
		return 127
	}

	return 0
}

func open(t *testing.T) *fake.Docker {
	t.Helper()

	d := fake.NewDocker("boot-1", runtimetest.Image, busy, nil)
	t.Cleanup(d.Close)

	return d
}

func TestDocker_Conformance(t *testing.T) {
	t.Parallel()
	runtimetest.Run(t, func(t *testing.T) runtimetest.Runtime {
		t.Helper()

		return open(t)
	})
}

func TestDocker_RebootEndsWhatRuns(t *testing.T) {
	t.Parallel()

	d := open(t)
	l := runtimetest.Launch("ignore")
	before, err := d.Ensure(t.Context(), l)
	require.NoError(t, err)
	require.Len(t, d.Live(), 1)

	d.Reboot("boot-2")
	require.Empty(t, d.Live())

	ended, err := d.Ensure(t.Context(), l)
	require.NoError(t, err)
	require.Equal(t, before.ID, ended.ID, "what is there is collected, not run again")
	require.Equal(t, berth.ContainerExited, ended.State)
	require.Equal(t, "boot-1", ended.BootID)

	after, err := d.Ensure(t.Context(), runtimetest.Launch("exit", "0"))
	require.NoError(t, err)
	require.Equal(t, "boot-2", after.BootID)
}
