package devstack

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// servers is a directory that PostgreSQL's user can pass to.
func servers(t *testing.T) string {
	t.Helper()

	dir, err := os.MkdirTemp("", "berth-devstack-") //nolint:usetesting // the parents of t.TempDir are closed
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // G302: the same
	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	return dir
}

// As root PostgreSQL runs as another user; a directory that it cannot enter
// shows the difference.
func TestStartPostgres_SaysWhichDirectoryIsClosed(t *testing.T) {
	t.Parallel()

	if os.Geteuid() != 0 {
		runtimetest.Skip(t, "only root runs PostgreSQL as another user")
	}

	closed := filepath.Join(servers(t), "closed")
	require.NoError(t, os.Mkdir(closed, 0o700))

	_, err := StartPostgres(t.Context(), PostgresConfig{Dir: filepath.Join(closed, "berth", "postgres"), Volatile: true})
	require.ErrorContains(t, err, "cannot enter "+filepath.Join(closed, "berth", "postgres")+": `namei -l ")
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))

	require.NoError(t, os.Chmod(closed, 0o711)) //nolint:gosec // G302: as the message says

	server, err := StartPostgres(t.Context(), PostgresConfig{Dir: filepath.Join(closed, "berth", "postgres"), Volatile: true})
	require.NoError(t, err)
	require.NoError(t, server.Stop())
}

func TestStartPostgres_SaysWhenItsProgramsAreClosed(t *testing.T) {
	t.Parallel()

	if os.Geteuid() != 0 {
		runtimetest.Skip(t, "only root runs PostgreSQL as another user")
	}

	root := servers(t)
	bin := filepath.Join(root, "closed", "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))                                                    //nolint:gosec // G301: only the one above is closed
	require.NoError(t, os.Chmod(filepath.Dir(bin), 0o700))                                         //nolint:gosec // G302: a directory
	require.NoError(t, os.WriteFile(filepath.Join(bin, "postgres"), []byte("#!/bin/sh\n"), 0o755)) //nolint:gosec // G306: a program

	err := cluster{bin: bin, dir: root, as: &syscall.Credential{Uid: 65534, Gid: 65534}}.checkWay(t.Context())
	require.ErrorContains(t, err, "cannot run the programs in "+bin)
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
}

// A relative directory is one below where Berth runs, not where PostgreSQL does.
func TestStartPostgres_RelativeDirectory(t *testing.T) {
	root := servers(t)
	t.Chdir(root)

	server, err := StartPostgres(t.Context(), PostgresConfig{Dir: "below", Volatile: true})
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "below", "data", "PG_VERSION"))
	require.NoError(t, server.Stop())
}
