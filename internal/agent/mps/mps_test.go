package mps_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/mps"
)

const (
	gpuA = "GPU-aaaaaaaa-0000-0000-0000-000000000001"
	gpuB = "GPU-bbbbbbbb-0000-0000-0000-000000000002"

	patience = 60 * time.Second       // for steps that take well under a second
	haste    = 400 * time.Millisecond // for an answer that never comes
	tick     = 5 * time.Millisecond
)

// machine is a machine with the control program.
type machine struct {
	dir    string // of the daemons
	binary string
}

// setup makes a machine whose control program behaves as variant says. It ends
// the test's remaining processes.
func setup(t *testing.T, variant string) machine {
	t.Helper()

	root, err := os.MkdirTemp("", "mps") //nolint:usetesting // t.TempDir is too long for a socket's path
	require.NoError(t, err)

	self, err := os.Executable()
	require.NoError(t, err)

	m := machine{dir: filepath.Join(root, "d"), binary: filepath.Join(root, fakeName)}
	require.NoError(t, os.Symlink(self, m.binary))
	require.NoError(t, os.WriteFile(filepath.Join(root, "variant"), []byte(variant), 0o600))

	t.Cleanup(func() {
		require.Eventually(t, func() bool {
			left := m.processes(t)
			for _, pid := range left {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}

			return len(left) == 0
		}, patience, tick)
		require.NoError(t, os.RemoveAll(root))
	})

	return m
}

// processes returns the PIDs of the machine's control program.
func (m machine) processes(t *testing.T) []int {
	t.Helper()

	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)

	var pids []int

	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}

		line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if name, _, _ := strings.Cut(string(line), "\x00"); name == m.binary {
			pids = append(pids, pid)
		}
	}

	return pids
}

// worker opens MPS as one worker would, that waits timeout for an answer.
func (m machine) worker(t *testing.T, timeout time.Duration) *mps.MPS {
	t.Helper()

	opened, err := mps.Open(mps.Config{Dir: m.dir, Binary: m.binary, Timeout: timeout})
	require.NoError(t, err)

	return opened
}

// daemon returns the PID of the daemon behind a pipe directory.
func daemon(t *testing.T, pipe string) int {
	t.Helper()

	content, err := os.ReadFile(filepath.Join(pipe, fakeName+".pid"))
	require.NoError(t, err)

	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	require.NoError(t, err)

	return pid
}

// tell sends a daemon a command of the tests, and returns its output.
func tell(t *testing.T, pipe, command string) string {
	t.Helper()

	said, _, err := converse(pipe, command)
	require.NoError(t, err)

	return said
}

// runs reports whether a process runs, rather than waits to be reaped.
func runs(pid int) bool {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))

	return err == nil && len(line) > 0
}

func kill(t *testing.T, pid int) {
	t.Helper()

	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.Eventually(t, func() bool { return !runs(pid) }, patience, tick)
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()

	info, err := os.Lstat(path)
	require.NoError(t, err)

	return info.Mode().Perm()
}

func started(t *testing.T, pipe string) []string {
	t.Helper()

	args, err := os.ReadFile(filepath.Join(filepath.Dir(pipe), "log", "args"))
	require.NoError(t, err)

	return strings.Split(strings.TrimSpace(string(args)), "\n")
}

func TestOpen_NotInstalled(t *testing.T) {
	t.Parallel()

	_, err := mps.Open(mps.Config{Dir: t.TempDir(), Binary: filepath.Join(t.TempDir(), fakeName)})
	require.ErrorIs(t, err, mps.ErrNotInstalled)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))

	_, err = mps.Open(mps.Config{})
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
}

func TestStart_StartsADaemonForOneGPUAndAnyUser(t *testing.T) {
	t.Parallel()

	m := setup(t, "")
	w := m.worker(t, patience)

	require.Equal(t, berth.KindUnavailable, berth.KindOf(w.Check(t.Context(), gpuA)))
	require.NoError(t, w.Start(t.Context(), gpuA))
	require.NoError(t, w.Check(t.Context(), gpuA))

	pipe := w.Pipe(gpuA)
	require.Equal(t, filepath.Join(m.dir, "aaaaaaaa", "pipe"), pipe)
	require.Equal(t, []string{"-d -multiuser-server"}, started(t, pipe))

	pid := daemon(t, pipe)
	environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	require.NoError(t, err)

	var cuda []string

	for variable := range strings.SplitSeq(string(environ), "\x00") {
		if strings.HasPrefix(variable, "CUDA_") {
			cuda = append(cuda, variable)
		}
	}

	require.ElementsMatch(t, []string{
		"CUDA_VISIBLE_DEVICES=" + gpuA,
		"CUDA_MPS_PIPE_DIRECTORY=" + pipe,
		"CUDA_MPS_LOG_DIRECTORY=" + filepath.Join(m.dir, "aaaaaaaa", "log"),
	}, cuda)

	require.Equal(t, fs.FileMode(0o777), mode(t, pipe))

	for _, name := range []string{"control", "log", fakeName + ".pid"} {
		require.Equal(t, fs.FileMode(0o666), mode(t, filepath.Join(pipe, name)), name)
	}

	require.Equal(t, fs.FileMode(0o700), mode(t, filepath.Join(pipe, "control_privileged")), "no container may end the daemon")

	require.NotEqual(t, session(t, os.Getpid()), session(t, pid), "a signal of the worker's terminal must not reach the daemon")
}

// session is the sixth field of a process' stat.
func session(t *testing.T, pid int) string {
	t.Helper()

	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	require.NoError(t, err)

	_, after, found := strings.Cut(string(stat), ") ")
	require.True(t, found)

	return strings.Fields(after)[3]
}

func TestStart_TakesOverTheDaemonOfTheWorkerBefore(t *testing.T) {
	t.Parallel()

	m := setup(t, "")
	first := m.worker(t, patience)
	require.NoError(t, first.Start(t.Context(), gpuA))

	pid := daemon(t, first.Pipe(gpuA))
	tell(t, first.Pipe(gpuA), "client 10 42")

	// A file that a container left must not lead the next worker elsewhere.
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, nil, 0o600))
	require.NoError(t, os.Symlink(secret, filepath.Join(first.Pipe(gpuA), "link")))

	second := m.worker(t, patience)
	require.Equal(t, first.Pipe(gpuA), second.Pipe(gpuA))
	require.NoError(t, second.Start(t.Context(), gpuA))
	require.NoError(t, second.Start(t.Context(), gpuA))

	require.Equal(t, pid, daemon(t, second.Pipe(gpuA)))
	require.Len(t, started(t, second.Pipe(gpuA)), 1)
	require.Equal(t, fs.FileMode(0o600), mode(t, secret))

	clients, err := second.Clients(t.Context(), gpuA)
	require.NoError(t, err)
	require.Equal(t, []int{42}, clients)
}

func TestStart_AtOnceStartsOneDaemon(t *testing.T) {
	t.Parallel()

	m := setup(t, "")
	w := m.worker(t, patience)

	var group errgroup.Group
	for range 4 {
		group.Go(func() error { return w.Start(t.Context(), gpuA) })
		group.Go(func() error { return w.Start(t.Context(), gpuB) })
	}

	require.NoError(t, group.Wait())
	require.Len(t, started(t, w.Pipe(gpuA)), 1)
	require.Len(t, started(t, w.Pipe(gpuB)), 1)
	require.NotEqual(t, daemon(t, w.Pipe(gpuA)), daemon(t, w.Pipe(gpuB)))

	tell(t, w.Pipe(gpuA), "client 10 42")

	clients, err := w.Clients(t.Context(), gpuB)
	require.NoError(t, err)
	require.Nil(t, clients, "a client of one GPU is none of the other")
}

func TestStart_AnOldProgramRunsWithoutMultiuser(t *testing.T) {
	t.Parallel()

	w := setup(t, "old").worker(t, patience)
	require.NoError(t, w.Start(t.Context(), gpuA))
	require.NoError(t, w.Check(t.Context(), gpuA))
	require.Equal(t, []string{"-d -multiuser-server", "-d"}, started(t, w.Pipe(gpuA)))
}

func TestStart_SaysWhatTheProgramSaid(t *testing.T) {
	t.Parallel()

	for variant, words := range map[string]string{"mute": fakeMute, "dies": fakeDying} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()

			m := setup(t, variant)
			patient, hasty := m.worker(t, patience), m.worker(t, haste)

			// What an earlier daemon said is not the reason.
			log := filepath.Join(filepath.Dir(patient.Pipe(gpuA)), "log")
			require.NoError(t, os.MkdirAll(log, 0o750))
			require.NoError(t, os.WriteFile(filepath.Join(log, "control.log"), []byte("of yesterday\n"), 0o600))

			w := hasty // a daemon that died is waited for
			if variant == "mute" {
				w = patient
			}

			err := w.Start(t.Context(), gpuA)
			require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
			require.ErrorContains(t, err, words)
			require.ErrorContains(t, err, gpuA)
			require.NotContains(t, err.Error(), "of yesterday")
			require.Equal(t, []string{"-d -multiuser-server"}, started(t, w.Pipe(gpuA)), "it is not an old program")
		})
	}
}

func TestStart_AfterADaemonThatDied(t *testing.T) {
	t.Parallel()

	m := setup(t, "")
	w := m.worker(t, patience)
	require.NoError(t, w.Start(t.Context(), gpuA))
	require.NoError(t, w.Start(t.Context(), gpuB))

	pipe := w.Pipe(gpuA)
	pidFile := filepath.Join(pipe, fakeName+".pid")

	for name, leave := range map[string]func(){
		"its own number": func() {},
		"the number of another program": func() {
			require.NoError(t, os.WriteFile(pidFile, []byte(strconv.Itoa(os.Getpid())), 0o600))
		},
		"the number of another GPU's daemon": func() {
			require.NoError(t, os.WriteFile(pidFile, []byte(strconv.Itoa(daemon(t, w.Pipe(gpuB)))), 0o600))
		},
		"no number": func() { require.NoError(t, os.WriteFile(pidFile, []byte("?"), 0o600)) },
		"a pipe": func() {
			require.NoError(t, os.Remove(pidFile))
			require.NoError(t, syscall.Mkfifo(pidFile, 0o600))
			require.NoError(t, os.MkdirAll(filepath.Join(pipe, "directory", "of a container"), 0o750))
		},
	} {
		dead := daemon(t, pipe)
		kill(t, dead)
		require.Error(t, w.Check(t.Context(), gpuA), name)
		leave()

		require.NoError(t, w.Start(t.Context(), gpuA), name)
		require.NoError(t, w.Check(t.Context(), gpuA), name)
		require.NotEqual(t, dead, daemon(t, pipe), name)
		require.NoDirExists(t, filepath.Join(pipe, "directory"), name)
	}
}

func TestAWedgedDaemonHangsNoCaller(t *testing.T) {
	t.Parallel()

	m := setup(t, "")
	w := m.worker(t, patience)
	require.NoError(t, w.Start(t.Context(), gpuA))
	require.NoError(t, w.Start(t.Context(), gpuB))

	pid := daemon(t, w.Pipe(gpuA))
	tell(t, w.Pipe(gpuA), "hang")

	hasty := m.worker(t, haste)

	err := hasty.Check(t.Context(), gpuA)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
	require.ErrorContains(t, err, gpuA)
	require.ErrorContains(t, err, "get_default_active_thread_percentage")

	_, err = hasty.Clients(t.Context(), gpuA)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
	require.ErrorContains(t, err, "get_server_list")

	require.Equal(t, berth.KindUnavailable, berth.KindOf(hasty.Stop(t.Context(), gpuA)))

	// Clients may still work with it: no second daemon, and its files stay.
	err = hasty.Start(t.Context(), gpuA)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
	require.ErrorContains(t, err, "kill "+strconv.Itoa(pid))
	require.Equal(t, pid, daemon(t, w.Pipe(gpuA)))
	require.True(t, runs(pid))
	require.Len(t, started(t, w.Pipe(gpuA)), 1)

	// A caller that waits its turn behind the question that hangs goes when its
	// context does; the other GPU waits for neither.
	over := errors.New("the worker ends")
	ctx, cancel := context.WithCancelCause(t.Context())

	var group errgroup.Group
	for range 2 {
		group.Go(func() error {
			if err := w.Check(ctx, gpuA); !errors.Is(err, over) {
				return errors.Join(errors.New("not ended by its context"), err)
			}

			return nil
		})
	}

	require.NoError(t, w.Check(t.Context(), gpuB))
	cancel(over)
	require.NoError(t, group.Wait())

	// Once a person ended it, all is well again.
	kill(t, pid)
	require.NoError(t, w.Start(t.Context(), gpuA))
}

func TestClients(t *testing.T) {
	t.Parallel()

	w := setup(t, "").worker(t, patience)

	_, err := w.Clients(t.Context(), gpuA)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))

	require.NoError(t, w.Start(t.Context(), gpuA))

	clients, err := w.Clients(t.Context(), gpuA)
	require.NoError(t, err)
	require.Nil(t, clients)

	for _, client := range []string{"10 7", "10 300", "10 42", "11 100", "11 8"} {
		tell(t, w.Pipe(gpuA), "client "+client)
	}

	tell(t, w.Pipe(gpuA), "ghost 12")
	tell(t, w.Pipe(gpuA), "busy 3") // it is asked again

	clients, err = w.Clients(t.Context(), gpuA)
	require.NoError(t, err)
	require.Equal(t, []int{7, 8, 42, 100, 300}, clients)
}

// A daemon is stopped once no client uses it, as far as can be read.
func TestStop(t *testing.T) {
	t.Parallel()

	w := setup(t, "").worker(t, patience)
	require.NoError(t, w.Stop(t.Context(), gpuA), "none was there")
	require.NoError(t, w.Start(t.Context(), gpuA))

	pipe := w.Pipe(gpuA)
	pid := daemon(t, pipe)
	tell(t, pipe, "client 10 42")
	require.NoError(t, w.Stop(t.Context(), gpuA))
	require.True(t, runs(pid))
	require.NotContains(t, tell(t, pipe, "heard"), "quit")

	tell(t, pipe, "terminate_client 10 42")
	require.NoError(t, w.Stop(t.Context(), gpuA))
	require.False(t, runs(pid))
	require.Error(t, w.Check(t.Context(), gpuA))
	require.NoError(t, w.Stop(t.Context(), gpuA))

	require.NoError(t, w.Start(t.Context(), gpuA), "over the sockets that the last one left")

	pid = daemon(t, pipe)
	tell(t, pipe, "client 10 42")
	tell(t, pipe, "garbage")

	err := w.Stop(t.Context(), gpuA)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
	require.ErrorContains(t, err, "Server is busy")
	require.True(t, runs(pid))
}

func TestStart_RefusesWhatCannotWork(t *testing.T) {
	t.Parallel()

	m := setup(t, "")

	// The longest path that fits, and one byte more.
	room := 107 - len("/aaaaaaaa/pipe/control_privileged") - len(m.dir) - 1
	fits, long := m, m
	fits.dir = filepath.Join(m.dir, strings.Repeat("d", room))
	long.dir = filepath.Join(m.dir, strings.Repeat("d", room+1))

	require.NoError(t, fits.worker(t, patience).Start(t.Context(), gpuA))

	err := long.worker(t, patience).Start(t.Context(), gpuA)
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	require.ErrorContains(t, err, "108 bytes")
	require.ErrorContains(t, err, "at least 1 bytes shorter")
	require.NoDirExists(t, long.dir)

	for _, uuid := range []string{"", "GPU-", "../../etc", "GPU-aaaaaaaa/../..", "0"} {
		err := m.worker(t, patience).Start(t.Context(), uuid)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err), uuid)
		require.Equal(t, filepath.Join(m.dir, "unknown", "pipe"), m.worker(t, patience).Pipe(uuid))
	}
}
