package runtrial

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/fake"
)

const hub = "hf_Tp0KenValue42"

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

// deleted is an OpenSecret of a secret that is gone.
func deleted(context.Context, string) ([]byte, error) {
	return nil, berth.Errorf(berth.KindNotFound, "no row")
}

// leaveBeforeDocker ends a run that has prepared its attempt while Docker is away: there
// is no container. Its files of secrets go as they do on a tmpfs when the machine starts.
func (r *rig) leaveBeforeDocker(t *testing.T) {
	t.Helper()

	asked := make(chan struct{}, 100)
	r.docks.before = func(berth.Launch) error {
		asked <- struct{}{}

		return berth.Errorf(berth.KindUnavailable, "docker is away")
	}

	ctx, leave := context.WithCancel(t.Context())
	ended := r.start(ctx, r.order())
	<-asked
	leave()
	await(t, ended)
	require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "secrets")))
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

	box, ended := r.begin(t)

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
	got := ends(t, box, ended, "", 1)
	require.Equal(t, berth.FailureUserError, got.Kind)

	stars := strings.Repeat("*", len(hub))
	require.Contains(t, got.Message, "ValueError: bad token "+stars)
	require.Equal(t, got.Message, r.books.result(t).Outcome.Message)
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

	long := strings.Repeat("x", 16<<10-7)
	box := r.leaveAfter(t, r.order(), func(box *fake.Process) {
		box.Print(berth.Stdout, long+hub[:7]) // Docker cuts it here
		require.Eventually(t, func() bool { return strings.HasSuffix(r.books.text(t), "x*******") }, patience, tick)
	})

	r.config.Secret = opens("another value")
	ended := r.start(t.Context(), r.order())

	box.Print(berth.Stdout, hub[7:]+"\n")
	ends(t, box, ended, "again "+hub+"\nacc=1\n", 0)

	require.Equal(t, long+strings.Repeat("*", len(hub))+"\nagain "+strings.Repeat("*", len(hub))+"\nacc=1\n", r.books.text(t))
	r.requireNoTrace(t, hub)
}

// Where nobody can say any more what a container has, nothing of its log is shown. The value
// that a worker writes then is not what the container has: the run after it does not take it
// for that.
func TestRun_WithoutTheFilesOfItsSecretsMasksAll(t *testing.T) {
	t.Parallel()

	for name, open := range map[string]OpenSecret{
		"changed": opens("another value"),
		"deleted": deleted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			r.secret(opens(hub))

			box := r.leave(t, r.order())
			require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "secrets")))

			r.config.Secret = open
			r.leaveAfter(t, r.order(), func(*fake.Process) {
				box.Print(berth.Stdout, "first "+hub+"\n")
				require.Eventually(t, func() bool { return r.books.text(t) != "" }, patience, tick)
			})

			got := ends(t, box, r.start(t.Context(), r.order()), hub+"\nacc=1\n", 0)
			require.Equal(t, berth.FailureOK, got.Kind, "the trial itself is not harmed")
			require.InDelta(t, 1, *got.Value, 0)
			require.Equal(t, strings.Repeat("*", len("first "+hub))+"\n"+strings.Repeat("*", len(hub))+"\n*****\n", r.books.text(t))
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
			deleted,
			berth.FailureBadConfig, "the container was not started: secret \"hub\" was deleted after the sweep was submitted; store it again with `berth secret set hub`",
		},
		"damaged": {func(context.Context, string) ([]byte, error) {
			return nil, berth.Errorf(berth.KindInvalid, "secret is damaged")
		}, berth.FailureBadConfig, "secret is damaged"},
		"no key": {nil, berth.FailureInfra, "host gpu-1 opens no secrets; start its worker with --secrets-key FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			r.secret(test.open)

			got := came(t, r.start(t.Context(), r.order()))
			require.Equal(t, test.kind, got.Kind)
			require.Equal(t, test.kind == berth.FailureInfra, test.kind.Policy().Next == berth.NextRetry, "only another host may do better")
			require.Contains(t, got.Message, test.says)
			require.Empty(t, r.docks.launches())
		})
	}
}

// A worker that finds one of two files gone still knows the other value, and often this
// one: names of metrics and the message must hide it.
func TestRun_BlindMaskHidesWhatIsKnown(t *testing.T) {
	t.Parallel()

	const kept = "kept_Value_9876543"

	r := setup(t)
	values := map[string]string{"hub": hub, "kept": kept}
	r.secret(func(_ context.Context, name string) ([]byte, error) { return []byte(values[name]), nil })
	r.books.says(func(who *berth.Assignee) {
		who.Spec.Secrets = []berth.SecretMount{{Name: "hub", File: "/run/secrets/hub"}, {Name: "kept", File: "/run/secrets/kept"}}
	})

	box := r.leave(t, r.order())
	require.NoError(t, os.Remove(filepath.Join(r.dir, "secrets", attemptID, "hub"))) // a crash amid the removal

	ended := r.start(t.Context(), r.order())

	box.Print(berth.Stdout, kept+"=3\n")
	got := ends(t, box, ended, "loss_"+hub+"=3\n", 0)

	for name := range r.books.metrics(t) {
		require.NotContains(t, name, kept)
		require.NotContains(t, name, hub)
	}

	require.Contains(t, got.Message, `never reported "acc"`, "the objective's name is in the sweep file")
	require.Contains(t, got.Message, strings.Repeat("*", len("loss_"+hub)))
	require.NotContains(t, got.Message, kept)
	require.NotContains(t, got.Message, hub)
}

// A note in the log and in the message quotes the first bytes of a line of the metrics
// file; a value in it must not show, whether cut or quoted.
func TestRun_NoteOfAnUnreadLineShowsNoValue(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct{ value, line, piece string }{
		"cut":    {"hf_0123456789abcdefghijklmnopqrstuv", strings.Repeat("x", unreadBytes-20) + " hf_0123456789abcdefghijklmnopqrstuv", "hf_0123456789"},
		"quoted": {`hunter2"and\more-of-it`, `password hunter2"and\more-of-it`, "hunter2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := setup(t)
			r.secret(opens(test.value))
			r.books.says(func(who *berth.Assignee) { who.Spec.Metrics.Source = berth.MetricsFile })

			box, ended := r.begin(t)
			require.NoError(t, os.WriteFile(filepath.Join(mountOf(t, box.Launch, mountOut), metricsName), []byte(test.line+"\n{\"acc\": 1}\n"), 0o600))
			got := ends(t, box, ended, "", 0)
			require.NotContains(t, r.books.text(t), test.piece, "the log")
			require.NotContains(t, got.Message, test.piece, "the message")
		})
	}
}

// The machine starts anew while the attempt waits for its image or for Docker: files on
// a tmpfs are gone, and no container ever was. The one that starts then has the value
// that Berth writes now, so there is no reason to hide the whole log.
func TestRun_ContainerThatNeverWasHasWhatIsWrittenNow(t *testing.T) {
	t.Parallel()

	r := setup(t)
	r.secret(opens(hub))

	r.leaveBeforeDocker(t)

	r.docks.before = nil
	box, ended := r.begin(t)
	ends(t, box, ended, "epoch 1 of "+hub+"\nacc=1\n", 0)
	require.Equal(t, "epoch 1 of "+strings.Repeat("*", len(hub))+"\nacc=1\n", r.books.text(t))
}
