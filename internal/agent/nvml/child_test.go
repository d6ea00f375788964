//go:build cgo && linux

package nvml

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berthml/berth/internal/agent/gpu"
)

const (
	patience = 30 * time.Second // for steps that take well under a second
	tick     = 5 * time.Millisecond

	// Environment of a child: the name of its test, the library, the directory by
	// which the library is steered (testdata/fake.c).
	childEnv   = "BERTH_NVML_CHILD"
	libraryEnv = "BERTH_NVML_LIBRARY"
	steerEnv   = "BERTH_FAKE_NVML"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if object.dir != "" {
			if err := os.RemoveAll(object.dir); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}

		os.Exit(code)
	}))
}

// object is the invented library, compiled and not yet linked.
var object struct {
	once sync.Once
	dir  string
	file string
	err  error
}

// compiled compiles the invented library, once. A machine without a C compiler
// cannot build this package either: the test fails and says what to install.
func compiled(t *testing.T) string {
	t.Helper()

	object.once.Do(func() {
		object.dir, object.err = os.MkdirTemp("", "berth-nvml") //nolint:usetesting // it serves all tests
		if object.err != nil {
			return
		}

		module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
		if err != nil {
			object.err = fmt.Errorf("finding go-nvml, whose nvml.h the library is made of: %w", err)

			return
		}

		object.file = filepath.Join(object.dir, "fake.o")
		object.err = cc(t, "-Wall", "-Werror", "-fPIC", "-O1", "-c", "-I", filepath.Join(strings.TrimSpace(string(module)), "pkg", "nvml"),
			"-o", object.file, filepath.Join("testdata", "fake.c"))
	})
	require.NoError(t, object.err)

	return object.file
}

func cc(t *testing.T, args ...string) error {
	t.Helper()

	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "gcc"
	}

	if _, err := exec.LookPath(compiler); err != nil {
		return fmt.Errorf("a C compiler is needed to make the library that this test reads: apt-get install gcc libc6-dev: %w", err)
	}

	if out, err := exec.CommandContext(t.Context(), compiler, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", compiler, args, err, out)
	}

	return nil
}

// library links the invented library without some of its functions.
func linked(t *testing.T, without ...string) string {
	t.Helper()

	dir := t.TempDir()
	path, script := filepath.Join(dir, defaultLibrary), filepath.Join(dir, "exports")

	local := ""
	for _, name := range without {
		local += " " + name + ";"
	}

	if local != "" {
		local = "local:" + local
	}

	require.NoError(t, os.WriteFile(script, []byte("{ global: nvml*; "+local+" };"), 0o600))
	require.NoError(t, cc(t, "-shared", "-Wl,-soname,"+defaultLibrary, "-Wl,--version-script="+script, "-o", path, compiled(t)))

	return path
}

// inChild runs the body in its own process, which a missing function would end: a
// library stays in its process, and the next one would be bound to it. The
// process has the invented library without some of its functions, with the given
// settings from the start.
func inChild(t *testing.T, without []string, steer map[string]string, body func(t *testing.T, f fake)) {
	t.Helper()

	if os.Getenv(childEnv) == t.Name() {
		body(t, fake{dir: os.Getenv(steerEnv)})

		return
	}

	if os.Getenv(childEnv) != "" {
		return // a child of another test that runs this one's parent
	}

	f := fake{dir: t.TempDir()}
	for name, text := range steer {
		f.set(t, name, text)
	}

	levels := strings.Split(t.Name(), "/")
	for i := range levels {
		levels[i] = "^" + regexp.QuoteMeta(levels[i]) + "$"
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	cmd := exec.CommandContext(ctx, os.Args[0], "-test.v", "-test.count=1", "-test.timeout=100s", "-test.run="+strings.Join(levels, "/"))
	// The race detector waits a second at the end of each process by default.
	cmd.Env = append(os.Environ(), "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0", childEnv+"="+t.Name(), steerEnv+"="+f.dir, libraryEnv+"="+linked(t, without...))

	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "the process ended with %d (127: a function was called that the library lacks)\n%s", cmd.ProcessState.ExitCode(), out)
	require.Contains(t, string(out), "--- PASS: "+t.Name(), "the child ran something else")
}

// fake steers the library of this process; see testdata/fake.c.
type fake struct{ dir string }

// set writes a file at a stroke.
func (f fake) set(t *testing.T, name, text string) {
	t.Helper()

	draft := filepath.Join(f.dir, "draft."+name)
	require.NoError(t, os.WriteFile(draft, []byte(text), 0o600))
	require.NoError(t, os.Rename(draft, filepath.Join(f.dir, name)))
}

func (f fake) clear(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, os.Remove(filepath.Join(f.dir, name)))
}

// send makes the library report an event, once it has reported the one before.
func (f fake) send(t *testing.T, card int, types, data uint64) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(f.dir, "event"))

		return os.IsNotExist(err)
	}, patience, tick)
	f.set(t, "event", fmt.Sprintf("%d %d %d", card, types, data))
}

// calls are the library's functions that were called, in order.
func (f fake) calls(t *testing.T) []string {
	t.Helper()

	data, err := os.ReadFile(filepath.Join(f.dir, "calls"))
	if os.IsNotExist(err) {
		return nil
	}

	require.NoError(t, err)

	return strings.Split(string(bytes.TrimSuffix(data, []byte("\n"))), "\n")
}

// count is how often a function was called.
func (f fake) count(t *testing.T, function string) int {
	t.Helper()

	n := 0

	for _, call := range f.calls(t) {
		if call == function {
			n++
		}
	}

	return n
}

// open opens the library of this process, and closes it after the test.
func open(t *testing.T, c Config) gpu.Driver {
	t.Helper()

	c.LibraryPath = os.Getenv(libraryEnv)
	d, err := Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })

	return d
}
