//go:build integration

package runtimetest_test

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/cgroup"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

const (
	mib      = 1 << 20
	patience = 30 * time.Second
	tick     = 20 * time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *docker.Docker {
	t.Helper()

	config := docker.Config{Instance: "runtimetest", Owner: berth.Owner{HostID: "host-1"}, BootID: "boot-1"}

	if log, err := (cgroup.FS{}).OpenKillLog(); err == nil {
		t.Cleanup(func() { require.NoError(t, log.Close()) })

		config.KernelKilled = log.Cause
	}

	d, err := docker.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })

	return d
}

func TestConformance(t *testing.T) {
	t.Parallel()
	runtimetest.Run(t, func(t *testing.T) runtimetest.Runtime {
		t.Helper()

		return open(t)
	})
}

// finish runs busy to its end and returns its end and its output.
func finish(t *testing.T, d *docker.Docker, l berth.Launch) (berth.Container, string) {
	t.Helper()

	c, out := runtimetest.Finish(t, d, l)

	return c, out[berth.Stdout] + out[berth.Stderr]
}

func TestOutOfMemory(t *testing.T) {
	t.Parallel()

	d := open(t)

	c, _ := finish(t, d, runtimetest.Launch("alloc", "200"))
	require.Equal(t, 137, c.ExitCode)
	require.True(t, c.OOMKilled)
	require.NotEqual(t, berth.OOMMachine, c.OOMCause)
}

func TestOutOfMemoryInChild(t *testing.T) {
	t.Parallel()

	d := open(t)

	c, _ := finish(t, d, runtimetest.Launch("child", "200", "0"))
	require.Zero(t, c.ExitCode)
	require.True(t, c.OOMKilled, "the flag alone is no failure")

	c, _ = finish(t, d, runtimetest.Launch("child", "200", "3"))
	require.Equal(t, 3, c.ExitCode)
	require.True(t, c.OOMKilled)
}

// TestOutOfMemoryEvent has a child killed in a container that goes on: Docker
// sometimes loses the event of a container that ends with the kill. Docker does
// not report events before it has registered the watcher, so the kill is
// repeated. The watcher reports other tests' containers, too.
func TestOutOfMemoryEvent(t *testing.T) {
	t.Parallel()

	d := open(t)

	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan string, 100)
	done := make(chan error, 1)

	go func() { done <- d.WatchOOM(ctx, func(attemptID string) { seen <- attemptID }) }()

	told := func() bool {
		l := runtimetest.Launch("child-and-sleep", "200")
		runtimetest.Start(t, d, l)

		limit := time.After(patience / 4)

		for {
			select {
			case attemptID := <-seen:
				if attemptID == l.AttemptID {
					return true
				}
			case <-limit:
				return false
			}
		}
	}

	const kills = 3

	silent := 0
	for silent < kills && !told() {
		silent++
	}

	require.Less(t, silent, kills, "so many out-of-memory kills, and no word of any")

	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// TestFence reads from inside the limits that the kernel applies.
func TestFence(t *testing.T) {
	t.Parallel()

	d := open(t)

	c, status := finish(t, d, runtimetest.Launch("cat", "/proc/self/status"))
	require.Zero(t, c.ExitCode)

	for _, line := range []string{
		"Uid:\t65532\t65532\t65532\t65532", "Gid:\t65532\t65532\t65532\t65532",
		"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000",
		"NoNewPrivs:\t1", "Seccomp:\t2",
	} {
		require.Contains(t, status, line)
	}

	_, limits := finish(t, d, runtimetest.Launch("cat", "/proc/self/limits"))
	require.Regexp(t, `Max core file size +0 +0`, limits)
	require.Regexp(t, `Max open files +16384 +16384`, limits)

	c, out := finish(t, d, runtimetest.Launch("write", "/x", "text"))
	require.NotZero(t, c.ExitCode)
	require.Contains(t, out, "read-only file system")

	c, _ = finish(t, d, runtimetest.Launch("write", "/tmp/x", "text"))
	require.Zero(t, c.ExitCode)

	_, mounts := finish(t, d, runtimetest.Launch("cat", "/proc/mounts"))
	require.Regexp(t, `tmpfs /tmp tmpfs rw,nosuid,nodev,noexec,relatime,size=65536k`, mounts)
	require.Regexp(t, `tmpfs /trial/cache tmpfs rw,nosuid,nodev,relatime,size=65536k`, mounts)
	require.Regexp(t, `shm /dev/shm tmpfs rw,nosuid,nodev,noexec,relatime,size=65536k`, mounts)

	_, env := finish(t, d, runtimetest.Launch("env"))
	require.Contains(t, env, "NVIDIA_VISIBLE_DEVICES=void")
}

func TestNoNetwork(t *testing.T) {
	t.Parallel()

	d := open(t)

	_, routes := finish(t, d, runtimetest.Launch("cat", "/proc/net/dev"))
	require.NotContains(t, routes, "eth0")

	c, out := finish(t, d, runtimetest.Launch("dial", "192.0.2.1:80"))
	require.NotZero(t, c.ExitCode)
	require.Contains(t, out, "network is unreachable")
}

func TestForkBombStops(t *testing.T) {
	t.Parallel()

	d := open(t)
	l := runtimetest.Launch("forkbomb")
	l.MemoryBytes = 1024 * mib // so that it is the processes, not the memory, that end it

	c, out := finish(t, d, l)
	require.Zero(t, c.ExitCode, out)

	children, err := strconv.Atoi(strings.Fields(out)[len(strings.Fields(out))-2])
	require.NoError(t, err, out)
	require.Less(t, children, 512)
}

// TestLogIsBounded: the program prints 40 MB, and Docker keeps 30.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()

	const lines = 1_200_000

	d := open(t)
	c := runtimetest.Start(t, d, runtimetest.Launch("spam", strconv.Itoa(lines)))

	ended, err := d.Wait(t.Context(), c.ID)
	require.NoError(t, err)
	require.Zero(t, ended.ExitCode)

	kept := 0

	require.NoError(t, d.Logs(t.Context(), c.ID, berth.LogPosition{}, false, func(berth.LogChunk) error {
		kept++

		return nil
	}))
	require.Positive(t, kept)
	require.Less(t, kept, lines, "non-blocking and three files")
}

func TestMounts(t *testing.T) {
	t.Parallel()

	d := open(t)
	in, out := t.TempDir(), t.TempDir()
	require.NoError(t, os.Chmod(out, 0o777))                            //nolint:gosec // another user writes there
	require.NoError(t, os.Chmod(in, 0o755))                             //nolint:gosec // another user reads it
	require.NoError(t, os.WriteFile(in+"/params", []byte("{}"), 0o644)) //nolint:gosec // the same

	mounts := []berth.Mount{{Source: in, Target: "/trial/in", ReadOnly: true}, {Source: out, Target: "/trial/out"}}
	run := func(args ...string) int {
		l := runtimetest.Launch(args...)
		l.Mounts = mounts
		c, _ := finish(t, d, l)

		return c.ExitCode
	}

	require.Zero(t, run("cat", "/trial/in/params"))
	require.NotZero(t, run("write", "/trial/in/x", "text"))
	require.Zero(t, run("write", "/trial/out/x", "text"))

	data, err := os.ReadFile(out + "/x")
	require.NoError(t, err)
	require.Equal(t, "text", string(data))

	l := runtimetest.Launch("exit", "0")
	l.Mounts = []berth.Mount{{Source: in + "/missing", Target: "/trial/in"}}
	_, err = d.Ensure(t.Context(), l)

	var start *berth.StartError

	require.ErrorAs(t, err, &start)
	require.Equal(t, berth.FailureInfra, start.Kind, "mounts are ours")
}

func TestMeter(t *testing.T) {
	t.Parallel()

	d := open(t)
	l := runtimetest.Launch("alloc", "100")
	l.MemoryBytes = 256 * mib
	c := runtimetest.Start(t, d, l)

	meter, err := cgroup.FS{}.Open(c.ID, c.PID)
	require.NoError(t, err)
	runtimetest.AwaitReady(t, d, c.ID)

	sample, err := meter.Read()
	require.NoError(t, err)
	require.InDelta(t, 105*mib, sample.WorkingSetBytes, 10*mib)
	require.EqualValues(t, 256*mib, sample.LimitBytes)
	require.Positive(t, sample.CPU)
	require.Zero(t, sample.OOMKills)
	require.True(t, sample.BelowLimit)

	if sample.HighWaterBytes > 0 { // version 2 has it since Linux 5.19
		require.GreaterOrEqual(t, sample.HighWaterBytes, int64(100*mib))
	}

	require.NoError(t, d.Stop(t.Context(), c.ID, 0))
	require.Eventually(t, func() bool { _, err := meter.Read(); return err != nil }, patience, tick)

	_, err = meter.Read()
	require.ErrorIs(t, err, cgroup.ErrGone)
}

func TestMeterCountsKills(t *testing.T) {
	t.Parallel()

	d := open(t)
	l := runtimetest.Launch("child-and-sleep", "200")
	c := runtimetest.Start(t, d, l)

	meter, err := cgroup.FS{}.Open(c.ID, c.PID)
	require.NoError(t, err)

	require.Eventually(t, func() bool {
		sample, err := meter.Read()

		if err != nil || sample.OOMKills == 0 {
			return false
		}

		require.False(t, sample.BelowLimit, "it was killed at its own limit")

		return true
	}, patience, tick)
}

func TestResolveImage(t *testing.T) {
	t.Parallel()

	d := open(t)

	image, err := d.ResolveImage(t.Context(), runtimetest.Image)
	require.NoError(t, err)
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, image.ID)
	require.Equal(t, image.ID, image.Digest, "not from a registry")
	require.Equal(t, "linux", image.OS)
	require.Greater(t, image.SizeBytes, int64(mib))

	all, err := d.ListImages(t.Context())
	require.NoError(t, err)
	require.Contains(t, all, image.Digest, "what a sweep keeps")

	l := runtimetest.Launch("exit", "0")
	l.Image = image.Digest
	c, _ := finish(t, d, l)
	require.Zero(t, c.ExitCode)

	_, err = d.ResolveImage(t.Context(), "berth-test/no-such-image:1")

	var spec *berth.SpecError

	require.ErrorAs(t, err, &spec)
	require.Equal(t, "E_IMAGE_MISSING", spec.Problems[0].Code)
}

// derive makes an image of the test image's files with a change to its
// configuration.
func derive(t *testing.T, change string) string {
	t.Helper()

	image := "berth-test/derived:" + strings.ToLower(rand.Text())
	out, err := exec.CommandContext(t.Context(), "bash", "-c", `
		set -e -o pipefail
		id=$(docker create "$1")
		docker export "$id" | docker import --change "$2" - "$3"
		docker rm "$id"`, "bash", runtimetest.Image, change, image).CombinedOutput()
	require.NoError(t, err, string(out))
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", image).Run() }) //nolint:noctx // answers at once

	return image
}

// TestVolumesOfAnImage: they would be directories of the host without a limit.
func TestVolumesOfAnImage(t *testing.T) {
	t.Parallel()

	d := open(t)
	image := derive(t, `VOLUME ["/data/", "/tmp", "/trial/out"]`)
	out := t.TempDir()
	require.NoError(t, os.Chmod(out, 0o777)) //nolint:gosec // G302: another user writes there

	run := func(args ...string) (berth.Container, string) {
		l := runtimetest.Launch(args...)
		l.Image, l.Mounts = image, []berth.Mount{{Source: out, Target: "/trial/out"}}

		return finish(t, d, l)
	}

	_, mounts := run("cat", "/proc/mounts")
	require.Regexp(t, `tmpfs /data tmpfs rw,nosuid,nodev,noexec,relatime,size=65536k`, mounts)
	require.Regexp(t, `tmpfs /tmp tmpfs rw,nosuid,nodev,noexec,relatime,size=65536k`, mounts)

	c, text := run("write", "/trial/out/x", "text")
	require.Zero(t, c.ExitCode, text)
	require.FileExists(t, out+"/x", "ours, not the image's")
}

func TestImageThatPreloads(t *testing.T) {
	t.Parallel()

	d := open(t)

	for _, variable := range []string{"LD_PRELOAD", "LD_AUDIT"} {
		image := derive(t, "ENV "+variable+"=/evil.so")
		_, err := d.ResolveImage(t.Context(), image)
		require.ErrorContains(t, err, "E_IMAGE_ENV")
		require.ErrorContains(t, err, variable)

		l := runtimetest.Launch("exit", "0")
		l.Image = image
		_, err = d.Ensure(t.Context(), l)

		var start *berth.StartError

		require.ErrorAs(t, err, &start, "nor does it start where it was not asked about")
		require.Equal(t, berth.FailureBadCommand, start.Kind)
	}
}

// A directory that no machine can make is the launch's fault, whatever Docker's
// error says.
func TestWorkdirBelowAFile(t *testing.T) {
	t.Parallel()

	for _, dir := range []string{"/busy", "/busy/out", "/busy/out/deep"} {
		l := runtimetest.Launch("exit", "0")
		l.Workdir = dir
		_, err := open(t).Ensure(t.Context(), l)

		var start *berth.StartError

		require.ErrorAs(t, err, &start, dir)
		require.Equal(t, berth.FailureBadCommand, start.Kind, "%s: %s", dir, err)
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()

	info, err := open(t).Info(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, info.Version)
	require.Contains(t, []string{"1", "2"}, info.CgroupVersion)
	require.True(t, info.MemoryLimit)
}
