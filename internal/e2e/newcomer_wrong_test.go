//go:build integration

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wrongScript does what its flags say, as the scripts of newcomers do by mistake.
const wrongScript = `import argparse
p = argparse.ArgumentParser()
p.add_argument("--lr", type=float, default=0.1)
p.add_argument("--data")
p.add_argument("--save")
p.add_argument("--needs")
a = p.parse_args()
if a.needs: __import__(a.needs)
if a.data: open(a.data).read()
for epoch in range(2):
    print("epoch %d: val_loss=%.3f acc=%.3f" % (epoch, a.lr, 1 - a.lr))
if a.save: open(a.save, "w").write("weights")
`

const wrongDockerfile = `FROM berth-examples/python:3.11
WORKDIR /app
COPY train.py broken.py /app/
COPY train.py /opt/mine/train.py
RUN chmod -R a+rX /app /opt/mine && chmod 600 /opt/mine/train.py
USER 65532:65532
`

const wrongFile = `name: wrong
image: berth-test/wrong:1
command: [python3, train.py, "--lr={{lr}}"]
parameters: [{name: lr, min: 0.1, max: 0.9}]
objective: {metric: val_loss, goal: minimize}
limits: {max_trials: 2, max_failed_trials: 1}
metrics: {source: stdout}
resources: {memory: 256MiB}
`

// Each wrong turn between a script and its best model gets the command to type.
func TestNewcomer_WrongTurns(t *testing.T) { //nolint:tparallel // the turns share a server, and take a moment each
	t.Parallel()

	const image = "berth-test/wrong:1"

	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)) //nolint:gosec // G306: as a person has it
	}
	write("train.py", wrongScript)
	write("broken.py", "import argparse\n\ndef f(:\n")
	write("trains.py", "print('val_loss=1')\nraise SystemExit('it trained')\n")
	write("Dockerfile", wrongDockerfile)
	write("sweep.yaml", wrongFile)

	typeIn(t, dir, []string{"DOCKER_BUILDKIT=0"}, "docker", "build", "--quiet", "--tag", image, ".")
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "docker", "rmi", image).Run() })

	s := start(t, "--memory", "2GiB")
	here := []string{"BERTH_SERVER=" + s.url}

	const submit = "sweep submit -f sweep.yaml --wait"

	for _, turn := range []struct { //nolint:paralleltest // they share sweep.yaml
		name     string
		from, to string // in sweep.yaml
		env      []string
		command  string
		code     int
		want     []string
	}{
		{
			name: "the image is not built", from: image, to: "berth-test/not-built:1", command: submit, code: 4,
			want: []string{"sweep.yaml:2: E_IMAGE_", "no machine has the image", "type there: docker build -t berth-test/not-built:1 ."},
		},
		{
			name: "the image is not built, and it is looked at", command: "image check berth-test/not-built:1", code: 3,
			want: []string{`image "berth-test/not-built:1" is not on this machine; type`, "`docker build -t berth-test/not-built:1 .`"},
		},
		{
			name: "a flag that the script does not have", from: `"--lr={{lr}}"`, to: `"--lrr={{lr}}"`, command: submit, code: 8,
			want: []string{
				"trial 1 failed: the program failed (exit code 2): train.py: error: unrecognized arguments: --lrr=",
				"; correct `command` in the sweep file: `berth init SCRIPT -o new.yaml` lists the flags that the script has",
			},
		},
		{
			name: "the metric is misspelled", from: "metric: val_loss", to: "metric: val_los", command: submit, code: 8,
			want: []string{`trials 1, 2 failed: ended well but never reported "val_los"; it reported "acc", "val_loss"; did you mean ` + "`objective: {metric: val_loss}`?"},
		},
		{
			name: "the script was not copied", from: "train.py", to: "/app/src/train.py", command: submit, code: 8,
			want: []string{"can't open file '/app/src/train.py'", "; the image has no /app/src/train.py: correct `command`, or COPY the script in the Dockerfile and type `docker build` again"},
		},
		{
			name: "the data was not copied", from: `"--lr={{lr}}"`, to: `"--lr={{lr}}", --data=data/train.csv`, command: submit, code: 8,
			want: []string{
				"FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'",
				"; a trial sees only what its image has and its `datasets`: COPY the file in the Dockerfile and type `docker build` again, or correct its path",
			},
		},
		{
			name: "the script writes to a read-only place", from: `"--lr={{lr}}"`, to: `"--lr={{lr}}", --save=/srv/model.bin`, command: submit, code: 8,
			want: []string{"OSError: [Errno 30] Read-only file system: '/srv/model.bin'; only /trial/out, /trial/checkpoint, /tmp and a working directory of at most 64 MiB can be written"},
		},
		{
			name: "only root can read the script", from: "train.py", to: "/opt/mine/train.py", command: submit, code: 8,
			want: []string{
				"can't open file '/opt/mine/train.py': [Errno 13] Permission denied",
				"; trials have no rights (user 65532): for files of the image write `RUN chmod -R a+rX DIR` into the Dockerfile and type `docker build` again",
			},
		},
		{
			name: "a package is missing", from: `"--lr={{lr}}"`, to: `"--lr={{lr}}", --needs=torchvision`, command: submit, code: 8,
			want: []string{"No module named 'torchvision'; the image lacks torchvision: add its package to requirements.txt", "and type `docker build` again"},
		},
		{
			name: "a syntax error", from: "train.py", to: "broken.py", command: submit, code: 8,
			want: []string{"SyntaxError: invalid syntax (/app/broken.py, line 3); correct the script and type `docker build` again"},
		},
		{
			name: "no such program", from: "python3", to: "pyhton3", command: submit, code: 8,
			want: []string{"the command was not found or cannot be run (exit code 127); check command and workdir", "pyhton3"},
		},
		{
			name: "the same, seen before", command: "init broken.py --image " + image + " -o new.yaml", code: 1,
			want: []string{"broken.py:3: SyntaxError: invalid syntax"},
		},
		{
			name: "--help would train", command: "init trains.py --image " + image + " -o trains.yaml", code: 0,
			want: []string{"No flags were found", "a trial finds each value in its environment, too, such as TRIAL_PARAM_LR"},
		},
		{
			name: "a misspelled key", from: "metrics:", to: "metrcs:", command: submit, code: 4,
			want: []string{`sweep.yaml:7: E_UNKNOWN_FIELD /metrcs: there is no field "metrcs" here; did you mean "metrics"?`},
		},
		{
			name: "a misspelled placeholder", from: "{{lr}}", to: "{{lrr}}", command: submit, code: 4,
			want: []string{`sweep.yaml:3: E_TEMPLATE_PARAM /command/2: there is no parameter "lrr"; did you mean "lr"?`},
		},
		{
			name: "no such sweep file", command: "sweep submit -f sweeps.yaml", code: 2,
			want: []string{`there is no sweep file "sweeps.yaml"; here are sweep.yaml`, "Type `berth init train.py`"},
		},
		{
			name: "no such script", command: "init trian.py", code: 2,
			want: []string{`there is no script "trian.py"; here are broken.py, train.py, trains.py`},
		},
		{
			name: "an unknown flag", command: "sweep submit -f sweep.yaml --wiat", code: 2,
			want: []string{"unknown flag: --wiat; did you mean --wait?; see `berth sweep submit --help`"},
		},
		{
			name: "an unknown verb", command: "sweep submti -f sweep.yaml", code: 2,
			want: []string{"there is no `berth sweep submti`; did you mean `berth sweep submit`?"},
		},
		{
			name: "which sweep", command: "sweep best --download", code: 2,
			want: []string{"write `berth sweep best SWEEP [flags]`", "`berth sweep list` shows the sweeps"},
		},
		{
			name: "no server", command: submit, env: []string{"BERTH_SERVER=http://127.0.0.1:1"}, code: 7,
			want: []string{"no answer from the server", "Type `berth dev` in another terminal, or say with --server where it runs"},
		},
		{
			name: "no Docker", command: "init train.py -o new.yaml", env: []string{"DOCKER_HOST=unix:///nowhere.sock"}, code: 7,
			want: []string{"Docker does not answer", "start it (`sudo systemctl start docker`), and see with `docker version` whether you may use it"},
		},
	} {
		t.Run(turn.name, func(t *testing.T) {
			require.Contains(t, wrongFile, turn.from)
			write("sweep.yaml", strings.Replace(wrongFile, turn.from, turn.to, 1))

			got := berthIn(t, dir, append(here, turn.env...), strings.Fields(turn.command)...)
			require.Equal(t, turn.code, got.code, "%s\n%s", got.out, got.err)

			for _, want := range turn.want {
				require.Contains(t, got.out+got.err, want)
			}

			require.NotContains(t, got.out+got.err, "it trained")
		})
	}

	// Nothing was wrong with the rest of it.
	write("sweep.yaml", wrongFile)
	got := berthIn(t, dir, here, strings.Fields(submit)...)
	require.Equal(t, 0, got.code, "%s\n%s", got.out, got.err)
	s.requireQuiet()
}
