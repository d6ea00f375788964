//go:build integration && nightly

package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/pgtest"
	"github.com/berthml/berth/internal/runtimetest"
)

// once posts a sweep file and returns the first answer.
func (s *stack) once(file string) *client.CreateSweepResponse {
	s.t.Helper()

	answer, err := s.send(file, uuid.NewString())
	require.NoError(s.t, err)

	return answer
}

// Failure 14: a sweep is accepted while Temporal is down, when its image is
// known, and starts when Temporal is back.
func TestParts_SubmitWhileTemporalIsDown(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 1, "1GiB")
	first := c.submit(busy(4, 8000, half))
	c.until(first, time.Minute, running(4))
	require.Eventually(t, func() bool { return len(c.running()) == 4 }, 30*time.Second, tick, "Temporal has handed out all of them")
	c.killTemporal()

	answer := c.once(busy(2, 200, half))
	require.Equal(t, http.StatusCreated, answer.StatusCode(), string(answer.Body))
	require.Len(t, answer.JSON201.Warnings, 1)
	require.Equal(t, "W_IMAGE_OLD", answer.JSON201.Warnings[0].Code)

	unknown := c.once(strings.Replace(busy(2, 200, half), "berth-test/busy:1", "berth-test/other:1", 1))
	requireRefused(t, unknown.HTTPResponse, unknown.Body)
	require.Contains(t, string(unknown.Body), "E_UNAVAILABLE")
	require.Equal(t, client.SweepStatePending, c.sweep(answer.JSON201.ID).State)

	c.startTemporal()
	c.requireOnce(first, 4)
	c.requireOnce(answer.JSON201.ID, 2)
	c.requireTidy()
}

// Failure 10: other clients take all of PostgreSQL's connections. Callers are
// told when to ask again; trials run on, and all ends well once the clients
// leave.
func TestParts_ConnectionStorm(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 1, "1GiB")
	id := c.submit(busy(4, 4000, half))
	c.until(id, time.Minute, running(4))

	crowd, err := pgtest.Gather(t.Context(), c.postgres.URL)
	require.NoError(t, err)
	t.Cleanup(crowd.Leave)
	require.Eventually(t, func() bool { return crowd.Size() >= 95 }, 2*time.Minute, tick, "of the server's 100")

	var callers sync.WaitGroup

	answers := make([]*client.GetSweepResponse, 200)
	failed := make([]error, len(answers))

	for i := range answers {
		callers.Go(func() { answers[i], failed[i] = c.api.GetSweepWithResponse(t.Context(), id) })
	}

	callers.Wait()

	refused := 0

	for i, answer := range answers {
		require.NoError(t, failed[i])

		if answer.StatusCode() != http.StatusOK {
			requireRefused(t, answer.HTTPResponse, answer.Body)

			refused++
		}
	}

	t.Logf("%d of %d callers were refused", refused, len(answers))
	require.Positive(t, refused)
	require.Eventually(t, func() bool { return len(c.running()) == 0 }, time.Minute, tick, "trials run on to their ends")
	require.True(t, lives(c.server))

	crowd.Leave()
	c.requireOnce(id, 4)
	c.requireTidy()
}

// smallDisk mounts a file as a disk of mib MiB at a new directory of the cluster,
// and returns it. Without root or a loop device it skips the test.
func (c *cluster) smallDisk(name string, mib int64) string {
	image, disk := filepath.Join(c.dir, name+".img"), filepath.Join(c.dir, name)

	require.NoError(c.t, os.WriteFile(image, nil, 0o600))
	require.NoError(c.t, os.Truncate(image, mib<<20))
	require.NoError(c.t, os.Mkdir(disk, 0o755)) //nolint:gosec // G301: PostgreSQL's user must pass through

	for _, command := range [][]string{{"mkfs.ext4", "-q", "-F", "-m", "0", image}, {"mount", "-o", "loop", image, disk}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil { //nolint:noctx // ends at once
			runtimetest.Skip(c.t, "a small disk needs root and a loop device: %s: %s", command[0], out)
		}
	}

	c.undo = append(c.undo, func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			c.t.Errorf("unmounting the small disk: %v", err)
		}
	})

	return disk
}

// moveTables moves PostgreSQL's tables, but not its journal, to another disk.
func (c *cluster) moveTables(disk string) {
	base := filepath.Join(c.dir, "postgres", "data", "base")

	require.NoError(c.t, c.postgres.Stop())

	for _, command := range [][]string{{"cp", "-a", base, disk}, {"rm", "-r", base}, {"ln", "-s", filepath.Join(disk, "base"), base}} {
		out, err := exec.Command(command[0], command[1:]...).CombinedOutput() //nolint:noctx // ends at once
		require.NoError(c.t, err, string(out))
	}

	c.startPostgres()
}

// fill writes a file until the disk takes no more.
func fill(t *testing.T, path string) {
	t.Helper()

	file, err := os.Create(path)
	require.NoError(t, err)

	defer file.Close() //nolint:errcheck // it is full on purpose

	for size := 1 << 20; size > 0; {
		if _, err = file.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else {
			require.NoError(t, err)
		}
	}

	require.NoError(t, file.Sync())
}

// fillTo writes a file until left bytes are free on the disk.
func fillTo(t *testing.T, path string, left int64) {
	t.Helper()

	file, err := os.Create(path)
	require.NoError(t, err)

	defer file.Close() //nolint:errcheck // nothing is written but zeros

	var stat syscall.Statfs_t

	require.NoError(t, syscall.Fstatfs(int(file.Fd()), &stat))
	require.NoError(t, syscall.Fallocate(int(file.Fd()), 0, 0, int64(stat.Bavail)*stat.Bsize-left)) //nolint:gosec // G115: a small disk
}

// Failure 11: PostgreSQL's disk is full. New sweeps are refused with the
// reason; running trials end, their results wait on the host, and all is stored
// once there is room.
func TestParts_DatabaseDiskFull(t *testing.T) {
	t.Parallel()

	var disk string

	c := startCluster(t, 1, "1GiB", func(c *cluster) {
		disk = c.smallDisk("disk", 96)
		c.moveTables(disk)
	})
	id := c.submit(busy(4, 5000, half))
	c.until(id, time.Minute, running(4))
	fill(t, filepath.Join(disk, "filler"))

	noise := make([]byte, 15_000) // does not compress; free space in existing pages is used up first
	accepted := []string{}

	require.Eventually(t, func() bool {
		_, _ = rand.Read(noise)

		answer := c.once(busy(1, 10, half, "environment_variables: {NOISE: x"+hex.EncodeToString(noise)+"}"))
		if answer.StatusCode() == http.StatusCreated {
			accepted = append(accepted, answer.JSON201.ID)

			return false
		}

		requireRefused(t, answer.HTTPResponse, answer.Body)

		return strings.Contains(string(answer.Body), "disk of the database is full")
	}, time.Minute, tick)

	require.Eventually(t, func() bool { return len(c.running()) == 0 }, time.Minute, tick, "trials run on to their ends")
	require.NoError(t, os.Remove(filepath.Join(disk, "filler")))
	c.requireOnce(id, 4)

	for _, id := range accepted {
		c.requireOnce(id, 1)
	}

	c.requireTidy()
}

// Failure 34, of the whole machine: less than the headroom is free on the disk
// of a host. It starts nothing new and reports why, running trials have the
// headroom to end in, and it goes on by itself once there is room.
func TestParts_HostDiskFull(t *testing.T) {
	t.Parallel()

	var disk string

	c := startCluster(t, 1, "1GiB", func(c *cluster) { disk = c.smallDisk("host-1", 192) })
	h := c.hosts[0]
	told := func() bool { return strings.Contains(c.health(), "less is free than the hosts keep: host-1") }
	waits := func(n int) func(client.Sweep) bool {
		return func(s client.Sweep) bool { return s.Counts.Waiting == n && s.Counts.Running == 0 }
	}

	id := c.submit(busy(8, 4000, half))
	c.until(id, time.Minute, waits(8))
	require.Eventually(t, told, time.Minute, tick, "the disk is smaller than what is kept free by default")
	require.Eventually(t, func() bool { return strings.Contains(c.why(id, 1), "of disk are free, and it keeps 2,048 MiB") }, time.Minute, tick)

	stop(h.worker, syscall.SIGTERM)

	h.flags = append(h.flags, "--disk-headroom", "64MiB")
	c.startHost(h)
	c.until(id, time.Minute, running(4))
	fillTo(t, filepath.Join(disk, "filler"), 32<<20)

	c.until(id, time.Minute, waits(4))
	require.True(t, told())
	require.Equal(t, 4, c.sweep(id).Counts.Succeeded, "what ran kept its results")

	require.NoError(t, os.Remove(filepath.Join(disk, "filler")))
	c.requireOnce(id, 8)
	require.Eventually(t, func() bool { return !told() }, time.Minute, tick)

	// A worker that starts on a disk full to its last block adopts the running
	// containers.
	id = c.submit(busy(4, 20_000, half))
	c.until(id, time.Minute, running(4))
	require.Eventually(t, func() bool { return len(c.running()) == 4 }, 30*time.Second, tick, "their directories are made")
	fill(t, filepath.Join(disk, "filler"))
	stop(h.worker, syscall.SIGTERM)
	fill(t, filepath.Join(disk, "rest"))

	adopted := strings.Count(c.output(h.name), "adopted=true")
	c.startHost(h)
	c.requireOnce(id, 4)
	require.Equal(t, adopted+4, strings.Count(c.output(h.name), "adopted=true"))

	require.NoError(t, os.Remove(filepath.Join(disk, "filler")))
	require.NoError(t, os.Remove(filepath.Join(disk, "rest")))
	require.Eventually(t, func() bool { return !told() }, time.Minute, tick)

	// One that fills the disk itself is charged and leaves the disk as it was.
	filling := c.submit(strings.Replace(busy(1, 1000, half), "train, \"1000\", \"{{n}}\"", "fill, /trial/out, '1000'", 1))
	c.until(filling, time.Minute, ended)

	attempts := c.attempts(filling)
	require.Len(t, attempts, 1)
	require.Equal(t, "disk_quota", attempts[0].FailureKind, attempts[0].Message)
	require.Eventually(t, func() bool { return !told() }, time.Minute, tick)

	// A disk without inodes for a directory takes nothing, however many bytes
	// are free.
	useInodes(t, filepath.Join(disk, "empty"))
	require.Eventually(t, func() bool { return strings.Contains(c.health(), "takes no new files") }, time.Minute, tick)
	require.NoError(t, os.RemoveAll(filepath.Join(disk, "empty")))

	id = c.submit(busy(1, 100, half))
	c.requireOnce(id, 1)
	c.requireTidy()
}

// Failures 63 and 100: the Docker of one host has no inode left and creates no
// container. Trials go elsewhere, and the host is cordoned with Docker's words.
func TestParts_DockerThatCreatesNothing(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 1, "1GiB")
	h := c.addHost("--memory", "1GiB")
	p := c.proxyDocker(h)
	p.mode.Store(dockerFull)

	h.env = []string{"DOCKER_HOST=unix://" + p.path}

	c.startHost(h)
	c.awaitHosts()

	sweep := c.whole(c.submit(busy(8, 4000, half)), 8)
	require.Positive(t, p.starts.Load(), "nothing was placed on the sick host")

	for _, a := range c.attempts(sweep.ID) {
		require.Contains(t, []string{"ok", "infra"}, a.FailureKind, a.Message)
	}

	require.Contains(t, c.health(), "cordoned, as trials failed to start there one after the other: host-2")
	require.Contains(t, c.health(), "6b1f-init: no space left on device")
	c.requireTidy()
}

// useInodes makes empty files until the disk takes no more.
func useInodes(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.Mkdir(dir, 0o700))

	for n := 0; ; n++ {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(n)), nil, 0o600); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)

			return
		}
	}
}

// why is the reason why a trial waits, host by host.
func (s *stack) why(sweepID string, number int) string {
	answer, err := s.api.GetTrialWithResponse(s.t.Context(), sweepID, number)
	require.NoError(s.t, err)
	require.NotNil(s.t, answer.JSON200, string(answer.Body))

	var reasons []string
	for _, r := range answer.JSON200.Waiting {
		reasons = append(reasons, r.Reason)
	}

	return strings.Join(reasons, "; ")
}

// Failure 40: everything is replaced, one after the other, while a sweep runs.
func TestParts_RollingRestart(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 2, "1GiB")
	id := c.submit(busy(16, 3000, half))
	c.until(id, time.Minute, running(8))

	for _, h := range c.hosts {
		served := strings.Count(c.output(h.name), "worker serves")

		stop(h.worker, syscall.SIGTERM)
		require.Zero(t, h.worker.ProcessState.ExitCode(), "an orderly end")
		c.startHost(h)
		require.Eventually(t, func() bool { return strings.Count(c.output(h.name), "worker serves") > served }, startTimeout, tick)
	}

	stop(c.server, syscall.SIGTERM)
	require.Zero(t, c.server.ProcessState.ExitCode(), "an orderly end")
	c.startServer()

	c.requireOnce(id, 16)
	c.requireTidy()
}

// backup copies the database as it is now, and returns where to.
func (c *cluster) backup() string {
	c.t.Helper()

	u, err := url.Parse(c.postgres.URL)
	require.NoError(c.t, err)

	password, _ := u.User.Password()
	dir := filepath.Join(c.dir, "backup")

	cmd := exec.CommandContext(c.t.Context(), "pg_basebackup", "--pgdata", dir, "--host", u.Hostname(), "--port", u.Port(),
		"--username", u.User.Username(), "--checkpoint", "fast", "--no-sync")
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password)

	out, err := cmd.CombinedOutput()
	require.NoError(c.t, err, string(out))

	return dir
}

// restore puts a backup in the database's place.
func (c *cluster) restore(backup string) {
	c.t.Helper()

	data := filepath.Join(c.dir, "postgres", "data")

	_ = syscall.Kill(c.postgres.PID(), syscall.SIGQUIT)
	_ = c.postgres.Stop() // waits

	for _, command := range [][]string{{"chown", "--recursive", "--reference", data, backup}, {"rm", "-r", data}, {"mv", backup, data}} {
		out, err := exec.Command(command[0], command[1:]...).CombinedOutput() //nolint:noctx // ends at once
		require.NoError(c.t, err, string(out))
	}

	c.startPostgres()
}

// Failure 9: PostgreSQL comes back without its last acknowledged writes.
// Containers of unknown sweeps are removed; a sweep that is open again, although
// all of it has ended, ends as before; nothing stays booked, and later sweeps
// run.
func TestParts_OlderDatabase(t *testing.T) {
	t.Parallel()

	if _, err := exec.LookPath("pg_basebackup"); err != nil {
		runtimetest.Skip(t, "needs pg_basebackup")
	}

	c := startCluster(t, 1, "1GiB")
	old := c.submit(busy(4, 4000, half))
	c.until(old, time.Minute, running(4))
	backup := c.backup()
	c.requireOnce(old, 4)

	lost := c.submit(busy(6, 600_000, half))
	c.until(lost, time.Minute, running(4))
	require.Eventually(t, func() bool { return len(c.running()) == 4 }, 30*time.Second, tick)
	c.restore(backup)

	require.Eventually(t, func() bool {
		answer, err := c.api.GetSweepWithResponse(t.Context(), lost)

		return err == nil && answer.StatusCode() == http.StatusNotFound
	}, time.Minute, tick)
	require.Eventually(t, func() bool { return len(c.containers()) == 0 }, time.Minute, tick, "nobody owns them")

	sweep := c.until(old, time.Minute, ended)
	require.Equal(t, client.SweepStateSucceeded, sweep.State, sweep.Reason)
	require.Equal(t, 4, sweep.Counts.Succeeded)
	require.NotNil(t, sweep.Best)

	again := c.submit(busy(4, 200, half))
	c.requireOnce(again, 4)
	c.requireTidy(pgtest.HasResult, pgtest.SameResult) // the attempts that had the results are lost
}
