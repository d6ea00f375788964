//go:build integration

package runtimetest_test

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/agent/runtrial"
)

// saves is a script that saves beside itself, as its author's machine lets it.
const saves = `
import os
open("train.py").read()
open("train.py", "a").write("# changed")
os.makedirs("runs/1")
open("runs/1/m.keras", "w").write("model")
print("acc=1", flush=True)
`

// A script may write into its working directory, and its files are kept.
func TestWorkdir(t *testing.T) {
	t.Parallel()

	a := newAttempts(t, new(false), func(s *berth.Spec) {
		s.Command[2], s.Metrics.Source, s.Objective.Metric = saves, berth.MetricsStdout, "acc"
	})
	id, outcome := a.run(t, 1, 0, nil)
	require.Equal(t, berth.FailureOK, outcome.Kind, outcome.Message)

	out := filepath.Join(a.dataDir, "attempts", id, "out", "work")
	model, err := os.ReadFile(filepath.Join(out, "runs/1/m.keras"))
	require.NoError(t, err)
	require.Equal(t, "model", string(model))

	script, err := os.ReadFile(filepath.Join(out, "train.py"))
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(script), "# changed"), "with what the image has before it")
	require.Greater(t, len(script), 100)
}

func TestReadWorkdir(t *testing.T) {
	t.Parallel()

	d, err := docker.New(docker.Config{Instance: "read-" + uuid.NewString()[:8], Owner: berth.Owner{HostID: "host"}, BootID: "boot"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })

	var _ runtrial.ReadWorkdir = d.ReadWorkdir

	where, content, err := d.ReadWorkdir(t.Context(), keras, "/app/")
	require.NoError(t, err)
	require.Equal(t, "/app", where)

	var names []string

	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}

		require.NoError(t, err)
		names = append(names, h.Name)
	}

	require.NoError(t, content.Close())
	require.Contains(t, names, "app/")
	require.Contains(t, names, "app/train.py")

	where, content, err = d.ReadWorkdir(t.Context(), keras, "/bin")
	require.NoError(t, err)
	require.NoError(t, content.Close())
	require.Equal(t, "/usr/bin", where, "a link is followed")

	_, _, err = d.ReadWorkdir(t.Context(), keras, "/nowhere")
	require.Equal(t, berth.KindNotFound, berth.KindOf(err), err)

	_, _, err = d.ReadWorkdir(t.Context(), keras, "/etc/passwd")
	require.Equal(t, berth.KindNotFound, berth.KindOf(err), err)

	_, _, err = d.ReadWorkdir(t.Context(), "no-such-image:1", "")

	start, ok := errors.AsType[*berth.StartError](err)
	require.True(t, ok, err)
	require.Equal(t, berth.FailureImageMissing, start.Kind)
}

// runWith runs a script in the image's working directory with a data set mounted there.
func runWith(t *testing.T, target, path, script string) (out string, outcome berth.Outcome) {
	t.Helper()

	a := newAttempts(t, new(false), func(s *berth.Spec) {
		s.Command[2], s.Metrics.Source, s.Objective.Metric = script, berth.MetricsStdout, "acc"
		s.Datasets = []berth.DatasetMount{{Name: "code", Target: target}}
	})
	a.dataset = path

	id, outcome := a.run(t, 1, 0, nil)

	return filepath.Join(a.dataDir, "attempts", id, "out"), outcome
}

// A sweep mounts a data set where the image's working directory is, or a file in it, which
// is nothing that the job wrote.
func TestWorkdir_WithADataset(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	file := filepath.Join(dir, "labels.csv")
	require.NoError(t, os.Chmod(dir, 0o755))                     //nolint:gosec // G302: the trial's user reads it
	require.NoError(t, os.WriteFile(file, []byte("a,b"), 0o644)) //nolint:gosec // G306: the same

	for target, path := range map[string]string{"/app": dir, "/app/labels.csv": file} {
		out, outcome := runWith(t, target, path, `assert open("labels.csv").read() == "a,b"; print("acc=1")`)
		require.Equal(t, berth.FailureOK, outcome.Kind, outcome.Message)

		left, _ := filepath.Glob(filepath.Join(out, "work", "*"))
		if target == "/app" {
			require.Empty(t, left)

			continue
		}

		require.Equal(t, []string{filepath.Join(out, "work", "labels.csv")}, left, "the mount's place alone (docs/limits.md)")

		info, err := os.Stat(left[0])
		require.NoError(t, err)
		require.Zero(t, info.Size())
	}
}
