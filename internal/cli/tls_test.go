package cli

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api"
	"github.com/berthml/berth/internal/testkit/apitest"
	"github.com/berthml/berth/internal/testkit/certtest"
)

// serveTLS runs the real API with a certificate for 127.0.0.1, and returns its
// address.
func serveTLS(t *testing.T, pair certtest.Pair) string {
	t.Helper()

	certificate, err := api.LoadCertificate(pair.Cert, pair.Key, slog.New(slog.DiscardHandler))
	require.NoError(t, err)

	return run(t, apitest.Sample(t), nil, api.Config{Certificate: certificate})
}

func TestTLS(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	authority, stranger := certtest.NewAuthority(t, dir), certtest.NewAuthority(t, dir)
	address := serveTLS(t, authority.Sign("server", time.Hour, "127.0.0.1"))
	elsewhere := serveTLS(t, authority.Sign("elsewhere", time.Hour, "berth.example"))
	ended := serveTLS(t, authority.Sign("ended", -time.Minute, "127.0.0.1"))
	plain := serve(t, apitest.Sample(t))

	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))

	for name, c := range map[string]struct {
		server, ca string
		code       int
		says       string
	}{
		"own authority":      {"https://" + address, authority.File, ExitOK, "NAME"},
		"unknown authority":  {"https://" + address, "", ExitUsage, "give that one's file by --ca-file or BERTH_CA_FILE"},
		"another authority":  {"https://" + address, stranger.File, ExitUsage, "give that one's file by --ca-file or BERTH_CA_FILE"},
		"another name":       {"https://" + elsewhere, authority.File, ExitUsage, "--server has to name the server as the certificate does"},
		"ended":              {"https://" + ended, authority.File, ExitUsage, "expired"},
		"plain to TLS":       {"http://" + address, "", ExitUsage, "write https:// in --server"},
		"no scheme to TLS":   {address, "", ExitUsage, "write https:// in --server"},
		"TLS to plain":       {"https://" + plain[len("http://"):], "", ExitUsage, "write http:// in --server"},
		"no such file":       {"https://" + address, filepath.Join(dir, "none"), ExitUsage, "--ca-file: open "},
		"file without a PEM": {"https://" + address, empty, ExitUsage, "holds no certificate in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			args := []string{"sweep", "list"}
			if c.ca != "" {
				args = append(args, "--ca-file", c.ca)
			}

			got := execute(t.Context(), c.server, args...)
			require.Equal(t, c.code, got.code, got.stderr)
			require.Contains(t, got.stdout+got.stderr, c.says)
		})
	}
}
