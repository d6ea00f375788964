package certtest

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"sync"
	"testing"
	"time"

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

	var (
		running sync.WaitGroup
		mu      sync.Mutex
		open    []net.Conn
	)

	keep := func(conn net.Conn) {
		mu.Lock()
		defer mu.Unlock()

		open = append(open, conn)
	}

	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}

			keep(conn)
			running.Go(func() { forward(conn, target, keep) })
		}
	})

	t.Cleanup(func() {
		_ = listener.Close()

		mu.Lock()
		for _, conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()

		running.Wait()
	})

	return listener.Addr().String()
}

// forward copies both ways until one end closes.
func forward(client net.Conn, target string, keep func(net.Conn)) {
	defer client.Close() //nolint:errcheck // a test's

	if conn, ok := client.(*tls.Conn); !ok || conn.Handshake() != nil { //nolint:noctx // the end of the test closes it
		return
	}

	server, err := net.DialTimeout("tcp", target, 10*time.Second) //nolint:noctx // bounded
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // a test's

	keep(server)

	done := make(chan struct{})

	go func() {
		defer close(done)

		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()

	_, _ = io.Copy(client, server)
	_ = client.Close()

	<-done
}
