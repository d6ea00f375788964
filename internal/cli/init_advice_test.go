package cli

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// A script is a module of a package. The message says what to write, in backquotes; who writes
// that and types `berth init` with it gets an image with the package.
func TestInit_WhatAPackageIsToldToWriteWorks(t *testing.T) {
	t.Parallel()

	relative := driverMark + `{"error": {"type": "ImportError", "message": "attempted relative import with no known parent package", "place": "train.py:2", "module": ""}}` + "\n"
	f := newInit(t, "", berth.Looked{Stdout: []byte(relative)})
	f.write(t, "pkg/__init__.py", "")
	f.write(t, "pkg/train.py", "import argparse\nfrom .model import f\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float, default=0.1)\np.parse_args()\n")
	f.write(t, "pkg/model.py", "def f(): pass\n")

	out := f.init(t, "pkg/train.py")
	told := regexp.MustCompile("such as (run_\\w+\\.py) with `([^`]+)`").FindStringSubmatch(out.stderr)
	require.NotNil(t, told, out.stderr)

	f.write(t, told[1], told[2]+"\n")

	f.looked = func(berth.Look) (berth.Looked, error) { return berth.Looked{Stdout: []byte(foundFlags)}, nil }
	out = f.init(t, told[1])
	require.Zero(t, out.code, out.stderr)
	require.Contains(t, f.read(t, "Dockerfile"), `COPY ["pkg", "/app/pkg/"]`, "or every trial ends with ModuleNotFoundError: No module named 'pkg'")
	require.True(t, f.toldLast(t).Run, "the script is run until it asks for its flags")
}

func (f *initFixture) toldLast(t *testing.T) (o struct{ Run bool }) {
	t.Helper()

	f.looks = f.looks[len(f.looks)-1:]
	o.Run = f.told(t).Run

	return o
}

// The image that was named lacks fire. argparse's and click's scripts are told which module is
// missing; this one is told that it has no flags, and gets a sweep file of which every trial fails.
func TestInit_AMissingModuleIsNoLackOfFlags(t *testing.T) {
	t.Parallel()

	f := newInit(t, "import fire\ndef train(lr=0.1):\n    print('val_loss=', lr)\nif __name__ == '__main__':\n    fire.Fire(train)\n", berth.Looked{})
	f.looked = func(berth.Look) (berth.Looked, error) {
		if len(f.looks) == 1 {
			return berth.Looked{Stdout: []byte(driverMark + `{"look": {}}` + "\n")}, nil
		}

		return berth.Looked{ExitCode: 1, Stderr: []byte("Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n    import fire\nModuleNotFoundError: No module named 'fire'\n")}, nil
	}

	out := f.init(t, "x.py")
	require.Contains(t, out.stdout+out.stderr, "lacks the module fire", out.stdout)
	require.NotZero(t, out.code)
}

// The commonest Dockerfile of all copies the script without naming it.
func TestInit_ADockerfileThatCopiesAllHasTheScript(t *testing.T) {
	t.Parallel()

	f := newInit(t, argparseScript, berth.Looked{Stdout: []byte(foundFlags)})
	f.write(t, "Dockerfile", "FROM python:3.11-slim\nWORKDIR /app\nCOPY . .\n")

	out := f.init(t, "x.py")
	require.Zero(t, out.code, out.stderr)
	require.NotContains(t, out.stdout, "add `COPY x.py /app/` to it")
	require.Contains(t, f.read(t, "s.yaml"), "/app/x.py")
}

// A Dockerfile of one's own has another WORKDIR. The sweep file says where the script is, or
// init says that it does not know; not that it is at /app.
func TestInit_TheScriptIsWhereTheDockerfilePutsIt(t *testing.T) {
	t.Parallel()

	f := newInit(t, argparseScript, berth.Looked{Stdout: []byte(foundFlags)})
	f.write(t, "Dockerfile", "FROM python:3.11-slim\nWORKDIR /workspace\nCOPY x.py ./\n")

	out := f.init(t, "x.py")
	require.Zero(t, out.code, out.stderr)

	require.Contains(t, f.read(t, "s.yaml"), "  - /workspace/x.py\n")
	require.NotContains(t, f.read(t, "s.yaml"), "workdir:", "the image's own")

	f.write(t, "Dockerfile", "FROM python:3.11-slim\nCOPY x.py ./\n")

	out = f.init(t, "x.py", "--force")
	require.Zero(t, out.code, out.stderr)
	require.Contains(t, out.stdout, "where it puts x.py cannot be told; the sweep file has /app/x.py")
}

// words are what a shell makes of a command.
func words(t *testing.T, command string) []string {
	t.Helper()

	out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\n' `+command).Output()
	require.NoError(t, err, command)

	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// A script with a space in its name: the command that a message tells to type, typed, names
// that script. buildCommand quotes; again, and what comes after init, must, too.
func TestInit_CommandsOfMessagesAreQuoted(t *testing.T) {
	t.Parallel()

	t.Run("again", func(t *testing.T) {
		t.Parallel()

		run := initiation{script: "my train.py", base: defaultBase, output: "sweep.yaml", trials: 20, timeout: lookTimeout}
		require.Equal(t, []string{"berth", "init", "my train.py", "--force"}, words(t, run.again("--force")))
	})

	t.Run("build", func(t *testing.T) {
		t.Parallel()

		run := initiation{script: "it's <mine>/train.py", source: &source{path: "/x/train.py", dir: "/x/it's <mine>"}}
		require.Equal(t, []string{"docker", "build", "-t", "x-train:1", "/x/it's <mine>"}, words(t, run.buildCommand()))
	})

	t.Run("submit", func(t *testing.T) {
		t.Parallel()

		f := newInit(t, argparseScript, berth.Looked{Stdout: []byte(foundFlags)})
		file := filepath.Join(f.dir, "my sweep.yaml")
		out := f.run(t, "init", filepath.Join(f.dir, "x.py"), "--image", "mine:1", "-o", file)
		require.Zero(t, out.code, out.stderr)

		submit := regexp.MustCompile(`(?m)^  (berth sweep submit .*)$`).FindStringSubmatch(out.stdout)
		require.NotNil(t, submit, out.stdout)
		require.Equal(t, []string{"berth", "sweep", "submit", "-f", file, "--wait"}, words(t, submit[1]))
	})
}
