package docker

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berthml/berth"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func setup(t *testing.T) *Docker {
	t.Helper()

	d, err := New(Config{Instance: "test", Owner: berth.Owner{Installation: "installation-1", HostID: "host-1"}, BootID: "boot-1"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })

	return d
}

func launch() berth.Launch {
	return berth.Launch{
		AttemptID: "a1", SweepID: "s1", TrialID: "t1", LeaseID: "l1", Token: 42,
		Image:       "sha256:0123",
		Command:     []string{"python3", "train.py", "--lr=0.1"},
		Workdir:     "/app",
		Environment: map[string]string{"TRIAL_ID": "t1", "HOME": "/tmp"},
		Mounts:      []berth.Mount{{Source: "/data/a1/in", Target: "/trial/in", ReadOnly: true}, {Source: "/data/a1/out", Target: "/trial/out"}},
		MemoryBytes: 640 << 20,
		ShmBytes:    64 << 20,
		CPUMilli:    1000,
	}
}

// TestGolden holds every line of the requests to Docker. Read a change of the
// file as a change of the fence around other people's programs.
func TestGolden(t *testing.T) {
	t.Parallel()

	d := setup(t)

	got, err := json.MarshalIndent(map[string]any{
		"name":        d.Name("a1"),
		"config":      containerConfig(launch(), berth.Image{}, ResolveUser("", "", 0, 0), d.labels(launch())),
		"host_config": hostConfig(launch(), 2),
	}, "", "  ")
	require.NoError(t, err)

	const path = "testdata/container.json"
	if *update {
		require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o600))
	}

	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
}

func TestHostConfigChoices(t *testing.T) {
	t.Parallel()

	l := launch()
	l.Network = true
	l.CPUMilli = 2500
	host := hostConfig(l, 2)
	require.EqualValues(t, "berth-trials", host.NetworkMode)
	require.EqualValues(t, 2560, host.CPUShares)
	require.EqualValues(t, 4*cpuPeriod, host.CPUQuota, "1.25 x 2.5 = 3.1 cores, rounded up")

	l.Defaults = map[string]string{"HOME": "/root", "USER": "trial"}
	env := containerConfig(l, berth.Image{}, "", nil).Env
	require.Contains(t, env, "USER=trial")
	require.Contains(t, env, "HOME=/tmp", "the environment wins")
	require.NotContains(t, env, "HOME=/root")

	l.CPUMilli, l.ShmBytes = 0, 0
	host = hostConfig(l, 2)
	require.Zero(t, host.CPUQuota)
	require.Equal(t, l.MemoryBytes, host.ShmSize)

	l.WallBytes = 2 << 30
	host = hostConfig(l, 2)
	require.Equal(t, l.MemoryBytes+2<<30, host.Memory)
	require.Equal(t, host.Memory, host.MemorySwap)
	require.Equal(t, l.MemoryBytes, host.ShmSize)

	l.CPUMilli = 1
	require.EqualValues(t, minShares, hostConfig(l, 2).CPUShares)
	require.EqualValues(t, cpuPeriod, hostConfig(l, 2).CPUQuota)

	for cpus, want := range map[int]int64{0: 512, 2: 512, 32: 512, 64: 1024, 256: 4096} {
		require.Equal(t, want, *hostConfig(l, cpus).PidsLimit, "frameworks start threads by the machine's %d CPUs", cpus)
	}
}

func TestSpecHash(t *testing.T) {
	t.Parallel()

	base := specHash(launch())
	require.Equal(t, "9f26e63e03a01927dda733c4666661837ba41bb0a38694119818331b33a3e8da", base,
		"containers that run bear the hash of the version that started them: with another one they are not adopted")

	same := launch()
	same.AttemptID, same.SweepID, same.TrialID, same.LeaseID, same.Token = "x", "x", "x", "x", 1
	same.Defaults = map[string]string{"USER": "trial"}
	require.Equal(t, base, specHash(same), "whose it is, is not part of it, nor are defaults")

	for name, change := range map[string]func(*berth.Launch){
		"image":   func(l *berth.Launch) { l.Image = "x" },
		"command": func(l *berth.Launch) { l.Command = []string{"x"} },
		"env":     func(l *berth.Launch) { l.Environment = nil },
		"mounts":  func(l *berth.Launch) { l.Mounts[0].ReadOnly = false },
		"memory":  func(l *berth.Launch) { l.MemoryBytes++ },
		"network": func(l *berth.Launch) { l.Network = true },
		"user":    func(l *berth.Launch) { l.User = "1:1" },
	} {
		changed := launch()
		change(&changed)
		require.NotEqual(t, base, specHash(changed), name)
	}
}

func TestCheckLaunch(t *testing.T) {
	t.Parallel()

	require.NoError(t, CheckLaunch(launch()))

	for name, change := range map[string]func(*berth.Launch){
		"no image":       func(l *berth.Launch) { l.Image = "" },
		"no command":     func(l *berth.Launch) { l.Command = nil },
		"no memory":      func(l *berth.Launch) { l.MemoryBytes = 0 },
		"bad id":         func(l *berth.Launch) { l.AttemptID = "../x" },
		"relative mount": func(l *berth.Launch) { l.Mounts[0].Source = "data" },
	} {
		changed := launch()
		change(&changed)
		require.Equal(t, berth.KindInvalid, berth.KindOf(CheckLaunch(changed)), name)
	}

	_, err := New(Config{Instance: "a/b"})
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
}

func TestLabelsComeBack(t *testing.T) {
	t.Parallel()

	d, l := setup(t), launch()
	require.NotContains(t, d.labels(l), labelDeviceBytes)
	require.Zero(t, fromLabels(d.labels(l)).DeviceBytes)

	l.DeviceID, l.DeviceBytes = "GPU-1", 1216<<20
	c := fromLabels(d.labels(l))
	require.Equal(t, berth.Container{
		AttemptID: "a1", Token: 42,
		DeviceID: "GPU-1", DeviceBytes: 1216 << 20, SpecHash: specHash(l), HostID: "host-1", Installation: "installation-1", BootID: "boot-1",
	}, c)
}

func TestResolveUser(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		image, wanted string
		uid, gid      int
		want          string
	}{
		{"", "", 0, 0, "65532:65532"},
		{"root", "", 0, 0, "65532:65532"},
		{"0:0", "", 0, 0, "65532:65532"},
		{"1000:100", "", 0, 0, "1000:100"},
		{"trial", "5:6", 0, 0, "5:6"},
		{"", "0:0", 0, 0, "0:0"},
		{"", "", 1000, 985, "1000:985"},
		{"root", "", 1000, 985, "1000:985"},
		{"0:0", "", 1000, 985, "1000:985"},
		{"trial", "", 1000, 985, "trial"},
	} {
		require.Equal(t, test.want, ResolveUser(test.image, test.wanted, test.uid, test.gid), "%+v", test)
	}
}

func TestStartError(t *testing.T) {
	t.Parallel()

	l := berth.Launch{Command: []string{"/busy/x"}, Workdir: "/work/train.py/out"}

	for text, want := range map[string]berth.FailureKind{
		`OCI runtime create failed: exec: "/busy/x": executable file not found in $PATH: unknown`:   berth.FailureBadCommand,
		`exec: "/busy/x": stat /busy/x: no such file or directory: unknown`:                         berth.FailureBadCommand,
		`exec: "/busy/x": permission denied: unknown`:                                               berth.FailureBadCommand,
		`unable to find user nobody2: no matching entries in passwd file`:                           berth.FailureBadCommand,
		`chdir to cwd ("/work/train.py/out") set in config.json failed: permission denied: unknown`: berth.FailureBadCommand,
		`Cannot mkdir: /work/train.py/out is not a directory`:                                       berth.FailureBadCommand,
		`error during container init: mkdir /work/train.py/out: no such file or directory: unknown`: berth.FailureBadCommand,
		`the working directory '/work/train.py/out' is invalid, it needs to be an absolute path`:    berth.FailureBadCommand,
		`lstat /var/lib/docker/overlay2/d81e/merged/work/train.py/out: not a directory`:             berth.FailureBadCommand,
		`lstat /var/lib/docker/overlay2/d81e/merged/work/train.py: not a directory`:                 berth.FailureBadCommand,
		`lstat /var/lib/docker/overlay2/d81e/merged: not a directory`:                               berth.FailureInfra,
		`open /var/lib/docker/overlay2/work: is not a directory: unknown`:                           berth.FailureInfra,
		`error mounting "/data/in" to rootfs: no such file or directory: unknown`:                   berth.FailureInfra,
		`failed to create shim task: context deadline exceeded: unknown`:                            berth.FailureInfra,

		// A sick host, in the words of a bad command.
		`OCI runtime create failed: unable to retrieve OCI runtime error: fork/exec /usr/bin/runc: permission denied: unknown`: berth.FailureInfra,
		`failed to create shim task: exec: "runc": executable file not found in $PATH: unknown`:                                berth.FailureInfra,
		`exec: "/sbin/docker-init": stat /sbin/docker-init: no such file or directory: unknown`:                                berth.FailureInfra,
		`unable to apply apparmor profile: write /proc/self/attr/apparmor/exec: no such file or directory: unknown`:            berth.FailureInfra,
		`error creating overlay: /var/lib/docker/overlay2/1/merged: invalid argument: unknown`:                                 berth.FailureInfra,
		`open /sys/fs/cgroup/docker/1/cgroup.procs: is not a directory: unknown`:                                               berth.FailureInfra,
	} {
		var start *berth.StartError

		require.ErrorAs(t, startError(errors.New(text), "starting", "c", l), &start) //nolint:err113 // Docker's
		require.Equal(t, want, start.Kind, text)
	}
}

func TestTranslate(t *testing.T) {
	t.Parallel()

	ctx := t.Context()
	require.NoError(t, translate(ctx, nil, "x"))
	require.Equal(t, berth.KindUnavailable, berth.KindOf(translate(ctx, io.ErrUnexpectedEOF, "x")))
	require.Equal(t, berth.KindInternal, berth.KindOf(translate(ctx, os.ErrInvalid, "x")))

	tooNew := fmt.Errorf("client version 1.51 is too new. Maximum supported API version is 1.41: %w", cerrdefs.ErrInvalidArgument)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(translate(ctx, tooNew, "x")), "its version was not heard: ask again")
	require.Equal(t, berth.KindInvalid, berth.KindOf(translate(ctx, fmt.Errorf("no such option: %w", cerrdefs.ErrInvalidArgument), "x")))

	done, cancel := context.WithCancelCause(ctx)
	cause := errors.New("shutting down") //nolint:err113 // of the test
	cancel(cause)
	require.ErrorIs(t, translate(done, io.EOF, "x"), cause, "a done context keeps its cause")
}

func TestDaemonAway(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix://"+t.TempDir()+"/none.sock")

	d := setup(t)
	d.config.APITimeout = 300 * time.Millisecond

	for name, call := range map[string]func() error{
		"inspect": func() error { _, err := d.Inspect(t.Context(), "x"); return err },
		"list":    func() error { _, err := d.List(t.Context()); return err },
		"ensure":  func() error { _, err := d.Ensure(t.Context(), launch()); return err },
		"wait":    func() error { _, err := d.Wait(t.Context(), "x"); return err },
		"stop":    func() error { return d.Stop(t.Context(), "x", time.Second) },
		"info":    func() error { _, err := d.Info(t.Context()); return err },
		"logs": func() error {
			return d.Logs(t.Context(), "x", berth.LogPosition{}, true, func(berth.LogChunk) error { return nil })
		},
	} {
		err := call()
		require.Equal(t, berth.KindUnavailable, berth.KindOf(err), "%s: %v", name, err)
	}
}

// frame is one frame of Docker's log stream.
func frame(stream byte, at time.Time, data string) []byte {
	body := at.Format(time.RFC3339Nano) + " " + data
	head := []byte{stream, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[4:], uint32(len(body))) //nolint:gosec // small

	return append(head, body...)
}

// TestLogResume reads a log with a long line that shares one stamp, from every
// position a reader can stop at.
func TestLogResume(t *testing.T) {
	t.Parallel()

	base := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	log := bytes.Join([][]byte{
		frame(1, base, "first\n"),
		frame(2, base.Add(10), "bar 10%\r"),
		frame(1, base.Add(time.Second), "second\n"),
		frame(2, base.Add(10), "bar 20%\r"), // Docker keeps the stamp of the line's first piece
		frame(1, base.Add(2*time.Second), "third\n"),
		frame(2, base.Add(10), "bar 30%"), // as Docker 20.10 writes it; newer ones end the line
		frame(2, base.Add(3*time.Second), "done\n"),
		frame(1, base.Add(3*time.Second), "\x00\xff"),
	}, nil)

	read := func(from berth.LogPosition, limit int) (pieces []string, to berth.LogPosition) {
		to = from
		again := berth.LogResume{From: from}

		err := readFrames(bytes.NewReader(log), newStamper(), func(c berth.LogChunk) error {
			if again.Read(c) {
				return nil
			}

			if len(pieces) == limit {
				return io.EOF
			}

			pieces = append(pieces, c.Stream+" "+string(c.Data))
			to.Pass(c)

			return nil
		})
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
		}

		require.False(t, again.Lost)

		return pieces, to
	}

	all, _ := read(berth.LogPosition{}, 100)
	require.Len(t, all, 8)
	require.Equal(t, "stderr \ndone\n", all[6])

	for stop := range all {
		before, position := read(berth.LogPosition{}, stop)
		after, _ := read(position, 100)
		require.Equal(t, all, append(before, after...), "stopped after %d", stop)
	}
}

func TestMalformedLog(t *testing.T) {
	t.Parallel()

	for name, data := range map[string][]byte{
		"huge frame":  {1, 0, 0, 0, 0xff, 0, 0, 0},
		"bad stream":  {9, 0, 0, 0, 0, 0, 0, 1, 'x'},
		"no stamp":    {1, 0, 0, 0, 0, 0, 0, 1, 'x'},
		"cut header":  {1, 0},
		"cut payload": {1, 0, 0, 0, 0, 0, 0, 9, 'x'},
		"bad stamp":   {1, 0, 0, 0, 0, 0, 0, 3, 'x', ' ', 'y'},
	} {
		err := readFrames(bytes.NewReader(data), newStamper(), func(berth.LogChunk) error { return nil })
		require.Error(t, err, name)
	}
}

func FuzzReadFrames(f *testing.F) {
	f.Add(frame(1, time.Unix(1, 2).UTC(), "hello"))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := readFrames(bytes.NewReader(data), newStamper(), func(c berth.LogChunk) error {
			require.Contains(t, []string{berth.Stdout, berth.Stderr}, c.Stream)

			return nil
		})
		_ = fmt.Sprint(err)
	})
}

func TestInfoWarnings(t *testing.T) {
	t.Parallel()

	require.Empty(t, Info{LiveRestore: true, MemoryLimit: true, SwapLimit: true, PidsLimit: true}.warn())
	require.Len(t, Info{}.warn(), 3)
	require.Len(t, Info{MemoryLimit: true}.warn(), 3)
}

// What the user, else the image, has in PYTHONPATH stays there, behind ours.
func TestPythonPath(t *testing.T) {
	t.Parallel()

	image := berth.Image{Env: []string{"PATH=/bin", "PYTHONPATH=/app:/lib"}}

	for name, c := range map[string]struct {
		ours  string
		user  map[string]string
		image berth.Image
		want  string
	}{
		"nothing":                          {"", nil, berth.Image{}, ""},
		"the image's alone":                {"", nil, image, ""},
		"the user's alone":                 {"", map[string]string{"PYTHONPATH": "/mine"}, image, "PYTHONPATH=/mine"},
		"ours":                             {"/trial/shim", nil, berth.Image{}, "PYTHONPATH=/trial/shim"},
		"the image's behind":               {"/trial/shim", nil, image, "PYTHONPATH=/trial/shim:/app:/lib"},
		"the user's behind":                {"/trial/shim", map[string]string{"PYTHONPATH": "/mine"}, image, "PYTHONPATH=/trial/shim:/mine"},
		"the user wants it empty":          {"/trial/shim", map[string]string{"PYTHONPATH": ""}, image, "PYTHONPATH=/trial/shim"},
		"an image that sets it to nothing": {"/trial/shim", nil, berth.Image{Env: []string{"PYTHONPATH="}}, "PYTHONPATH=/trial/shim"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			l := launch()
			l.Environment = c.user
			if c.ours != "" {
				l.Shim = &berth.Shim{Source: "/data/shim/1", Target: c.ours, RecordsDir: "/data/r", Records: "/trial/shim-out/r"}
			}

			var got string
			for _, line := range containerConfig(l, c.image, "", nil).Env {
				if strings.HasPrefix(line, "PYTHONPATH=") {
					got = line
				}
			}

			require.Equal(t, c.want, got)
		})
	}
}

// The shim is no part of what identifies a launch.
func TestShim(t *testing.T) {
	t.Parallel()

	with := launch()
	with.Shim = &berth.Shim{Source: "/data/shim/1", Target: "/trial/shim", RecordsDir: "/data/r", Records: "/trial/shim-out/r"}

	require.Equal(t, specHash(launch()), specHash(with))
	require.Contains(t, containerConfig(with, berth.Image{}, "", nil).Env, "TRIAL_SHIM_FILE=/trial/shim-out/r")

	all := hostConfig(with, 2).Mounts
	require.Len(t, all, len(launch().Mounts)+2)

	files, records := all[len(all)-2], all[len(all)-1]
	require.Equal(t, []any{"/data/shim/1", "/trial/shim", true}, []any{files.Source, files.Target, files.ReadOnly})
	require.Equal(t, []any{"/data/r", "/trial/shim-out", false}, []any{records.Source, records.Target, records.ReadOnly})
}

// An image that has its own extensions, compiled when it was built, must find them there.
func TestDefaultsLeaveWhatTheImageSets(t *testing.T) {
	t.Parallel()

	l := launch()
	l.Defaults = map[string]string{"WANDB_MODE": "offline", "TORCH_EXTENSIONS_DIR": "/trial/cache/extensions", "USER": "trial", "LOGNAME": "trial"}
	image := berth.Image{Env: []string{"NVIDIA_VISIBLE_DEVICES=all", "WANDB_MODE=disabled", "TORCH_EXTENSIONS_DIR=/opt/extensions", "USER=app"}}

	env := containerConfig(l, image, "", nil).Env
	require.Contains(t, env, "LOGNAME=trial")
	require.Contains(t, env, "NVIDIA_VISIBLE_DEVICES=void", "that is Berth's to say")
	require.NotContains(t, env, "WANDB_MODE=offline")
	require.NotContains(t, env, "TORCH_EXTENSIONS_DIR=/trial/cache/extensions")
	require.NotContains(t, env, "USER=trial")
}
