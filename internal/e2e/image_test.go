//go:build integration

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/script"
)

// checked is what `berth image check -o json` says.
type checked struct {
	Volumes      []string            `json:"volumes"`
	StartSeconds float64             `json:"start_seconds"`
	Inside       *script.ImageReport `json:"inside"`
	Runnable     bool                `json:"runnable"`
	Findings     []struct {
		Level string `json:"level"`
		What  string `json:"what"`
		Do    string `json:"do"`
	} `json:"findings"`
}

func checkImage(t *testing.T, image string) (found checked, texts string) {
	t.Helper()

	got := berthIn(t, t.TempDir(), nil, "image", "check", image, "-o", "json")
	require.Equal(t, 0, got.code, got.err)
	require.NoError(t, json.Unmarshal([]byte(got.out), &found))

	for _, f := range found.Findings {
		texts += f.What + " > " + f.Do + "\n"
	}

	return found, texts
}

func TestImageCheck_TensorFlow(t *testing.T) {
	t.Parallel()

	found, texts := checkImage(t, "berth-examples/tensorflow:1")
	require.True(t, found.Runnable)
	require.Positive(t, found.StartSeconds)
	require.Equal(t, 65532, found.Inside.UID)
	require.Equal(t, found.Inside.Packages.Files, found.Inside.Packages.Compiled)
	require.NotContains(t, texts, "byte-compiled")
	require.Len(t, found.Inside.Imports, 2, "keras comes with tensorflow")

	tensorflow := found.Inside.Imports[0]
	require.Empty(t, tensorflow.Error)
	require.Positive(t, tensorflow.SecondSeconds)
	require.Contains(t, tensorflow.Slowest[0].Module, "tensorflow")

	version, err := exec.CommandContext(t.Context(), "docker", "run", "--rm", "--network", "none", "berth-examples/tensorflow:1",
		"python3", "-c", "import importlib.metadata as m; print(m.version('tensorflow-cpu'))").Output()
	require.NoError(t, err)
	require.Equal(t, script.Framework{Module: "tensorflow", Name: "tensorflow-cpu", Version: strings.TrimSpace(string(version))}, found.Inside.Frameworks[0])
}

// An image with everything that Dockerfiles get wrong.
func TestImageCheck_WhatDockerfilesGetWrong(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(`FROM berth-test/flags:1
WORKDIR /app
RUN echo 'print(1)' >secret.py && chmod 600 secret.py \
 && mkdir -p /usr/local/lib/python3.11/dist-packages/lazy && touch /usr/local/lib/python3.11/dist-packages/lazy/one.py /usr/local/lib/python3.11/dist-packages/lazy/two.py \
 && find / -xdev -path '*-packages*' -name '*.pyc' -delete
VOLUME /data
ENTRYPOINT ["/bin/sh", "-c"]
`), 0o600))

	image := "berth-test/wrong-" + uuid.NewString()[:8] + ":1"
	build := exec.CommandContext(t.Context(), "docker", "build", "--quiet", "--tag", image, dir)
	build.Env = append(os.Environ(), "DOCKER_BUILDKIT=0")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "docker", "rmi", image).Run() })

	found, texts := checkImage(t, image)
	require.True(t, found.Runnable)
	require.Equal(t, []string{"/data"}, found.Volumes)
	require.Zero(t, found.Inside.Packages.Compiled)
	require.Contains(t, texts, "such as /app/secret.py > in the Dockerfile, after COPY: RUN chmod -R a+rX /app")
	require.Contains(t, texts, "RUN python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash")
	require.Contains(t, texts, "it declares volumes (/data)")
	require.Contains(t, texts, "ENTRYPOINT (/bin/sh -c)")
}
