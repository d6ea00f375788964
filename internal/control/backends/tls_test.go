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
		"plain":               {server.Address, TLS{}, nil},
		"mutual":              {mutual, TLS{ca: authority.File, cert: ours.Cert, key: ours.Key, serverName: name}, nil},
		"server only":         {open, TLS{ca: authority.File}, nil},
		"API key":             {open, TLS{ca: authority.File, apiKeyFile: key}, nil},
		"no authority":        {open, TLS{serverName: "127.0.0.1"}, []string{"unknown authority"}},
		"another authority":   {mutual, TLS{ca: stranger.File, cert: ours.Cert, key: ours.Key, serverName: name}, []string{"unknown authority"}},
		"another name":        {mutual, TLS{ca: authority.File, cert: ours.Cert, key: ours.Key}, []string{"certificate", "127.0.0.1"}},
		"TLS to plain":        {server.Address, TLS{ca: authority.File}, []string{"first record does not look like a TLS handshake"}},
		"no such authority":   {mutual, TLS{ca: filepath.Join(dir, "none")}, []string{"--temporal-tls-ca", "open "}},
		"an empty authority":  {mutual, TLS{ca: empty}, []string{"--temporal-tls-ca", "failed adding server CA"}},
		"certificate alone":   {mutual, TLS{cert: ours.Cert}, []string{"give both or neither"}},
		"another's key":       {mutual, TLS{cert: ours.Cert, key: theirs.Key}, []string{"--temporal-tls-key", "private key does not match"}},
		"no such API key":     {open, TLS{apiKeyFile: filepath.Join(dir, "none")}, []string{"--temporal-api-key-file: open "}},
		"an empty API key":    {open, TLS{apiKeyFile: empty}, []string{"must hold one key"}},
		"API key without TLS": {server.Address, TLS{apiKeyFile: key}, []string{"first record does not look like a TLS handshake"}},
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
