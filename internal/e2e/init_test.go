//go:build integration

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/sweepfile/spec"
)

// typed is the output of a command of berth, and its exit code.
type typed struct {
	out, err string
	code     int
}

// berthIn runs berth in a directory.
func berthIn(t *testing.T, dir string, env []string, args ...string) typed {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)

	var out, errs strings.Builder

	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()

	if exit, ok := errors.AsType[*exec.ExitError](err); !ok {
		require.NoError(t, err)
	} else {
		require.NotEqual(t, -1, exit.ExitCode(), errs.String())
	}

	return typed{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// decoded is a sweep file that init wrote, its placeholders filled in.
func decoded(t *testing.T, file string) berth.Spec {
	t.Helper()

	data, err := os.ReadFile(file)
	require.NoError(t, err)

	s, err := spec.Decode(bytes.ReplaceAll(data, []byte(berth.Placeholder), []byte("filled_in")), "application/yaml")
	require.NoError(t, err, string(data))

	return s
}

// written returns the values of a sweep's assignments, each as the JSON of the
// API.
func written(t *testing.T, s berth.Spec) []string {
	t.Helper()

	out := make([]string, len(s.Parameters))

	for i, p := range s.Parameters {
		text, err := json.Marshal(p)
		require.NoError(t, err)

		out[i] = string(text)
	}

	return out
}

// Without an image the Dockerfile makes one in which a trial can read everything,
// for any permissions of the author's files.
func TestInit_ADockerfileOfItsOwn(t *testing.T) {
	t.Parallel()

	dir := filepath.Join(t.TempDir(), "Own Thing")
	require.NoError(t, os.Mkdir(dir, 0o755)) //nolint:gosec // G301: as a person has it
	write := func(name, text string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
	}
	write("main.py", "import argparse\nimport helper\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float, default=0.1)\n"+
		"print('val_loss=%g' % helper.loss(p.parse_args().lr))\n", 0o644)
	write("helper.py", "def loss(lr):\n    return (lr - 0.3) ** 2\n", 0o644)
	write("requirements.txt", "", 0o644)

	got := berthIn(t, dir, nil, "init", "main.py", "--base", "berth-examples/python:3.11")
	require.Equal(t, 0, got.code, got.err)
	require.Contains(t, got.out, "wrote Dockerfile: berth-examples/python:3.11, and main.py helper.py")
	image := regexp.MustCompile(`docker build -t (own-thing-main-[0-9a-f]{4}:1) \.`).FindStringSubmatch(got.out)
	require.NotNil(t, image, got.out)
	require.NoError(t, os.Chmod(filepath.Join(dir, "helper.py"), 0o600))

	build := exec.CommandContext(t.Context(), "docker", "build", "--quiet", "--tag", image[1], dir)
	build.Env = append(os.Environ(), "DOCKER_BUILDKIT=0")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "docker", "rmi", image[1]).Run() })

	s := decoded(t, filepath.Join(dir, "sweep.yaml"))
	args := []string{"run", "--rm", "--network", "none", "--read-only", "--user", "65532:65532", s.Image}

	for _, element := range s.Command {
		args = append(args, strings.Replace(element, "{{lr}}", "0.5", 1))
	}

	trial := exec.CommandContext(t.Context(), "docker", args...)
	printed, err := trial.CombinedOutput()
	require.NoError(t, err, string(printed))
	require.Contains(t, string(printed), "val_loss=0.04")
}

// Each mistake of a user gets the command to type, and leaves no container.
func TestInit_WrongTurns(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)) //nolint:gosec // G306: as a person has it
	}
	write("lacks.py", "import argparse\nimport nowhere.at_all\np = argparse.ArgumentParser()\np.parse_args()\n")
	write("broken.py", "import argparse\ndef load():\n    raise ValueError('no data here')\nload()\n")
	write("plain.py", "print('val_loss=1')\nraise SystemExit('it was run')\n")
	write("syntax.py", "import argparse\ndef f(:\n")
	write("writes.py", "import argparse, os\nos.makedirs('runs')\nos.makedirs('/srv/runs')\n")
	write("slow.py", "import argparse, time\nwhile True: time.sleep(1)\n")
	write("typing_app.py", "import typer\napp = typer.Typer()\n@app.command()\ndef train(lr: float = 0.1): ...\n@app.command()\ndef test(x: int): ...\napp()\n")
	write("two.py", "import argparse\np = argparse.ArgumentParser(add_help=False)\np.add_argument('--config')\n_, rest = p.parse_known_args()\nraise ValueError('it trains')\n")
	write("loud.py", "import argparse\nfor i in range(60000): print('x' * 99)\nopen('beside', 'w').write('x')\np = argparse.ArgumentParser()\n"+
		"p.parse_args()\n")

	const with = "berth-test/flags:1"

	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"nowhere.py"}, 2, "there is no script \"nowhere.py\"; here are broken.py, lacks.py"},
		{[]string{"lacks.py", "--image", "berth-test/absent:1"}, 3, "type `docker pull berth-test/absent:1`"},
		{[]string{"lacks.py", "--image", with}, 1, "lacks.py:2: ModuleNotFoundError: No module named 'nowhere': image \"berth-test/flags:1\" lacks the module nowhere. Add it to the image"},
		{[]string{"broken.py", "--image", with}, 1, "broken.py:3: ValueError: no data here"},
		{[]string{"syntax.py", "--image", with}, 1, "syntax.py:2: SyntaxError: invalid syntax"},
		{[]string{"writes.py", "--image", with}, 1, "writes.py:3: OSError: [Errno 30] Read-only file system: '/srv/runs'. Trials have no network and no rights, and write to /trial/out, /tmp and their working directory alone"},
		{[]string{"slow.py", "--image", with, "--timeout", "3s"}, 124, "did not ask for its flags within 3s"},
		{[]string{"lacks.py", "--image", "berth-test/busy:1"}, 1, "it has no python3"},
		{[]string{"lacks.py", "--imgae", with}, 2, "unknown flag: --imgae; did you mean --image?; see `berth init --help`"},
	} {
		got := berthIn(t, dir, nil, append([]string{"init"}, test.args...)...)
		require.Equal(t, test.code, got.code, got.err)
		require.Contains(t, got.err, test.want)
		require.NoFileExists(t, filepath.Join(dir, "sweep.yaml"))
	}

	// Missing packages of the base image are added.
	got := berthIn(t, dir, nil, "init", "lacks.py", "--base", "berth-examples/python:3.11")
	require.Equal(t, 0, got.code, got.err)
	require.Contains(t, got.out, "made up for this look: nowhere")
	require.FileExists(t, filepath.Join(dir, "Dockerfile"))

	got = berthIn(t, dir, nil, "init", "plain.py", "--image", with)
	require.Equal(t, 6, got.code)
	require.Contains(t, got.err, "sweep.yaml is there already; write elsewhere with `-o OTHER.yaml`")

	// A script without flags is not run, and gets a file that says what to do.
	got = berthIn(t, dir, nil, "init", "plain.py", "--image", with, "--force")
	require.Equal(t, 0, got.code, got.err)
	require.Contains(t, got.out, "No flags were found")
	require.Equal(t, "filled_in", decoded(t, filepath.Join(dir, "sweep.yaml")).Objective.Metric)

	got = berthIn(t, dir, nil, "init", "typing_app.py", "--image", with, "-o", "typer.yaml")
	require.Equal(t, 0, got.code, got.err)
	require.Equal(t, []string{"python3", "/app/typing_app.py", "train", "--lr={{lr}}"}, decoded(t, filepath.Join(dir, "typer.yaml")).Command)

	got = berthIn(t, dir, nil, "init", "two.py", "--image", with, "-o", "two.yaml")
	require.Equal(t, 0, got.code, got.err)
	require.Contains(t, got.out, "1 flag of argparse")
	require.Contains(t, got.out, "The script reads its flags in parts, and more may follow")

	got = berthIn(t, dir, nil, "init", "loud.py", "--image", with, "-o", "loud.yaml")
	require.Equal(t, 0, got.code, got.err)
	require.NoFileExists(t, filepath.Join(dir, "beside"))

	got = berthIn(t, dir, []string{"DOCKER_HOST=unix:///nowhere.sock"}, "init", "plain.py", "-o", "other.yaml")
	require.Equal(t, 7, got.code)
	require.Contains(t, got.err, "Docker does not answer")
	require.Contains(t, got.err, "sudo systemctl start docker")
}

// click prompts for a missing value, and a trial has no input: init's file must pass it.
func TestInit_APromptIsPassed(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	const script = `import click
@click.command()
@click.option("--experiment", prompt=True)
@click.option("--seed", default=7, prompt=True)
@click.option("--note", prompt=True, prompt_required=False)
@click.option("--lr", default=0.1)
def main(experiment, seed, note, lr):
    print("val_acc:", lr)
if __name__ == "__main__":
    main()
`

	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.py"), []byte(script), 0o644)) //nolint:gosec // G306: as a person has it

	got := berthIn(t, dir, nil, "init", "train.py", "--image", "berth-test/flags:1")
	require.Zero(t, got.code, got.err)

	command := decoded(t, filepath.Join(dir, "sweep.yaml")).Command
	require.Contains(t, command, "--experiment={{experiment}}", "or each trial ends with Aborted!")
	require.Contains(t, command, "--seed={{seed}}", "click asks with a default, too")
	require.NotContains(t, command, "--note={{note}}")
	require.Contains(t, got.out, "FILL IN")
}
