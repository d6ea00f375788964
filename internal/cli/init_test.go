package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/script"
)

const (
	argparseScript = "import argparse\np = argparse.ArgumentParser()\np.parse_args()\n"
	foundFlags     = driverMark + `{"look": {}}` + driverMark + `{"framework": "argparse", "flags": [{"names": ["--lr"], "dest": "lr", "type": "float", "form": "value", "default": 0.1}]}` + "\n"
)

// initFixture is a script x.py in a directory of its own, and a Docker that answers looks.
type initFixture struct {
	*fakeDocker

	dir string
}

func newInit(t *testing.T, text string, looked berth.Looked) *initFixture {
	t.Helper()

	f := &initFixture{dir: t.TempDir(), fakeDocker: &fakeDocker{
		facts:  map[string]berth.ImageFacts{"mine:1": {OS: "linux", Architecture: "amd64", User: "root"}},
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

// told is what the driver of the first look was told.
func (f *initFixture) told(t *testing.T) (o script.Options) {
	t.Helper()

	command := f.looks[0].Command
	require.NoError(t, json.Unmarshal([]byte(command[len(command)-1]), &o))

	return o
}

// A look that found no flags is not taken for a script that has none.
func TestInit_NoFlagsForAReason(t *testing.T) {
	t.Parallel()

	f := newInit(t, "import optparse\n", berth.Looked{})
	f.looked = func(l berth.Look) (berth.Looked, error) {
		if l.Command[len(l.Command)-1] == "--help" {
			return berth.Looked{TimedOut: true}, nil
		}

		return berth.Looked{Stdout: []byte(driverMark + `{"look": {}}` + "\n")}, nil
	}
	require.Equal(t, ExitTimeout, f.init(t, "x.py").code)

	f = newInit(t, argparseScript, berth.Looked{ExitCode: 139, Stderr: []byte("Fatal\x1b[31m fault"), Stdout: []byte(driverMark + `{"look": {}}` + "\n")})
	got := f.init(t, "x.py")
	require.Equal(t, ExitError, got.code)
	require.Contains(t, got.stderr, "ended (exit code 139) before it asked for its flags, without a word to Python; its last output: Fatal [31m fault")

	f = newInit(t, argparseScript, berth.Looked{Stdout: append([]byte(driverMark+`{"look": {}}`+"\n"), bytes.Repeat([]byte("x"), berth.MaxLookBytes)...)})
	require.Equal(t, ExitError, f.init(t, "x.py").code)

	f = newInit(t, argparseScript, berth.Looked{Stdout: []byte(driverMark + `{"ended": "own arguments"}` + "\n")})
	got = f.init(t, "x.py")
	require.Equal(t, ExitOK, got.code, got.stderr)
	require.Contains(t, got.stdout, "parses a list of its own")
	require.Len(t, f.looks, 1, "with --help it would train")
}

func TestInit_FindsModules(t *testing.T) {
	t.Parallel()

	// In packages without __init__.py, behind a link, and each of them may be stale in an image.
	f := newInit(t, "from src.conf.opts import get\nimport a, near\nget()\n", berth.Looked{Stdout: []byte(foundFlags)})
	f.write(t, "src/conf/opts.py", argparseScript)
	f.write(t, "near.py", "")
	require.NoError(t, os.Mkdir(filepath.Join(f.dir, "proj"), 0o700))
	require.NoError(t, os.Symlink("../x.py", filepath.Join(f.dir, "proj/x.py")))

	require.Equal(t, ExitOK, f.init(t, "proj/x.py").code)
	require.Contains(t, f.read(t, "Dockerfile"), "COPY [\"near.py\", \"/app/\"]\nCOPY [\"src\", \"/app/src/\"]\n")

	dir, err := filepath.EvalSymlinks(f.dir)
	require.NoError(t, err)
	require.Equal(t, dir, f.looks[0].Mounts[0].Source)

	sum := sha256.Sum256([]byte(argparseScript))
	told := f.told(t)
	require.True(t, told.Run)
	require.Equal(t, 1, told.Parses)
	require.Equal(t, hex.EncodeToString(sum[:]), told.Modules["src/conf/opts.py"])
	require.Contains(t, told.Modules, "near.py")
}

// An image with other modules does not have the script: a build comes first.
func TestInit_AnImageThatIsStale(t *testing.T) {
	t.Parallel()

	stale := strings.Replace(foundFlags, `"look": {}`, `"look": {"differs": "/app/x.py"}`, 1)
	f := newInit(t, argparseScript, berth.Looked{Stdout: []byte(stale)})
	f.write(t, "Dockerfile", "FROM mine:1\nCOPY x.py /app/\n")

	got := f.init(t, "x.py")
	require.Equal(t, ExitOK, got.code, got.stderr)
	require.Contains(t, got.stdout, "or other modules beside it")
	require.Contains(t, got.stdout, "docker build -t ")
}

// Defaults below the look's directories are where the script is in its image.
func TestInit_PathsOfTheLook(t *testing.T) {
	t.Parallel()

	f := newInit(t, argparseScript, berth.Looked{Stdout: []byte(driverMark + `{"framework": "argparse", "flags": [` +
		`{"names": ["--data"], "dest": "data", "type": "str", "form": "value", "default": "/tmp/berth-script/data"},` +
		`{"names": ["--top"], "dest": "top", "type": "str", "form": "value", "default": "/berth/script"}]}` + "\n")})
	require.Equal(t, ExitOK, f.init(t, "x.py").code)
	require.Contains(t, f.read(t, "s.yaml"), "{name: data, type: fixed, value: /app/data}")
	require.Contains(t, f.read(t, "s.yaml"), "{name: top, type: fixed, value: /app}")
}

func TestInit_Writes(t *testing.T) {
	t.Parallel()

	f := newInit(t, argparseScript, berth.Looked{Stdout: []byte(foundFlags)})
	require.Equal(t, ExitOK, f.init(t, "x.py").code)

	// What a person added to the Dockerfile stays.
	f.write(t, "Dockerfile", strings.Replace(f.read(t, "Dockerfile"), "USER 65532", "COPY data/ /app/data/\nUSER 65532", 1))
	got := f.init(t, "x.py", "--force")
	require.Equal(t, ExitOK, got.code, got.stderr)
	require.Contains(t, f.read(t, "Dockerfile"), "\nCOPY data/ /app/data/\n")

	// Without the directory of the sweep file nothing is written.
	f = newInit(t, argparseScript, berth.Looked{Stdout: []byte(foundFlags)})
	got = f.init(t, "x.py", "-o", filepath.Join(f.dir, "no/s.yaml"))
	require.Equal(t, ExitUsage, got.code)
	require.NoFileExists(t, filepath.Join(f.dir, "Dockerfile"))

	// What to type has the flags that were typed.
	f = newInit(t, argparseScript, berth.Looked{TimedOut: true})
	require.Contains(t, f.init(t, "x.py").stderr, "--image mine:1 -o "+filepath.Join(f.dir, "s.yaml")+" --timeout 10m")
}
