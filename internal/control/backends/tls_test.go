//go:build integration

package backends

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/devstack"
	"github.com/berthml/berth/internal/testkit/certtest"
)

// ping asks the Temporal that the flags name.
func ping(t *testing.T, b Backends) error {
	t.Helper()

	raw, wrapped, err := b.DialTemporal(slog.New(slog.DiscardHandler), berth.Installation{ID: "0192d3a0-0000-7000-8000-000000000001"})
	if err != nil {
		return err
	}
	defer raw.Close()

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	return wrapped.Ping(ctx)
}

// A real Temporal behind a proxy that speaks TLS for it and asks for
// certificates.
func TestTemporalTLS(t *testing.T) {
	t.Parallel()

	server, err := devstack.StartTemporal(devstack.TemporalConfig{Dir: t.TempDir(), InMemory: true, Headless: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })

	dir := t.TempDir()
	authority, stranger := certtest.NewAuthority(t, dir), certtest.NewAuthority(t, dir)
	ours, theirs := authority.Sign("client", time.Hour, "worker"), stranger.Sign("stranger", time.Hour, "worker")
	cert := authority.Sign("temporal", time.Hour, "temporal.example")
	mutual := certtest.Terminate(t, cert.Config(t, authority), server.Address)
	open := certtest.Terminate(t, authority.Sign("open", time.Hour, "127.0.0.1").Config(t, nil), server.Address)
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))

	key := filepath.Join(dir, "api-key")
	require.NoError(t, os.WriteFile(key, []byte("secret\n"), 0o600))

	const name = "temporal.example"

	for title, c := range map[string]struct {
		address string
		tls     TLS
		says    []string // nothing = Temporal answers
	}{
		"plain":                {server.Address, TLS{}, nil},
		"mutual":               {mutual, TLS{ca: authority.File, cert: ours.Cert, key: ours.Key, serverName: name}, nil},
		"server only":          {open, TLS{ca: authority.File}, nil},
		"API key":              {open, TLS{ca: authority.File, apiKeyFile: key}, nil},
		"no authority":         {open, TLS{serverName: "127.0.0.1"}, []string{"unknown authority", "--temporal-tls-ca must name the authority"}},
		"another authority":    {mutual, TLS{ca: stranger.File, cert: ours.Cert, key: ours.Key, serverName: name}, []string{"unknown authority", "--temporal-tls-ca"}},
		"another name":         {mutual, TLS{ca: authority.File, cert: ours.Cert, key: ours.Key}, []string{"it is for " + name, "give --temporal-tls-server-name"}},
		"no certificate":       {mutual, TLS{ca: authority.File, serverName: name}, []string{"--temporal-tls-cert and --temporal-tls-key"}},
		"a stranger's":         {mutual, TLS{ca: authority.File, cert: theirs.Cert, key: theirs.Key, serverName: name}, []string{"--temporal-tls-cert and --temporal-tls-key must be of an authority that it trusts"}},
		"TLS to plain":         {server.Address, TLS{ca: authority.File}, []string{"speaks no TLS there: leave out --temporal-tls-"}},
		"plain to TLS":         {mutual, TLS{}, []string{"when Temporal speaks TLS, give --temporal-tls-ca"}},
		"no such authority":    {mutual, TLS{ca: filepath.Join(dir, "none")}, []string{"--temporal-tls-ca: open "}},
		"an empty authority":   {mutual, TLS{ca: empty}, []string{"holds no certificate in PEM"}},
		"certificate alone":    {mutual, TLS{cert: ours.Cert}, []string{"give both or neither"}},
		"another's key":        {mutual, TLS{cert: ours.Cert, key: theirs.Key}, []string{"must be PEM files of a certificate and its key"}},
		"no such API key":      {open, TLS{apiKeyFile: filepath.Join(dir, "none")}, []string{"--temporal-api-key-file: open "}},
		"an empty API key":     {open, TLS{apiKeyFile: empty}, []string{"must hold one key"}},
		"API key without TLS":  {server.Address, TLS{apiKeyFile: key}, []string{"speaks no TLS there"}},
		"API key, plain to us": {open, TLS{apiKeyFile: key}, []string{"--temporal-tls-ca must name the authority"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()

			err := ping(t, Backends{TemporalAddress: c.address, TemporalNamespace: "default", TLS: c.tls})
			if c.says == nil {
				require.NoError(t, err)

				return
			}

			for _, says := range c.says {
				require.ErrorContains(t, err, says)
			}
		})
	}
}

// A renewed certificate is used at the next connection.
func TestTemporalTLS_RenewedCertificate(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	authority := certtest.NewAuthority(t, dir)
	first := authority.Sign("client", time.Hour, "worker")
	settings := TLS{cert: first.Cert, key: first.Key}

	before, err := settings.pair()
	require.NoError(t, err)

	authority.Sign("client", time.Hour, "worker") // the same files

	after, err := settings.pair()
	require.NoError(t, err)
	require.NotEqual(t, before.Leaf.SerialNumber, after.Leaf.SerialNumber)
}
