//go:build integration

package runtimetest_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/docker"
	"github.com/berthml/berth/internal/testkit/runtimetest"
)

// here reports whether Docker has an image.
func here(t *testing.T, image string) bool {
	t.Helper()

	return exec.CommandContext(t.Context(), "docker", "image", "inspect", image).Run() == nil
}

func reasonOf(t *testing.T, err error) berth.PullReason {
	t.Helper()

	why, ok := errors.AsType[*berth.PullError](err)
	require.True(t, ok, "%v", err)

	return why.Reason
}

// unheard ignores the progress.
func unheard(string) {}

func TestPull_OnceForAllThatWait(t *testing.T) {
	t.Parallel()

	d, r := open(t), runtimetest.NewRegistry(t, false)
	digest := r.Push(t, "team/once:1", runtimetest.Image)
	require.False(t, here(t, digest))

	found, err := d.AskRegistry(t.Context(), r.Addr+"/team/once:1")
	require.NoError(t, err)
	require.Equal(t, digest, found.Digest, "Docker's own word after the push")
	require.False(t, here(t, digest), "asking pulls nothing")

	reached := r.PauseAfter(1 << 20)
	pulls := docker.NewPulls(d, docker.PullConfig{Room: func() (int64, error) { return 1 << 40, nil }})

	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		seen = make(map[string]bool)
	)

	for range 5 {
		all.Go(func() {
			err := pulls.Pull(t.Context(), digest, func(progress string) {
				mu.Lock()
				defer mu.Unlock()

				seen[progress] = true
			})
			if err != nil {
				t.Errorf("pulling: %v", err)
			}
		})
	}

	<-reached
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()

		for text := range seen {
			if strings.HasSuffix(text, " of 3 MiB") {
				return true
			}
		}

		return false
	}, patience, tick, "those who wait hear how far it is")
	r.GoOn()
	all.Wait()
	require.True(t, here(t, digest))
	require.Equal(t, 1, r.Layers())
}

// A canceled caller ends the pull only where no other one waits for it.
func TestPull_EndsWhenNobodyWaits(t *testing.T) {
	t.Parallel()

	d, r := open(t), runtimetest.NewRegistry(t, false)
	digest := r.Push(t, "team/left:1", runtimetest.Image)
	reached := r.PauseAfter(1 << 20)
	pulls := docker.NewPulls(d, docker.PullConfig{})

	leaves, leave := context.WithCancelCause(t.Context())
	left, stayed := make(chan error, 1), make(chan error, 1)

	go func() { left <- pulls.Pull(leaves, digest, unheard) }()
	go func() { stayed <- pulls.Pull(t.Context(), digest, unheard) }()

	<-reached

	canceled := errors.New("canceled by a person")
	leave(canceled)
	require.ErrorIs(t, <-left, canceled)
	r.GoOn()
	require.NoError(t, <-stayed)
	require.True(t, here(t, digest))

	other := r.Push(t, "team/alone:1", runtimetest.Image)
	reached = r.PauseAfter(1 << 20)
	alone, leave := context.WithCancelCause(t.Context())

	go func() { left <- pulls.Pull(alone, other, unheard) }()

	<-reached
	leave(canceled)
	require.ErrorIs(t, <-left, canceled)
	require.False(t, here(t, other))
}

func TestPull_TellsErrorsApart(t *testing.T) {
	d, r := open(t), runtimetest.NewRegistry(t, true)
	digest := r.Push(t, "team/closed:1", runtimetest.Image)
	repository, _, _ := strings.Cut(digest, "@")
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)

	ask := func(name string) error {
		_, err := d.AskRegistry(t.Context(), r.Addr+"/"+name)

		return err
	}
	pull := func(image string) error {
		return docker.NewPulls(d, docker.PullConfig{}).Pull(t.Context(), image, unheard)
	}

	require.Equal(t, berth.PullUnauthorized, reasonOf(t, ask("team/closed:1")), "no login")
	err := pull(digest)
	require.Equal(t, berth.PullUnauthorized, reasonOf(t, err))
	require.ErrorContains(t, err, "docker login "+r.Addr)

	r.Login(t, config, "wrong")
	require.Equal(t, berth.PullUnauthorized, reasonOf(t, ask("team/closed:1")), "a wrong password")
	require.Equal(t, berth.PullUnauthorized, reasonOf(t, pull(digest)))

	require.NoError(t, os.WriteFile(filepath.Join(config, "config.json"), []byte(`{"credsStore": "not-there"}`), 0o600))
	require.Equal(t, berth.PullUnauthorized, reasonOf(t, pull(digest)), "a helper that is not installed")

	r.Login(t, config, runtimetest.RegistryPassword)
	require.NoError(t, ask("team/closed:1"))

	for name, err := range map[string]error{
		"tag": ask("team/closed:2"), "repository": ask("team/none:1"), "digest": pull(repository + "@sha256:" + strings.Repeat("0", 64)),
	} {
		require.Equal(t, berth.PullUnknown, reasonOf(t, err), name)
		t.Log(name, err)
	}

	foreign := r.Push(t, "team/foreign:1", runtimetest.Image)
	err = docker.NewPulls(d, docker.PullConfig{Room: func() (int64, error) { return -1, nil }}).Pull(t.Context(), foreign, unheard)
	require.Equal(t, berth.PullDiskFull, reasonOf(t, err))
	t.Log(err)

	require.Equal(t, berth.KindInvalid, berth.KindOf(pull("sha256:"+strings.Repeat("0", 64))), "an ID is of no registry")
	require.Equal(t, berth.KindInvalid, berth.KindOf(pull(r.Addr+"/team/closed:1")), "a tag may move")

	r.Down(true)

	for _, err := range []error{ask("team/closed:1"), pull(digest)} {
		require.Equal(t, berth.PullUnreachable, reasonOf(t, err))
		t.Log(err)
	}

	r.Down(false)
	require.Zero(t, r.Layers(), "no refused pull fetched one")
	require.NoError(t, pull(digest))
	require.True(t, here(t, digest))
	require.Positive(t, r.Layers(), "Docker asks again for a layer that broke off")
}

// No machine waits for an image that it cannot run.
func TestAskRegistry_OtherPlatform(t *testing.T) {
	t.Parallel()

	d, r := open(t), runtimetest.NewRegistry(t, false)
	load := exec.CommandContext(t.Context(), "docker", "load")
	load.Stdin = mainframe(t, r.Addr+"/team/mainframe:1")
	out, err := load.CombinedOutput()
	require.NoError(t, err, string(out))

	digest := r.Keep(t, "team/mainframe:1")

	_, err = d.AskRegistry(t.Context(), r.Addr+"/team/mainframe:1")
	require.Equal(t, berth.PullPlatform, reasonOf(t, err))
	require.ErrorContains(t, err, "it is for linux/s390x, and this machine is linux/")
	require.Equal(t, berth.PullPlatform, reasonOf(t, docker.NewPulls(d, docker.PullConfig{}).Pull(t.Context(), digest, unheard)))
}

// mainframe is an image for s390x with one empty layer, as docker save writes it.
func mainframe(t *testing.T, tag string) *bytes.Buffer {
	t.Helper()

	archive := func(files map[string][]byte) *bytes.Buffer {
		var b bytes.Buffer

		w := tar.NewWriter(&b)
		for name, content := range files {
			require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}))
			_, err := w.Write(content)
			require.NoError(t, err)
		}

		require.NoError(t, w.Close())

		return &b
	}

	layer := archive(map[string][]byte{"file": []byte(tag)}).Bytes()
	config := fmt.Sprintf(`{"architecture": "s390x", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": ["sha256:%x"]}}`, sha256.Sum256(layer))
	manifest := `[{"Config": "config.json", "RepoTags": ["` + tag + `"], "Layers": ["layer.tar"]}]`

	return archive(map[string][]byte{"layer.tar": layer, "config.json": []byte(config), "manifest.json": []byte(manifest)})
}
