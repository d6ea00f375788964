package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

const (
	argparseScript = "import argparse\np = argparse.ArgumentParser()\np.parse_args()\n"
	foundFlags     = driverMark + `{"framework": "argparse", "flags": [{"names": ["--lr"], "dest": "lr", "type": "float", "form": "value", "default": 0.1}]}` + "\n"
)

// initFixture is a script x.py in its own directory, and a Docker that answers looks.
type initFixture struct {
	*fakeDocker

	dir string
}

func newInit(t *testing.T, text string, looked berth.Looked) *initFixture {
	t.Helper()

	f := &initFixture{dir: t.TempDir(), fakeDocker: &fakeDocker{
		facts:  map[string]berth.Image{"mine:1": {OS: "linux", Architecture: "amd64", User: "root"}},
		looked: func(berth.Look) (berth.Looked, error) { return looked, nil },
	}}
	f.write(t, "x.py", text)

	return f
}

func (f *initFixture) write(t *testing.T, name, text string) {
	t.Helper()

	path := filepath.Join(f.dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func (f *initFixture) read(t *testing.T, name string) string {
	t.Helper()

	text, err := os.ReadFile(filepath.Join(f.dir, name))
	require.NoError(t, err)

	return string(text)
}

func (f *initFixture) init(t *testing.T, name string, args ...string) outcome {
	t.Helper()

	return f.run(t, append([]string{"init", filepath.Join(f.dir, name), "--image", "mine:1", "-o", filepath.Join(f.dir, "s.yaml")}, args...)...)
}

// A look that found no flags is not taken for a script that has none.
func TestInit_NoFlagsForAReason(t *testing.T) {
	t.Parallel()

	f := newInit(t, argparseScript, berth.Looked{TimedOut: true})
	got := f.init(t, "x.py")
	require.Equal(t, ExitTimeout, got.code)
	require.Contains(t, got.stderr, "--timeout 10m")

	f = newInit(t, argparseScript, berth.Looked{ExitCode: 139, Stderr: []byte("Fatal\x1b[31m fault")})
	got = f.init(t, "x.py")
	require.Equal(t, ExitError, got.code)
	require.Contains(t, got.stderr, "ended (exit code 139) before it asked for its flags, without a word to Python; its last output: Fatal [31m fault")

	f = newInit(t, argparseScript, berth.Looked{Stdout: []byte(driverMark + `{"ended": "the script parses a list of its own"}` + "\n")})
	got = f.init(t, "x.py")
	require.Equal(t, ExitOK, got.code, got.stderr)
	require.Contains(t, got.stdout, "No flags were found: the script parses a list of its own.")
	require.Contains(t, got.stdout, "FILL IN what to search: as it is,")

	f = newInit(t, "import fire\n", berth.Looked{})
	got = f.init(t, "x.py")
	require.Equal(t, ExitOK, got.code, got.stderr)
	require.Empty(t, f.looks, "it would train")
	require.Contains(t, f.read(t, "s.yaml"), "# FILL IN: nothing is searched yet.")
	require.Contains(t, f.read(t, "s.yaml"), "metric: REPLACE-ME")
}

func TestInit_FindsModules(t *testing.T) {
	t.Parallel()

	// In packages without __init__.py, behind a link.
	f := newInit(t, "from src.conf.opts import get\nimport a, near\nget()\n", berth.Looked{Stdout: []byte(foundFlags)})
	f.write(t, "src/conf/opts.py", argparseScript)
	f.write(t, "near.py", "")
	require.NoError(t, os.Mkdir(filepath.Join(f.dir, "proj"), 0o700))
	require.NoError(t, os.Symlink("../x.py", filepath.Join(f.dir, "proj/x.py")))

	require.Equal(t, ExitOK, f.init(t, "proj/x.py").code)
	require.Contains(t, f.read(t, "Dockerfile"), "COPY [\"near.py\", \"/app/\"]\nCOPY [\"src\", \"/app/src/\"]\n")

	dir, err := filepath.EvalSymlinks(f.dir)
	require.NoError(t, err)
	require.Len(t, f.looks, 1, "a module reads the flags")
	require.Equal(t, dir, f.looks[0].Mounts[0].Source)
}

func TestInit_Writes(t *testing.T) {
	t.Parallel()

	f := newInit(t, argparseScript, berth.Looked{Stdout: []byte(foundFlags)})
	require.Equal(t, ExitOK, f.init(t, "x.py").code)
	require.Contains(t, f.read(t, "Dockerfile"), "FROM mine:1\n")
	require.Contains(t, f.read(t, "s.yaml"), "  - {name: lr, type: float, min: 0.003, max: 1, log: true, default: 0.1}\n")

	// init keeps an existing Dockerfile: a person wrote it.
	f.write(t, "Dockerfile", "FROM other\n")
	got := f.init(t, "x.py", "--force")
	require.Equal(t, ExitOK, got.code, got.stderr)
	require.Equal(t, "FROM other\n", f.read(t, "Dockerfile"))
	require.Contains(t, got.stdout, "it must have `WORKDIR /app` and copy x.py there")

	// Without the directory of the sweep file nothing is written.
	f = newInit(t, argparseScript, berth.Looked{Stdout: []byte(foundFlags)})
	got = f.init(t, "x.py", "-o", filepath.Join(f.dir, "no/s.yaml"))
	require.Equal(t, ExitError, got.code)
	require.NoFileExists(t, filepath.Join(f.dir, "Dockerfile"))
}

// Without an image init looks into the base image, and installs the missing packages.
func TestInit_WithoutAnImage(t *testing.T) {
	t.Parallel()

	trouble := driverMark + `{"error": "x.py:2: TypeError: no", "stubbed": ["PIL"]}` + "\n"
	f := newInit(t, argparseScript, berth.Looked{Stdout: []byte(strings.Replace(foundFlags, `"flags"`, `"stubbed": ["PIL", "ours"], "flags"`, 1))})
	init := func() outcome {
		return f.run(t, "init", filepath.Join(f.dir, "x.py"), "--base", "mine:1", "-o", filepath.Join(f.dir, "s.yaml"))
	}

	got := init()
	require.Equal(t, ExitOK, got.code, got.stderr)
	require.Contains(t, got.stdout, "made up for this look: PIL, ours")
	require.Contains(t, f.read(t, "Dockerfile"), "pip install --no-cache-dir pillow\n")

	f = newInit(t, argparseScript, berth.Looked{Stdout: []byte(trouble)})
	got = init()
	require.Equal(t, ExitError, got.code)
	require.Contains(t, got.stderr, "needs its libraries before it says its flags (x.py:2: TypeError: no). Build the image")
	require.Contains(t, f.read(t, "Dockerfile"), "pillow")
	require.NoFileExists(t, filepath.Join(f.dir, "s.yaml"))

	got = f.run(t, "init", filepath.Join(f.dir, "x.py"), "--base", "absent:1")
	require.Equal(t, ExitNotFound, got.code)
	require.Contains(t, got.stderr, "docker pull absent:1")
}

// A command that a message tells to type names a script with a space in its path.
func TestInit_CommandsOfMessagesAreQuoted(t *testing.T) {
	t.Parallel()

	f := newInit(t, argparseScript, berth.Looked{Stdout: []byte(foundFlags)})
	f.write(t, "it's <mine>/my train.py", argparseScript)

	file := filepath.Join(f.dir, "my sweep.yaml")
	out := f.run(t, "init", filepath.Join(f.dir, "it's <mine>", "my train.py"), "--image", "mine:1", "-o", file)
	require.Zero(t, out.code, out.stderr)

	commands := regexp.MustCompile(`(?m)^  (docker build .*)\n  (berth sweep submit .*)$`).FindStringSubmatch(out.stdout)
	require.NotNil(t, commands, out.stdout)
	image := words(t, commands[1])[3]
	require.Regexp(t, "^it-s-mine-my-train-[0-9a-f]{4}:1$", image)
	require.Equal(t, []string{"docker", "build", "-t", image, filepath.Join(f.dir, "it's <mine>")}, words(t, commands[1]))
	require.Equal(t, []string{"berth", "sweep", "submit", "-f", file, "--wait"}, words(t, commands[2]))
}

func TestInit_EachProjectHasAnImageOfItsOwn(t *testing.T) {
	t.Parallel()

	images := make(map[string]bool)

	for _, project := range []string{"mnist", "cifar"} {
		f := newInit(t, argparseScript, berth.Looked{Stdout: []byte(foundFlags)})
		script := filepath.Join(f.dir, project, "src", "train.py")
		f.write(t, project+"/src/train.py", argparseScript)

		out := f.run(t, "init", script, "--image", "mine:1", "-o", filepath.Join(f.dir, project+".yaml"))
		require.Zero(t, out.code, out.stderr)

		image := regexp.MustCompile(`docker build -t (\S+)`).FindStringSubmatch(out.stdout)
		require.NotNil(t, image, out.stdout)

		images[image[1]] = true
	}

	require.Len(t, images, 2)
}

// words returns a shell's words of a command.
func words(t *testing.T, command string) []string {
	t.Helper()

	out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+command).Output()
	require.NoError(t, err, command)

	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}
