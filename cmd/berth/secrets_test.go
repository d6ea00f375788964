package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/store/postgres"
	"github.com/berthml/berth/internal/testkit/pgtest"
)

// A secret that was deleted by force asks for no key any more, so its trials are placed
// on workers without one as well. There they must fail as bad_config too (not_found), as
// docs/production.md says, and not as a fault of the machine, which is tried again
// elsewhere and cordons the machine after some trials.
func TestOpener_WithoutAKeyKnowsADeletedSecret(t *testing.T) {
	t.Parallel()

	store, err := postgres.Open(t.Context(), postgres.Config{URL: pgtest.URL(t)})
	require.NoError(t, err)
	t.Cleanup(store.Close)

	m := &machine{}
	open := m.opener(store)
	require.NotNil(t, open, "runtrial takes nil for a fault of the host: infra, and another host is tried")

	_, err = open(t.Context(), "deleted")
	require.Equal(t, berth.KindNotFound, berth.KindOf(err))
}

// A name that is misspelt must not turn secrets off in silence: a program does not start
// without the file, and says how it would.
func TestOpenKeys_SaysHowToStartWithoutAFile(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "secrets.key")
	_, err := openKeys(path)
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	require.ErrorContains(t, err, "--secrets-key: there is no key file \""+path+"\": restore it from its backup")
	require.ErrorContains(t, err, "or start without --secrets-key (BERTH_SECRETS_KEY): no secret can be stored then, and trials that mount one wait, while others run")

	keys, err := openKeys("")
	require.NoError(t, err)
	require.Nil(t, keys)
}
