//go:build integration

package e2e

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// counting is one trial that counts, saves each saves-th step in /trial/checkpoint, and goes on from there.
// A file of mib MiB lies beside it. Its first attempt ends with exit code 75 at step ends; 0 = it does not.
func counting(steps, saves, mib, ends int) string {
	return fmt.Sprintf(`
name: counting
image: berth-examples/python:3.11
command:
  - python3
  - -c
  - |
    import json, os, sys, time
    at, blob = "/trial/checkpoint/step", "/trial/checkpoint/blob"
    first = int(open(at).read()) + 1 if os.path.exists(at) else 1
    print("first step", first, "of", os.environ.get("TRIAL_RESUME", "0"), flush=True)
    if first == 1:
        with open(blob, "wb") as f:
            for n in range(%d):
                f.write(bytes([n %% 251]) * (1 << 20))
    assert os.path.getsize(blob) == %d << 20
    for n in range(%d):
        with open(blob, "rb") as f:
            f.seek(n << 20)
            assert f.read(1) == bytes([n %% 251])
    for step in range(first, %d + 1):
        time.sleep(0.5)
        if step %% %d == 0:
            open(at + ".new", "w").write(str(step))
            os.replace(at + ".new", at)
        print(json.dumps({"val": step, "step": step}), flush=True)
        if step == %d and os.environ["TRIAL_ATTEMPT"] == "1":
            sys.exit(75)
parameters: [{name: n, values: [1]}]
search: {algorithm: grid}
objective: {metric: val, goal: maximize}
metrics: {source: stdout}
resources: {memory: 256MiB}
probe: {mode: 'off'}
`, mib, mib, mib, steps, saves, ends)
}

// startStoring runs a cluster of two hosts with a store.
func startStoring(t *testing.T, every string) (c *cluster, store string) {
	t.Helper()

	store = filepath.Join(t.TempDir(), "store")
	c = startParts(t)

	for range 2 {
		c.startHost(c.addHost("--memory", "1GiB", "--artifacts", store, "--checkpoint-every", every))
	}

	c.awaitHosts()

	return c, store
}

// storedStep is the step in the newest checkpoint of the store; 0 = none.
func (c *cluster) storedStep(db *pgtest.Session, store string) int {
	c.t.Helper()

	name := db.Text("SELECT coalesce((SELECT encode(sha256, 'hex') FROM checkpoints WHERE stored_at IS NOT NULL), '')")
	if name == "" {
		return 0
	}

	object, err := os.Open(filepath.Join(store, "sha256", name[:2], name))
	if err != nil {
		return 0 // a newer one took its place
	}
	defer object.Close() //nolint:errcheck // only read

	for archive := tar.NewReader(object); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return 0 // its first step is to come
		}

		require.NoError(c.t, err)

		if header.Name != "step" {
			continue
		}

		text, err := io.ReadAll(archive)
		require.NoError(c.t, err)

		step, err := strconv.Atoi(string(text))
		require.NoError(c.t, err)

		return step
	}
}

func (c *cluster) hostNamed(id string) *host {
	c.t.Helper()

	answer, err := c.api.ListHostsWithResponse(c.t.Context())
	require.NoError(c.t, err)

	for _, h := range answer.JSON200.Data {
		for _, mine := range c.hosts {
			if h.ID == id && mine.name == h.Name {
				return mine
			}
		}
	}

	require.Fail(c.t, "no such host", id)

	return nil
}

var firstStep = regexp.MustCompile(`first step (\d+) of (\d)`)

// requireGoesOn checks that the newest attempt of a trial ran on another host and went
// on after a step.
func (c *cluster) requireGoesOn(id string, from *host, after, steps int) {
	c.t.Helper()

	sweep := c.until(id, 3*time.Minute, ended)
	require.Equal(c.t, client.SweepStateSucceeded, sweep.State, "%+v", sweep)
	require.InDelta(c.t, steps, sweep.Best.Value, 0)

	last := c.newest(id)
	require.NotEqual(c.t, from.name, c.hostNamed(last.HostID).name)
	require.Equal(c.t, []string{fmt.Sprintf("first step %d of 1", after+1), strconv.Itoa(after + 1), "1"}, firstStep.FindStringSubmatch(c.log(last.ID)))
	require.True(c.t, strings.HasPrefix(last.Resumed, "from the checkpoint of attempt 1 of host "+from.name+", stored at "), last.Resumed)
}

// newest is the newest attempt of the sweep's only trial.
func (c *cluster) newest(id string) (last client.Attempt) {
	c.t.Helper()

	for _, a := range c.attempts(id) {
		if a.Number > last.Number {
			last = a
		}
	}

	return last
}

// An attempt that ends and runs again on another host goes on there from its last step.
func TestCheckpoints_FollowAnAttemptThatEnds(t *testing.T) {
	t.Parallel()

	c, _ := startStoring(t, "0")
	id := c.submit(counting(14, 1, 3, 9))
	c.until(id, time.Minute, running(1))

	from := c.hostNamed(c.newest(id).HostID)
	answer, err := c.api.UpdateHostWithResponse(t.Context(), c.newest(id).HostID, client.HostPatch{State: client.HostPatchStateDraining})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode(), string(answer.Body))

	c.requireGoesOn(id, from, 9, 14)
	c.requireTidy()
}

// A lost host costs only the work since its last stored checkpoint, and the worker
// of the other host may be killed while it fetches the checkpoint.
func TestCheckpoints_FollowATrialFromALostHost(t *testing.T) {
	t.Parallel()

	c, store := startStoring(t, "5s")
	id := c.submit(counting(160, 30, 400, 0))
	c.until(id, time.Minute, running(1))

	from := c.hostNamed(c.newest(id).HostID)

	db := pgtest.Connect(t, c.postgres.URL)
	require.Eventually(t, func() bool { return c.storedStep(db, store) > 1 }, 2*time.Minute, tick, "nothing was stored: %s", c.output(from.name))
	require.NoError(t, from.worker.Process.Kill())
	_ = from.worker.Wait()

	for _, box := range c.containers() {
		require.NoError(t, c.docker("rm", "-f", box.id).Run())
	}

	step := c.storedStep(db, store)
	require.Greater(t, step, 1)

	to := c.hosts[0]
	if to == from {
		to = c.hosts[1]
	}

	var parts []string

	require.Eventually(t, func() bool {
		parts, _ = filepath.Glob(filepath.Join(to.dir, "host", "attempts", "*", "fetching", "*", "checkpoint", "blob"))

		return len(parts) > 0
	}, 2*time.Minute, time.Millisecond, "nothing is fetched: %s", c.output(to.name))
	require.NoError(t, to.worker.Process.Signal(syscall.SIGKILL))
	_ = to.worker.Wait()
	require.FileExists(t, parts[0], "it was killed in the middle")
	require.Empty(t, c.containers())

	c.startHost(to)
	c.requireGoesOn(id, from, step, 160)
}
