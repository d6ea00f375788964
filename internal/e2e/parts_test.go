//go:build integration && nightly

package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/testkit/pgtest"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// once posts a sweep file and returns the first answer.
func (s *stack) once(file string) *client.CreateSweepResponse {
	s.t.Helper()

	answer, err := s.send(file, uuid.NewString())
	require.NoError(s.t, err)

	return answer
}

// Failure 10: other clients take all of PostgreSQL's connections. Callers are
// told when to ask again; trials run on, and all ends well once the clients
// leave.
func TestParts_ConnectionStorm(t *testing.T) {
	t.Parallel()

	c := startCluster(t, 1, "1GiB")
	id := c.submit(busy(4, 4000, half))
	c.until(id, patience, running(4))

	leave, err := pgtest.Gather(t.Context(), c.postgres.URL, 95) // of the server's 100
	require.NoError(t, err)
	t.Cleanup(leave)

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
	require.Eventually(t, func() bool { return len(c.running()) == 0 }, patience, tick, "trials run on to their ends")
	require.True(t, lives(c.server))

	leave()
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
	c.until(id, patience, running(4))
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
	}, patience, tick)

	require.Eventually(t, func() bool { return len(c.running()) == 0 }, patience, tick, "trials run on to their ends")
	require.NoError(t, os.Remove(filepath.Join(disk, "filler")))
	c.requireOnce(id, 4)

	for _, id := range accepted {
		c.requireOnce(id, 1)
	}

	c.requireTidy()
}
