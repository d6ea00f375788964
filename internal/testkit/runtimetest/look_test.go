//go:build integration

package runtimetest_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

func look(command ...string) berth.Look {
	return berth.Look{
		Image: "berth-test/busy:1", Command: append([]string{"/busy"}, command...), MemoryBytes: 64 * mib, CPUMilli: 1000, Timeout: patience,
	}
}

func TestLook(t *testing.T) {
	t.Parallel()

	d := open(t)
	t.Cleanup(func() { requireNoLooks(t) })

	for command, holds := range map[string]func(got berth.Looked) bool{
		"spam 4": func(got berth.Looked) bool {
			return got.ExitCode == 0 && len(got.Stdout) > 0 && len(got.Stderr) > 0 && got.FirstOutput > 0
		},
		"spam 900000": func(got berth.Looked) bool { return len(got.Stdout) == berth.MaxLookBytes }, // 500,000 bytes more were written
		"exit 7":      func(got berth.Looked) bool { return got.ExitCode == 7 },
		"alloc 200":   func(got berth.Looked) bool { return got.OutOfMemory },
		"dial 1.1.1.1:80": func(got berth.Looked) bool {
			return strings.Contains(string(got.Stdout)+string(got.Stderr), "unreachable")
		},
		"write /here x": func(got berth.Looked) bool { return got.ExitCode != 0 }, // its root file system is read-only
	} {
		got, err := d.Look(t.Context(), look(strings.Fields(command)...))
		require.NoError(t, err, command)
		require.True(t, holds(got), "%s: %+v", command, got)
	}

	short := look("ignore")
	short.Timeout = time.Second
	got, err := d.Look(t.Context(), short)
	require.NoError(t, err)
	require.True(t, got.TimedOut)

	_, err = d.Look(t.Context(), berth.Look{Image: "berth-test/absent:1", Command: []string{"x"}, MemoryBytes: 64 * mib, Timeout: patience})
	require.True(t, isMissing(err), "%v", err)

	wrong := look()
	wrong.Command = []string{"/nowhere"}
	got, err = d.Look(t.Context(), wrong)
	start, refused := errors.AsType[*berth.StartError](err)
	require.True(t, refused && start.Kind == berth.FailureBadCommand || got.ExitCode == 127, "%v %+v", err, got)

	stranger := look()
	stranger.User = "nobodyhere"
	got, err = d.Look(t.Context(), stranger)
	require.Error(t, err)
	require.True(t, got.NoUser, "%v", err)

	// What a Berth that was killed left behind goes with the next look.
	left, err := exec.CommandContext(t.Context(), "docker", "create", "--label", "berth.look="+strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10), "berth-test/busy:1").Output()
	require.NoError(t, err)
	_, err = d.Look(t.Context(), look("exit", "0"))
	require.NoError(t, err)
	require.Error(t, exec.CommandContext(t.Context(), "docker", "inspect", strings.TrimSpace(string(left))).Run())

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)

	go func() {
		_, err := d.Look(ctx, look("sleep"))
		done <- err
	}()

	require.Eventually(t, func() bool { return looks(t) != "" }, patience, tick)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

// foreignImage is an image whose programs are for a processor that is not there.
func foreignImage(t *testing.T) string {
	t.Helper()

	const program = "\x7fELF\x02\x01\x01\x00not for this machine"

	var archive bytes.Buffer

	files := tar.NewWriter(&archive)

	for _, name := range []string{"program", "bin/sh"} { // the init process also tries to run non-executable files as scripts
		require.NoError(t, files.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(program))}))
		_, err := files.Write([]byte(program))
		require.NoError(t, err)
	}

	require.NoError(t, files.Close())

	image := "berth-test/foreign-" + strings.ToLower(rand.Text()) + ":1"
	load := exec.CommandContext(t.Context(), "docker", "import", "-", image)
	load.Stdin = &archive
	output, err := load.CombinedOutput()
	require.NoError(t, err, string(output))
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "docker", "rmi", image).Run() })

	return image
}

func TestLook_WhatCannotRunHere(t *testing.T) {
	t.Parallel()

	d := open(t)

	l := look()
	l.Image, l.Command = foreignImage(t), []string{"/program"}
	got, err := d.Look(t.Context(), l)
	require.True(t, got.Foreign, "%+v %v", got, err)

	l = look("exit", "0")
	l.Mounts = []berth.Mount{{Source: "/nowhere/at/all", Target: "/x", ReadOnly: true}}
	_, err = d.Look(t.Context(), l)
	require.Equal(t, berth.KindNotFound, berth.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "/nowhere/at/all")
}

func isMissing(err error) bool {
	spec, ok := errors.AsType[*berth.SpecError](err)

	return ok && spec.Problems[0].Code == "E_IMAGE_MISSING"
}

// looks are the containers of looks of this test's image.
func looks(t *testing.T) string {
	t.Helper()

	out, err := exec.CommandContext(context.Background(), "docker", "ps", "--all", "--quiet",
		"--filter", "label=berth.look", "--filter", "ancestor=berth-test/busy:1").Output()
	require.NoError(t, err)

	return strings.TrimSpace(string(out))
}

// requireNoLooks waits: packages beside this one look, too.
func requireNoLooks(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return looks(t) == "" }, patience, tick, "a look leaves no container")
}
