package fake_test

import (
	"context"
	"errors"
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

func TestDocker_StartsWhatWasOnlyCreated(t *testing.T) {
	t.Parallel()

	d := open(t)
	l := runtimetest.Launch("exit", "4")
	require.NoError(t, d.Create(t.Context(), l))
	require.Empty(t, d.Live())

	c, err := d.Ensure(t.Context(), l)
	require.NoError(t, err)
	require.True(t, c.Adopted)

	ended, err := d.Wait(t.Context(), c.ID)
	require.NoError(t, err)
	require.Equal(t, 4, ended.ExitCode)
}

func TestDocker_HookLosesTheAnswer(t *testing.T) {
	t.Parallel()

	d := open(t)
	lost := berth.Errorf(berth.KindUnavailable, "the answer is lost")
	l := runtimetest.Launch("ignore")

	d.Hook(func(h *fake.DockerHooks) {
		h.Ensure = func(ctx context.Context, _ berth.Launch, call func(context.Context) (berth.Container, error)) (berth.Container, error) {
			_, err := call(ctx)

			return berth.Container{}, errors.Join(lost, err)
		}
		h.Remove = func(context.Context, string, func(context.Context) error) error { return lost }
	})

	_, err := d.Ensure(t.Context(), l)
	require.ErrorIs(t, err, lost)
	require.Len(t, d.Live(), 1, "it runs though nobody heard so")
	require.ErrorIs(t, d.Remove(t.Context(), d.Live()[0].ID), lost)

	d.Hook(func(h *fake.DockerHooks) { *h = fake.DockerHooks{} })

	c, err := d.Ensure(t.Context(), l)
	require.NoError(t, err)
	require.True(t, c.Adopted)
}

func TestDocker_TestPlaysTheProcess(t *testing.T) {
	t.Parallel()

	d := fake.NewDocker("boot-1", runtimetest.Image, fake.Idle, nil)
	t.Cleanup(d.Close)

	l := runtimetest.Launch("anything")
	require.Nil(t, d.Process(l.AttemptID))

	c, err := d.Ensure(t.Context(), l)
	require.NoError(t, err)

	p := d.Process(l.AttemptID)
	p.Print(berth.Stdout, "half a line")
	p.Exit(3)
	require.Equal(t, 3, p.Container().ExitCode)

	var text string

	require.NoError(t, d.Logs(t.Context(), c.ID, berth.LogPosition{}, true, func(chunk berth.LogChunk) error {
		text += string(chunk.Data)

		return nil
	}))
	require.Equal(t, "half a line", text)

	other := runtimetest.Launch("anything")
	running, err := d.Ensure(t.Context(), other)
	require.NoError(t, err)
	d.RemoveByForce(running.ID)

	_, err = d.Wait(t.Context(), running.ID)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
}
