package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/testkit/apitest"
)

func TestSecret_TheValueComesFromStandardInputOrAFile(t *testing.T) {
	t.Parallel()

	store := apitest.Sample(t)
	url := serve(t, store)

	set := func(in string, args ...string) outcome {
		return executeFed(t.Context(), in, &page{}, 0, url, append([]string{"secret", "set"}, args...)...)
	}

	done := set("hf_0123456789\n", "hub_token")
	require.Equal(t, ExitOK, done.code, done.stderr)
	require.Contains(t, done.stdout, "hub_token")
	require.NotContains(t, done.stdout+done.stderr, "hf_0123")
	require.Equal(t, 1, store.Count("secrets"))

	file := filepath.Join(t.TempDir(), "value")
	require.NoError(t, os.WriteFile(file, []byte{'\n', 0, 255, '\n'}, 0o600))
	require.Equal(t, ExitOK, set("", "binary", "--from-file", file).code)
	require.Equal(t, len("hf_0123456789")-4, ciphertextLength(t, store, "hub_token")-ciphertextLength(t, store, "binary")-len("hub_token")+len("binary"), "neither more nor less than the value is sealed")

	done = set("ab\r\n", "pin")
	require.Equal(t, ExitOK, done.code)
	require.Contains(t, done.stderr, "W_SECRET_SHORT")

	done = set("", "hub_token", "hf_0123456789")
	require.Equal(t, ExitUsage, done.code)
	require.Contains(t, done.stderr, "no argument")
	require.NotContains(t, done.stderr, "hf_0123")

	require.Equal(t, ExitUsage, set("\n", "empty").code)
	require.Equal(t, ExitOK, set(strings.Repeat("x", berth.MaxSecretBytes)+"\n", "large").code)
	require.Equal(t, ExitUsage, set(strings.Repeat("x", berth.MaxSecretBytes+1), "larger").code)
	require.Equal(t, ExitUsage, set(strings.Repeat("x", berth.MaxSecretBytes)+"\r\n\n", "larger").code, "it is never stored in part")
	require.Equal(t, 4, store.Count("secrets"))
	require.Equal(t, ExitUsage, set("", "missing", "--from-file", file+".none").code)

	listed := succeed(t, url, "secret", "list", "-o", "csv")
	require.Contains(t, listed.stdout, "hub_token,1,")

	require.Equal(t, ExitOK, execute(t.Context(), url, "secret", "delete", "hub_token").code)
	require.Equal(t, ExitNotFound, execute(t.Context(), url, "secret", "delete", "hub_token").code)
}

func ciphertextLength(t *testing.T, store *apitest.Store, name string) int {
	t.Helper()

	sealed, err := store.GetSecret(t.Context(), name)
	require.NoError(t, err)

	return len(sealed.Ciphertext)
}
