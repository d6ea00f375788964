package postgres_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/pgtest"
)

// ownServer is a PostgreSQL of a test's own, whose superuser is postgres and trusts everyone,
// with flags that the test chooses.
type ownServer struct {
	t               *testing.T
	dir, data, port string
	flags           []string
	cmd             *exec.Cmd
	as              *syscall.Credential
}

// newOwnServer makes its data; start and stop may follow each other.
func newOwnServer(t *testing.T, flags ...string) *ownServer {
	t.Helper()

	dir, err := os.MkdirTemp("", "berth-ownserver-") //nolint:usetesting // PostgreSQL must reach it as another user
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // G302: the same

	o := &ownServer{t: t, dir: dir, data: filepath.Join(dir, "data"), flags: flags, port: freePort(t)}

	if os.Geteuid() == 0 {
		text, err := exec.CommandContext(t.Context(), "id", "-u", "postgres").Output()
		require.NoError(t, err)

		id, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
		require.NoError(t, err)

		o.as = &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}
		require.NoError(t, os.Chown(dir, int(id), int(id)))
	}

	out, err := o.command("initdb", "-D", o.data, "-U", "postgres", "-A", "trust", "-N").CombinedOutput()
	require.NoError(t, err, "%s", out)

	return o
}

func freePort(t *testing.T) string {
	t.Helper()

	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // answers at once
	require.NoError(t, err)

	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, errors.Join(err, l.Close()))

	return port
}

func (o *ownServer) command(program string, args ...string) *exec.Cmd {
	initdb, err := exec.LookPath("initdb")
	require.NoError(o.t, err)
	initdb, err = filepath.EvalSymlinks(initdb)
	require.NoError(o.t, err)

	cmd := exec.Command(filepath.Join(filepath.Dir(initdb), program), args...) //nolint:noctx // stopped by stop
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: o.as}

	return cmd
}

func (o *ownServer) start() {
	o.t.Helper()

	o.cmd = o.command("postgres", append([]string{"-D", o.data, "-p", o.port, "-k", o.dir, "-c", "listen_addresses=127.0.0.1"}, o.flags...)...)
	require.NoError(o.t, o.cmd.Start())
	o.t.Cleanup(o.stop)
	require.Eventually(o.t, func() bool { return pgtest.Try(o.t.Context(), o.url("postgres", "postgres"), "SELECT 1") == nil }, 30*time.Second, 50*time.Millisecond)
}

func (o *ownServer) stop() {
	if o.cmd != nil {
		_ = o.cmd.Process.Signal(syscall.SIGINT)
		_ = o.cmd.Wait()
		o.cmd = nil
	}
}

func (o *ownServer) url(role, database string) string {
	return "postgres://" + role + "@127.0.0.1:" + o.port + "/" + database + "?sslmode=disable"
}
