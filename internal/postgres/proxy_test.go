package postgres_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// disguise is a way to PostgreSQL on which some of the server's messages are
// changed: rewrite gets the type and body of each and returns its new body.
// The answer is the database's URL on that way.
func disguise(t *testing.T, target string, rewrite func(kind byte, body []byte) []byte) string {
	t.Helper()

	at, err := url.Parse(target)
	require.NoError(t, err)

	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed below
	require.NoError(t, err)

	var (
		ways  sync.WaitGroup
		mu    sync.Mutex
		conns []net.Conn
	)

	keep := func(c net.Conn) {
		mu.Lock()
		defer mu.Unlock()

		conns = append(conns, c)
	}

	backend := at.Host

	ways.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}

			server, err := net.Dial("tcp", backend) //nolint:noctx // closed below
			if err != nil {
				_ = client.Close()

				continue
			}

			keep(client)
			keep(server)
			ways.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
			ways.Go(func() { forward(client, server, rewrite); _ = client.Close() })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()

		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		ways.Wait()
	})

	at.Host = listener.Addr().String()

	return at.String()
}

// forward passes messages on: a byte of type, four of length, and a body
// (PostgreSQL manual, section "Message Formats").
func forward(to io.Writer, from io.Reader, rewrite func(kind byte, body []byte) []byte) {
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}

		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}

		body = rewrite(head[0], body)
		binary.BigEndian.PutUint32(head[1:], uint32(len(body)+4)) //nolint:gosec // G115: a short message

		if _, err := to.Write(slices.Concat(head, body)); err != nil {
			return
		}
	}
}

// ofVersion disguises the server as one of another version.
func ofVersion(version string) func(kind byte, body []byte) []byte {
	return func(kind byte, body []byte) []byte {
		if kind == 'S' && strings.HasPrefix(string(body), "server_version\x00") {
			return []byte("server_version\x00" + version + "\x00")
		}

		return body
	}
}

// pooled disguises the server as one behind a pooler, which makes up the
// process ids by which its clients cancel.
func pooled(kind byte, body []byte) []byte {
	if kind == 'K' {
		return append([]byte{0x7f, 1, 2, 3}, body[4:]...)
	}

	return body
}
