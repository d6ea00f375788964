//go:build integration

package e2e

import (
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/pgtest"
)

// served is a `berth dev` without a worker, whose commands get these variables.
func served(t *testing.T, env ...string) *stack {
	t.Helper()

	dir, err := os.MkdirTemp("", "berth-e2e-") //nolint:usetesting // PostgreSQL's user must pass through
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // G302: the same

	s := &stack{t: t, dir: dir, instance: "e2e-" + uuid.NewString()[:8], env: env}
	t.Cleanup(func() {
		stop(s.worker, syscall.SIGTERM)
		stop(s.dev, syscall.SIGTERM)
		require.NoError(t, os.RemoveAll(dir))
	})

	return s
}

// drillsWorker is the command by which the page of backups starts a drill's worker, with this data directory.
func drillsWorker(t *testing.T, dir string) []string {
	t.Helper()

	page, err := os.ReadFile("../../docs/production.md")
	require.NoError(t, err)

	_, line, found := strings.Cut(string(page), "\nberth worker --instance drill ")
	require.True(t, found)

	line, _, _ = strings.Cut(line, "\n")

	return strings.Fields("worker --instance drill " + strings.Replace(line, "/var/lib/berth-drill", dir, 1))
}

// An administrator rehearses the restore beside the database in use, with a dump that was made
// while a trial ran, while a sweep runs that began since the dump, and forgets --temporal-namespace: the command says so, and the
// installation in use goes on. With a namespace, and with the --instance of the original on the
// same Docker, the drill's worker leaves the containers of the original alone.
func TestCopies_ADrillBesideTheOriginal(t *testing.T) {
	t.Parallel()

	s := served(t)
	s.flags = []string{"--host-name", "original", "--reconcile-every", "1s", "--reconcile-grace", fastGrace.String()}
	s.startDev()
	s.startWorker()

	address, temporal := s.backends()
	drill, err := url.Parse(address)
	require.NoError(t, err)

	drill.Path = "/drill"
	pgtest.Exec(t, address, "CREATE DATABASE drill")

	s.until(s.submit(busy(1, 300_000, half)), time.Minute, running(1))

	out, err := exec.CommandContext(t.Context(), "sh", "-c",
		"pg_dump --format custom "+address+" | pg_restore --no-privileges --single-transaction --dbname "+drill.String()).CombinedOutput()
	require.NoError(t, err, "%s", out)

	id := s.submit(busy(2, 90_000, half))
	s.until(id, time.Minute, running(2))
	require.Eventually(t, func() bool { return len(s.running()) == 3 }, 30*time.Second, tick)

	before := ids(s.running())
	backends := []string{"--postgres-url", drill.String(), "--temporal-address", temporal}

	berth := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), binary, append(args, backends...)...).CombinedOutput()

		return string(out), err
	}

	said, err := berth("adopt-temporal")
	require.Error(t, err)

	for _, text := range []string{"whose workers asked for work", "--temporal-namespace", "--replace-original"} {
		require.Contains(t, said, text)
	}

	said, err = berth("worker", "--instance", s.instance, "--data-dir", filepath.Join(s.dir, "drill"))
	require.Error(t, err)
	require.Contains(t, said, "is used by another copy of this database")

	out, err = exec.CommandContext(t.Context(), "temporal", "operator", "namespace", "create", "--address", temporal, "drill").CombinedOutput()
	require.NoError(t, err, "%s", out)

	backends = append(backends, "--temporal-namespace", "drill")

	require.Eventually(t, func() bool { // Temporal knows a namespace some seconds after it was made
		said, err = berth("adopt-temporal")

		return err == nil
	}, time.Minute, time.Second, "%s", &said)

	said, err = berth("worker", "--instance", s.instance, "--data-dir", s.dir)
	require.Error(t, err)
	require.Contains(t, said, "another `berth worker` uses", "that of the original runs")

	said, err = berth("worker", "--instance", "drill", "--data-dir", filepath.Join(s.dir, "whole"))
	require.Error(t, err)
	require.Contains(t, said, "--machine-id drill with --cpus and --memory", "nor does it lead to stopping the original's worker")

	args := append(drillsWorker(t, filepath.Join(s.dir, "drill")), // and, beside the page's words, the instance of the original
		"--instance", s.instance, "--host-name", "drill", "--reconcile-every", "1s", "--reconcile-grace", "1s")
	cmd := exec.Command(binary, append(args, backends...)...) //nolint:noctx // stopped below
	worker := launch(t, cmd, filepath.Join(s.dir, "drill.log"), os.O_TRUNC)

	t.Cleanup(func() { stop(worker, syscall.SIGTERM) })
	require.Eventually(t, func() bool { return strings.Contains(s.output("drill"), "worker serves") }, startTimeout, tick, "%s", s.output("drill"))
	never(t, 20*time.Second, func() bool { return len(s.running()) != 3 || !lives(s.dev) || !lives(s.worker) })

	require.Equal(t, before, ids(s.running()))
	require.NotContains(t, s.health(), `"ok":false`)
	s.requireOnce(id, 2)
	require.NotContains(t, s.output("drill"), "removing container")

	// Nor does it take the directory of the original, once that one is stopped.
	stop(s.worker, syscall.SIGTERM)

	said, err = berth("worker", "--instance", s.instance, "--data-dir", s.dir)
	require.Error(t, err)
	require.Contains(t, said, "another copy of this database")
}

// A person has a shell that names the database of a team, and tries `berth dev` in it: that has a
// database of its own, and neither migrates the team's nor raises an alarm there.
func TestCopies_DevInAShellThatNamesTheTeamsDatabase(t *testing.T) {
	t.Parallel()

	team := served(t)
	team.startDev()

	address, _ := team.backends()
	own := served(t, "BERTH_POSTGRES_URL="+address)
	own.dev = own.run("dev", "--no-worker", "--listen", "127.0.0.1:0", "--temporal-port", "0", "--temporal-ui-port", "0")

	require.Eventually(t, func() bool { return !lives(own.dev) }, startTimeout, tick)
	require.Contains(t, own.output("dev"), "unset BERTH_POSTGRES_URL")

	// Typed, it is used. With a Temporal of its own, which is another, it raises no alarm for the team.
	own.dev = own.run("dev", "--no-worker", "--listen", "127.0.0.1:0", "--temporal-port", "0", "--temporal-ui-port", "0", "--postgres-url", address)

	require.Eventually(t, func() bool { return strings.Contains(own.output("dev"), "correct --temporal-address") }, startTimeout, tick)
	never(t, 30*time.Second, func() bool { return strings.Contains(team.health(), "its store was lost") })
}

// The distribution has replaced PostgreSQL, and a person has moved the data by the commands that
// `berth dev` prints (internal/devstack, upgrade). pg_upgrade makes a cluster with another number.
// From one version to the same, which pg_upgrade takes as any other.
func TestCopies_DevAfterTheUpgradeOfPostgres(t *testing.T) {
	t.Parallel()

	s := served(t)
	s.startDev()
	s.startWorker()
	id := s.submit(busy(2, 1000, half))
	require.Equal(t, 2, s.until(id, time.Minute, ended).Counts.Succeeded)
	stop(s.worker, syscall.SIGTERM)
	stop(s.dev, syscall.SIGTERM)

	s.upgradePostgres()
	s.startDev()
	require.Contains(t, s.output("dev"), "takes over what the directory has")
	s.startWorker()

	id = s.submit(busy(2, 1000, half))
	require.Equal(t, 2, s.until(id, time.Minute, ended).Counts.Succeeded, "its worker, too")
	require.NotContains(t, s.health(), "another copy of this database", "the store")
}

// upgradePostgres types what `berth dev` says.
func (s *stack) upgradePostgres() {
	s.t.Helper()

	initdb, err := exec.LookPath("initdb")
	require.NoError(s.t, err)
	initdb, err = filepath.EvalSymlinks(initdb)
	require.NoError(s.t, err)

	bin, data, scratch := filepath.Dir(initdb), filepath.Join(s.dir, "postgres", "data"), filepath.Join(s.dir, "postgres", "scratch")
	fresh, secret := data+".next", filepath.Join(s.dir, "postgres", "password")

	info, err := os.Stat(data)
	require.NoError(s.t, err)

	owner, ok := info.Sys().(*syscall.Stat_t)
	require.True(s.t, ok)
	require.NoError(s.t, os.Mkdir(scratch, 0o700))
	require.NoError(s.t, os.Chown(scratch, int(owner.Uid), int(owner.Gid)))

	for _, command := range []string{
		bin + "/initdb -D " + fresh + " -U berth --pwfile " + secret + " -A scram-sha-256 -E UTF8 --locale C.UTF-8",
		"PGPASSWORD=$(cat " + secret + ") " + bin + "/pg_upgrade -U berth -b " + bin + " -B " + bin + " -d " + data + " -D " + fresh,
		"mv " + data + " " + data + ".old && mv " + fresh + " " + data,
	} {
		cmd := exec.CommandContext(s.t.Context(), "sh", "-c", command)
		cmd.Dir = scratch

		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
			u, err := user.LookupId(strconv.Itoa(int(owner.Uid)))
			require.NoError(s.t, err)

			cmd.Env = append(os.Environ(), "HOME="+scratch, "USER="+u.Username)
		}

		out, err := cmd.CombinedOutput()
		require.NoError(s.t, err, "%s: %s", command, out)
	}
}
