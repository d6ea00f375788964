package runtrial

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
)

// secret gives the sweep of the attempt the secret "hub", whose value open returns.
func (r *rig) secret(open OpenSecret) {
	r.books.says(func(who *berth.Assignee) {
		who.Spec.Secrets = []berth.SecretMount{{Name: "hub", File: "/run/secrets/hub"}}
	})

	r.config.Secret, r.config.HostName = open, "gpu-1"
}

func opens(value string) OpenSecret {
	return func(context.Context, string) ([]byte, error) { return []byte(value), nil }
}

// requireNoTrace fails when the value is anywhere in the data directory, or in the ledger.
func (r *rig) requireNoTrace(t *testing.T, value string) {
	t.Helper()

	require.NoError(t, filepath.WalkDir(r.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		text, err := os.ReadFile(path) //nolint:gosec // G122: a directory of the test's own
		require.NotContains(t, string(text), value, path)

		return err
	}))
	require.NotContains(t, r.books.text(t), value)

	for name := range r.books.metrics(t) {
		require.NotContains(t, name, value)
	}
}

func TestRun_MountsSecretsAndMasksThem(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.secret(opens(hub + "\n"))

	ended := r.start(t.Context(), r.order())
	box := r.docks.started(t)

	launch := r.docks.launches()[0]
	file := filepath.Join(r.dir, "secrets", attemptID, "hub")
	require.Contains(t, launch.Mounts, berth.Mount{Source: file, Target: "/run/secrets/hub", ReadOnly: true})

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, hub+"\n", string(text), "byte by byte")

	for path, mode := range map[string]os.FileMode{file: 0o444, filepath.Dir(file): 0o700, filepath.Dir(filepath.Dir(file)): 0o700} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}

	box.Print(berth.Stdout, "token "+hub+"\n")
	box.Print(berth.Stdout, hub+"=3\n")
	box.Print(berth.Stdout, "acc=1\n")
	box.Print(berth.Stderr, "ValueError: bad token "+hub+"\n")
	box.Exit(1)

	got := await(t, ended)
	require.NoError(t, got.err)
	require.Equal(t, berth.FailureUserError, got.outcome.Kind)

	stars := strings.Repeat("*", len(hub))
	require.Contains(t, got.outcome.Message, "ValueError: bad token "+stars)
	require.Equal(t, got.outcome.Message, r.books.result(t).Outcome.Message)
	require.Contains(t, r.books.text(t), "token "+stars+"\n")
	require.Contains(t, r.books.metrics(t), stars+"/i", "its name is masked, its number is not")
	require.NoFileExists(t, file)
	require.NoDirExists(t, filepath.Dir(file))
	r.requireNoTrace(t, hub)
}

// The next run masks what the container has, also when the secret was changed since.
func TestRun_AdoptsAndStillMasks(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.secret(opens(hub))

	ctx, leave := context.WithCancel(t.Context())
	ended := r.start(ctx, r.order())
	box := r.docks.started(t)
	long := strings.Repeat("x", 16<<10-7)
	box.Print(berth.Stdout, long+hub[:7]) // Docker cuts it here
	require.Eventually(t, func() bool { return strings.HasSuffix(r.books.text(t), "x*******") }, patience, tick)
	leave()
	require.ErrorIs(t, await(t, ended).err, ErrDetached)

	r.config.Secret = opens("another value")
	ended = r.start(t.Context(), r.order())

	box.Print(berth.Stdout, hub[7:]+"\n")
	box.Print(berth.Stdout, "again "+hub+"\nacc=1\n")
	box.Exit(0)
	require.NoError(t, await(t, ended).err)

	require.Equal(t, long+strings.Repeat("*", len(hub))+"\nagain "+strings.Repeat("*", len(hub))+"\nacc=1\n", r.books.text(t))
	r.requireNoTrace(t, hub)
}

// Where nobody can say any more what a container has, nothing of its log is shown.
func TestRun_WithoutTheFilesOfItsSecretsMasksAll(t *testing.T) {
	t.Parallel()

	for name, open := range map[string]OpenSecret{
		"changed": opens("another value"),
		"deleted": func(context.Context, string) ([]byte, error) { return nil, berth.Errorf(berth.KindNotFound, "no row") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			r.secret(opens(hub))

			ctx, leave := context.WithCancel(t.Context())
			ended := r.start(ctx, r.order())
			box := r.docks.started(t)

			leave()
			require.ErrorIs(t, await(t, ended).err, ErrDetached)
			require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "secrets")))

			r.config.Secret = open
			ended = r.start(t.Context(), r.order())

			box.Print(berth.Stdout, hub+"\nacc=1\n")
			box.Exit(0)

			got := await(t, ended)
			require.NoError(t, got.err)
			require.Equal(t, berth.FailureOK, got.outcome.Kind, "the trial itself is not harmed")
			require.InDelta(t, 1, *got.outcome.Value, 0)
			require.Equal(t, strings.Repeat("*", len(hub))+"\n*****\n", r.books.text(t))
			r.requireNoTrace(t, hub)
		})
	}
}

func TestRun_WithoutItsSecret(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		open OpenSecret
		kind berth.FailureKind
		says string
	}{
		"deleted": {
			func(context.Context, string) ([]byte, error) { return nil, berth.Errorf(berth.KindNotFound, "no row") },
			berth.FailureBadConfig, "the container was not started: secret \"hub\" was deleted after the sweep was submitted; store it again with `berth secret set hub`",
		},
		"damaged": {
			func(context.Context, string) ([]byte, error) {
				return nil, berth.Errorf(berth.KindInvalid, "secret is damaged")
			},
			berth.FailureBadConfig, "secret is damaged",
		},
		"no key": {nil, berth.FailureInfra, "host gpu-1 opens no secrets; start its worker with --secrets-key FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			r.secret(test.open)

			got := await(t, r.start(t.Context(), r.order()))
			require.NoError(t, got.err)
			require.Equal(t, test.kind, got.outcome.Kind)
			require.Equal(t, test.kind == berth.FailureInfra, test.kind.Policy().Next == berth.NextRetry, "only another host may do better")
			require.Contains(t, got.outcome.Message, test.says)
			require.Empty(t, r.docks.launches())
		})
	}
}

// What a killed worker left of attempts that are over goes.
func TestLeftovers_OfSecrets(t *testing.T) {
	t.Parallel()

	r := setup(t)
	dir := filepath.Join(t.TempDir(), "tmpfs")
	r.config.SecretsDir = dir

	left, err := r.Leftovers()
	require.NoError(t, err)
	require.Empty(t, left)

	d := r.dirs(berth.Assignee{Attempt: berth.Attempt{ID: attemptID}})
	require.NoError(t, d.keepSecret("hub", []byte(hub)))
	require.FileExists(t, filepath.Join(dir, attemptID, "hub"))

	left, err = r.Leftovers()
	require.NoError(t, err)
	require.Equal(t, []string{attemptID}, left)

	require.NoError(t, r.Clean(attemptID))
	require.NoDirExists(t, filepath.Join(dir, attemptID))
}
