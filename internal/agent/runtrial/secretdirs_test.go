package runtrial

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// What a killed worker left of attempts that are over goes.
func TestLeftovers_OfSecrets(t *testing.T) {
	t.Parallel()

	r := setup(t)
	dir := filepath.Join(t.TempDir(), "tmpfs")
	r.config.SecretsDir = dir

	left, err := r.Leftovers()
	require.NoError(t, err)
	require.Empty(t, left)

	d := r.dirs(berth.Assignee{Attempt: berth.Attempt{ID: attemptID}})
	require.NoError(t, keepSecret(d.secret("hub"), []byte(hub)))
	require.FileExists(t, filepath.Join(dir, "berth-secrets", r.config.HostID, attemptID, "hub"))

	left, err = r.Leftovers()
	require.NoError(t, err)
	require.Equal(t, []string{attemptID}, left)

	require.NoError(t, r.Clean(attemptID))
	require.NoDirExists(t, filepath.Join(dir, "berth-secrets", r.config.HostID, attemptID))
}

// Two workers share a machine (--machine-id) and one tmpfs (--secrets-dir), which others use, too:
// /dev/shm, or /run/berth, where the compose files have the key. A worker that starts removes what
// its own attempts left over, and neither what the other's trials mount nor what is no attempt's.
func TestLeftovers_AreNotThoseOfOthers(t *testing.T) {
	t.Parallel()

	tmpfs := t.TempDir()
	key, theirs := filepath.Join(tmpfs, "secrets.key"), filepath.Join(tmpfs, "PostgreSQL.1234", "segment")
	plantFile(t, key, []byte("AGE-SECRET-KEY-1"))
	plantFile(t, theirs, []byte("of another program"))

	mine, other := setup(t), setup(t)
	mine.config.SecretsDir, other.config.SecretsDir = tmpfs, tmpfs
	mine.secret(opens(hub))

	box, ended := mine.begin(t)

	left, err := other.Leftovers() // what reconcile.sweepDisk does when the other worker starts
	require.NoError(t, err)

	for _, id := range left { // none of them holds a place at the other host
		require.NoError(t, other.Clean(id))
	}

	require.FileExists(t, key)
	require.FileExists(t, theirs)

	for _, m := range box.Launch.Mounts {
		require.True(t, m.Target != "/run/secrets/hub" || fileIsThere(m.Source), "the other worker removed the secret of a trial that runs")
	}

	ends(t, box, ended, "acc=1\n", 0)
}

func fileIsThere(path string) bool {
	_, err := os.Stat(path)

	return err == nil
}

// A worker that was killed is started with another --secrets-dir, and the attempt is not
// its own any more: the launch that was written down says where the files were.
func TestClean_FindsSecretsWhereTheLaunchHadThem(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.secret(opens(hub))

	old := t.TempDir()
	r.config.SecretsDir = old

	r.leave(t, r.order())

	file := filepath.Join(old, "berth-secrets", r.config.HostID, attemptID, "hub")
	require.FileExists(t, file)

	r.config.SecretsDir = t.TempDir()

	left, err := r.Leftovers()
	require.NoError(t, err)
	require.Equal(t, []string{attemptID}, left)
	require.NoError(t, r.Clean(attemptID))
	require.NoDirExists(t, filepath.Dir(file))
	require.DirExists(t, old)
}

// On a tmpfs where everybody may write, a user could make our directory first.
func TestRun_PutsNoSecretBelowADirectoryOfOthers(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	file := filepath.Join(dir, sharedName, "host", attemptID, "hub")
	require.NoError(t, keepSecret(file, []byte(hub)))

	for _, above := range []string{filepath.Join(dir, sharedName), filepath.Join(dir, sharedName, "host")} {
		require.NoError(t, os.Chmod(above, 0o777)) //nolint:gosec // G302: that is what is refused
		require.ErrorContains(t, keepSecret(file, []byte(hub)), above+" must be a directory that only the worker's user may write to")
		require.NoError(t, os.Chmod(above, 0o700)) //nolint:gosec // G302: a directory
	}

	moved := filepath.Join(dir, "elsewhere")
	require.NoError(t, os.Rename(filepath.Join(dir, sharedName), moved))
	require.NoError(t, os.Symlink(moved, filepath.Join(dir, sharedName)))
	require.ErrorContains(t, keepSecret(file, []byte(hub)), "must be a directory")
}
