package devstack

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// shell starts a child that is a script.
func shell(t *testing.T, script string) (*process, string) {
	t.Helper()

	log := filepath.Join(t.TempDir(), "log")
	p, err := start("the script", exec.CommandContext(t.Context(), "sh", "-c", script), log, syscall.SIGKILL)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
	})

	return p, log
}

// says waits until a child's output is this.
func says(t *testing.T, log, want string) {
	t.Helper()

	require.Eventually(t, func() bool {
		data, err := os.ReadFile(log)

		return err == nil && string(data) == want
	}, 10*time.Second, 5*time.Millisecond)
}

func TestProcess_Stop(t *testing.T) {
	t.Parallel()

	p, log := shell(t, `trap 'echo bye; exit' TERM; echo up; while :; do sleep 0.01; done`)
	says(t, log, "up\n")
	require.NoError(t, p.stop(syscall.SIGTERM, 10*time.Second))
	says(t, log, "up\nbye\n")
	require.NoError(t, p.stop(syscall.SIGTERM, 10*time.Second), "once more is fine")

	p, log = shell(t, `trap '' TERM; echo up; while :; do sleep 0.01; done`)
	says(t, log, "up\n")
	require.ErrorContains(t, p.stop(syscall.SIGTERM, 50*time.Millisecond), "the script did not stop within 50ms and was killed")
}

func TestProcess_Await(t *testing.T) {
	t.Parallel()

	p, log := shell(t, `sleep 60`)
	tries := 0
	ready := func() error {
		if tries++; tries < 3 {
			return berth.Errorf(berth.KindUnavailable, "not yet")
		}

		return nil
	}
	require.NoError(t, p.await(10*time.Second, ready))
	require.Equal(t, 3, tries)

	never := func() error { return berth.Errorf(berth.KindUnavailable, "never") }
	err := p.await(10*time.Millisecond, never)
	require.ErrorContains(t, err, "the script was not ready after 10ms: never; its output is in "+log)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))

	broken, log := shell(t, `echo no such option >&2; exit 3`)
	require.ErrorContains(t, broken.await(10*time.Second, never), "the script ended at once")
	says(t, log, "no such option\n")

	_, err = start("nothing", exec.CommandContext(t.Context(), log+"/nothing"), log, syscall.SIGKILL)
	require.ErrorContains(t, err, "starting nothing")
}

func TestEndLeftover(t *testing.T) {
	t.Parallel()

	marker := "marker-" + strconv.Itoa(os.Getpid()) + "-leftover"
	ours, log := shell(t, `echo up; while :; do sleep 0.01; done # `+marker)
	other, otherLog := shell(t, `echo up; while :; do sleep 0.01; done`)
	says(t, log, "up\n")
	says(t, otherLog, "up\n")

	file := filepath.Join(t.TempDir(), "pid")
	end := func(content string) error {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))

		return endLeftover("the script", file, marker, syscall.SIGTERM)
	}

	require.NoError(t, endLeftover("the script", file, marker, syscall.SIGTERM), "no file, no leftover")
	require.NoError(t, end("garbage\n"))
	require.NoError(t, end("1\n"), "not ours")
	require.NoError(t, end(strconv.Itoa(other.cmd.Process.Pid)+"\n"), "its number was taken by another program")

	select {
	case <-other.done:
		require.Fail(t, "another program was ended")
	default:
	}

	require.NoError(t, end(strconv.Itoa(ours.cmd.Process.Pid)+"\nmore lines\n"))
	<-ours.done
}

func TestFreePort(t *testing.T) {
	t.Parallel()

	taken, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	require.NoError(t, err)

	defer taken.Close() //nolint:errcheck // of no further use

	wanted := taken.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is a TCP listener
	require.NoError(t, dialable(wanted))

	for _, want := range []int{0, wanted} {
		got, err := FreePort(want)
		require.NoError(t, err)
		require.NotEqual(t, wanted, got)
		require.Error(t, dialable(got))
		require.GreaterOrEqual(t, got, firstPort)
		require.LessOrEqual(t, got, lastPort)

		again, err := FreePort(got)
		require.NoError(t, err)
		require.Equal(t, got, again, "a wanted port that is free")

		other, err := FreePort(got, got)
		require.NoError(t, err)
		require.NotEqual(t, got, other, "it is promised to somebody")
	}
}
