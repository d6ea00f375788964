package main

import (
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/cli"
	"github.com/berthml/berth/internal/control/backends"
)

// A second `berth dev` on one port says so before it makes a database.
func TestDev_PortIsTaken(t *testing.T) {
	t.Parallel()

	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)

	defer func() { require.NoError(t, taken.Close()) }()

	var d development

	d.gpus.DataDir, d.listen = filepath.Join(t.TempDir(), "data"), taken.Addr().String()
	err = d.run(t.Context(), io.Discard, slog.New(slog.DiscardHandler))
	require.Equal(t, berth.KindConflict, berth.KindOf(err))
	require.ErrorContains(t, err, "choose another by --listen")
	require.NoDirExists(t, d.gpus.DataDir)
}

// Another Berth may have the address that commands look at without a word.
func TestDev_SaysHowCommandsFindIt(t *testing.T) {
	t.Parallel()

	var (
		d   development
		out strings.Builder
	)

	d.gpus.DataDir = t.TempDir()
	d.announce(&out)("http://127.0.0.1:8081")
	require.Contains(t, out.String(), "export BERTH_SERVER=http://127.0.0.1:8081\nTry: berth sweep submit")

	out.Reset()
	d.announce(&out)(cli.DefaultServer)
	require.NotContains(t, out.String(), "export")
}

// A user's shell, or profile, names the Temporal of a team. `berth dev` runs its own, and so do clients of
// that `berth dev`: neither namespace nor TLS nor key of the team applies to it.
func TestDev_InAShellThatNamesTheTeamsTemporal(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(profile, []byte("[profile.default]\naddress = \"team:7233\"\napi_key = \"key\"\n"), 0o600))
	t.Setenv("TEMPORAL_CONFIG_FILE", profile)
	t.Setenv("TEMPORAL_NAMESPACE", "prod")
	t.Setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", filepath.Join(t.TempDir(), "missing.pem"))

	namespace := func(b backends.Backends) (string, error) {
		raw, c, err := b.DialTemporal(slog.New(slog.DiscardHandler), berth.Installation{ID: "i-1"})
		if err != nil {
			return "", err
		}
		defer raw.Close()

		return c.Namespace(), nil
	}

	_, err := namespace(backends.Backends{TemporalAddress: "127.0.0.1:7233"})
	require.ErrorContains(t, err, "client cert", "of a Temporal that is not of berth dev they count")

	var d development

	d.gpus.DataDir, d.PostgresURL, d.TemporalAddress, d.OwnTemporal = t.TempDir(), "postgres://dev", "127.0.0.1:7233", true // as startTemporal leaves it
	require.NoError(t, d.Save(d.gpus.DataDir))

	var beside backends.Backends

	require.NoError(t, beside.Load(d.gpus.DataDir))
	require.Equal(t, "127.0.0.1:7233", beside.TemporalAddress)

	for name, b := range map[string]backends.Backends{"berth dev": d.Backends, "berth restore": beside} {
		got, err := namespace(b)
		require.NoError(t, err, name)
		require.Equal(t, "default", got, name)
	}

	typed := d.Backends
	typed.TemporalNamespace = "mine"

	got, err := namespace(typed)
	require.NoError(t, err)
	require.Equal(t, "mine", got)

	other := backends.Backends{TemporalAddress: "team:7233"} // typed: not that of the file
	require.NoError(t, other.Load(d.gpus.DataDir))
	require.False(t, other.OwnTemporal)

	d.OwnTemporal = false // --temporal-address of another
	require.NoError(t, d.Save(d.gpus.DataDir))

	beside = backends.Backends{}
	require.NoError(t, beside.Load(d.gpus.DataDir))
	require.False(t, beside.OwnTemporal)
}
