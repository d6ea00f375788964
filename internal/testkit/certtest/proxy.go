package certtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Config is a server's with the pair. Its clients must show a certificate of the
// authority, unless that is nil.
func (p Pair) Config(t testing.TB, clients *Authority) *tls.Config {
	t.Helper()

	pair, err := tls.LoadX509KeyPair(p.Cert, p.Key)
	require.NoError(t, err)

	config := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	if clients != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		config.ClientCAs.AddCert(clients.cert)
	}

	return config
}

// Terminate speaks TLS for a plain TCP server until the test ends, and returns
// its own address on 127.0.0.1.
func Terminate(t testing.TB, config *tls.Config, target string) string {
	t.Helper()

	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(context.Background())

	var running sync.WaitGroup

	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}

			running.Go(func() { forward(ctx, conn, target) })
		}
	})

	t.Cleanup(func() {
		cancel()

		_ = listener.Close()

		running.Wait()
	})

	return listener.Addr().String()
}

// forward copies both ways until one end closes, or ctx ends.
func forward(ctx context.Context, client net.Conn, target string) {
	defer client.Close() //nolint:errcheck // a test's

	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", target)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // a test's

	defer context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })()

	var back sync.WaitGroup

	back.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})

	_, _ = io.Copy(client, server)
	_ = client.Close()

	back.Wait()
}
