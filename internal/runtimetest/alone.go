package runtimetest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Alone keeps a test apart from all others of this machine that change the same thing
// of it, in this process or another, until it ends.
func Alone(t testing.TB, what string) {
	t.Helper()

	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "berth-test-"+what+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lock.Close() })

	require.Eventually(t, func() bool { return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil },
		5*time.Minute, 100*time.Millisecond, "another test has %s", lock.Name())
}
