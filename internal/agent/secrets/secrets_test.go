package secrets_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/agent/secrets"
)

func makeKey(t *testing.T) (path, public string) {
	t.Helper()

	path = filepath.Join(t.TempDir(), "secrets.key")
	public, err := secrets.Make(path)
	require.NoError(t, err)

	return path, public
}

func read(t *testing.T, path string) *secrets.Keys {
	t.Helper()

	keys, err := secrets.Read(path)
	require.NoError(t, err)

	return keys
}

func write(t *testing.T, mode os.FileMode, lines ...string) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), mode))
	require.NoError(t, os.Chmod(path, mode))

	return path
}

func TestKeys_WhatIsSealedOpensUnderItsNameOnly(t *testing.T) {
	t.Parallel()

	path, public := makeKey(t)
	keys := read(t, path)
	require.Equal(t, public, keys.Public())
	require.Equal(t, []string{public}, keys.Opens())

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	for _, value := range [][]byte{[]byte("x"), []byte("hf_0123456789"), bytes.Repeat([]byte{0, 1, '\n', 255}, berth.MaxSecretBytes/4)} {
		sealed, err := keys.Seal("hub", value)
		require.NoError(t, err)
		require.Equal(t, public, sealed.Key)
		require.True(t, bytes.HasPrefix(sealed.Ciphertext, []byte("age-encryption.org/v1")))
		require.Less(t, len(sealed.Ciphertext), 128<<10, "the database takes it")

		if len(value) > 8 {
			require.NotContains(t, string(sealed.Ciphertext), string(value[:9]))
		}

		opened, err := keys.Open(sealed)
		require.NoError(t, err)
		require.Equal(t, value, opened)

		moved := sealed
		moved.Name = "other"
		_, err = keys.Open(moved)
		require.ErrorContains(t, err, `secret "other" is damaged, or was stored under another name`)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err))

		sealed.Ciphertext[len(sealed.Ciphertext)-1] ^= 1
		_, err = keys.Open(sealed)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err), "a flipped bit is seen")
	}
}

func TestKeys_TheFirstSealsAndAllOpen(t *testing.T) {
	t.Parallel()

	oldPath, oldPublic := makeKey(t)
	newPath, newPublic := makeKey(t)
	texts := make([]string, 2)

	for i, path := range []string{newPath, oldPath} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)

		texts[i] = string(text)
	}

	both := read(t, write(t, 0o600, texts...))
	require.Equal(t, newPublic, both.Public())
	require.ElementsMatch(t, []string{newPublic, oldPublic}, both.Opens())

	old := read(t, oldPath)
	sealed, err := old.Seal("hub", []byte("value"))
	require.NoError(t, err)

	opened, err := both.Open(sealed)
	require.NoError(t, err)
	require.Equal(t, "value", string(opened))

	_, err = read(t, newPath).Open(sealed)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))
	require.ErrorContains(t, err, oldPublic)
}

func TestKeys_APublicKeySealsAndOpensNothing(t *testing.T) {
	t.Parallel()

	path, public := makeKey(t)
	server := read(t, write(t, 0o644, "# of the workers", public))
	require.Empty(t, server.Opens())

	sealed, err := server.Seal("hub", []byte("value"))
	require.NoError(t, err)

	_, err = server.Open(sealed)
	require.Equal(t, berth.KindUnavailable, berth.KindOf(err))

	_, err = (*secrets.Keys)(nil).Open(sealed)
	require.ErrorContains(t, err, "--secrets-key")
	require.Empty(t, (*secrets.Keys)(nil).Opens())

	opened, err := read(t, path).Open(sealed)
	require.NoError(t, err)
	require.Equal(t, "value", string(opened))
}

func TestRead_SaysWhatToType(t *testing.T) {
	t.Parallel()

	path, public := makeKey(t)
	text, err := os.ReadFile(path)
	require.NoError(t, err)

	private := strings.TrimSpace(strings.Split(string(text), "\n")[2])
	require.True(t, strings.HasPrefix(private, "AGE-SECRET-KEY-1"))

	for name, test := range map[string]struct{ path, want string }{
		"missing":         {filepath.Join(t.TempDir(), "none"), "restore it from its backup; or start without --secrets-key"},
		"readable":        {write(t, 0o644, string(text)), "`chmod 600 "},
		"readable, group": {write(t, 0o640, public, string(text)), "(mode 0640)"},
		"empty":           {write(t, 0o600, "", "# nothing"), "has no key"},
		"malformed":       {write(t, 0o600, "# key", private[:30]+"!"+private[31:]), "line 2 of the key file"},
		"cut":             {write(t, 0o600, public, private[:40]), "line 2 of the key file"},
		"another format":  {write(t, 0o600, "ssh-ed25519 AAAA"), "line 1 of the key file"},
		"a directory":     {t.TempDir(), "is a directory, such as Docker makes"},
	} {
		_, err := secrets.Read(test.path)
		require.ErrorContains(t, err, test.want, name)
		require.Equal(t, berth.KindInvalid, berth.KindOf(err), name)
		require.NotContains(t, err.Error(), private[20:28], name)
	}

	_, err = secrets.Make(t.TempDir())
	require.ErrorContains(t, err, "is a directory, such as Docker makes")

	_, err = secrets.Make(path)
	require.Equal(t, berth.KindConflict, berth.KindOf(err), "a key is never overwritten")
	require.Equal(t, public, read(t, path).Public())
}
