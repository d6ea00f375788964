package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/testkit/pgtest"
)

// hangVariable makes this test binary a process that does not end when asked to.
const hangVariable = "BERTH_TEST_HANG"

func TestMain(m *testing.M) {
	if os.Getenv(hangVariable) != "" {
		hang()
	}

	pgtest.Main(m)
}

func hang() {
	ctx, stop := interruptible(context.Background(), io.Discard)
	defer stop()

	fmt.Println("up") //nolint:forbidigo // the parent reads it
	<-ctx.Done()
	fmt.Println("stopping") //nolint:forbidigo // the same
	select {}
}

// Who presses Ctrl-C twice means it.
func TestInterruptible_TheSecondSignalEndsTheProcess(t *testing.T) {
	t.Parallel()

	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			continue // these tests run under nohup
		}

		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), hangVariable+"=1")
		output, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())

		lines := bufio.NewScanner(output)
		require.True(t, lines.Scan())
		require.Equal(t, "up", lines.Text())
		require.NoError(t, child.Process.Signal(sig))
		require.True(t, lines.Scan())
		require.Equal(t, "stopping", lines.Text())

		ended := make(chan error, 1)
		go func() { ended <- child.Wait() }()

		var exit *exec.ExitError

		require.Eventually(t, func() bool {
			_ = child.Process.Signal(sig) // it may have ended

			select {
			case err := <-ended:
				return errors.As(err, &exit)
			default:
				return false
			}
		}, 10*time.Second, 20*time.Millisecond)
		require.Equal(t, sig, exit.Sys().(syscall.WaitStatus).Signal()) //nolint:forcetypeassert // on Unix
	}
}
