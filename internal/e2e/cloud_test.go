//go:build integration

package e2e

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/internal/runtimetest"
)

// A cloud that is made on this machine: a network namespace with a metadata service and
// a name server at the addresses that clouds have them at. The machine forwards what
// containers send there, as it would in a cloud; at an address of its own, packets would
// not be forwarded.
const (
	cloudVariable = "BERTH_TEST_CLOUD" // the test's program is the cloud's servers
	cloudSpace    = "berth-test-cloud"
	cloudOutside  = "berth-test-c0" // at most 15 letters
	cloudInside   = "berth-test-c1"

	metadataAddress  = "169.254.169.254"
	metadataAddress6 = "fd00:ec2::254"
	ecsAddress       = "169.254.170.2" // of a program of this machine itself, which an agent redirects to
	agentPort        = "51679"
	credentials      = "credentials of the machine"
	answeredName     = "192.0.2.77" // what the name server answers to all questions
)

// fakeCloud makes the cloud, which is there until the test ends. One test at a time
// has it, of all that run on the machine.
func fakeCloud(t *testing.T) {
	t.Helper()

	for _, tool := range []string{"ip", "iptables", "ip6tables", "setpriv"} {
		if _, err := exec.LookPath(tool); err != nil || os.Geteuid() != 0 {
			runtimetest.Skip(t, "needs root, ip, iptables and setpriv: %v", err)
		}
	}

	runtimetest.Alone(t, "network")

	// Docker turns it on for a network with IPv6, and leaves it on.
	const forwarding = "/proc/sys/net/ipv6/conf/all/forwarding"

	before, err := os.ReadFile(forwarding)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.WriteFile(forwarding, before, 0o600)) })

	remove := func() { // also what a test that was killed left
		quietly("ip", "netns", "del", cloudSpace)
		quietly("ip", "link", "del", cloudOutside)
		quietly("iptables", "-t", "nat", "-D", "PREROUTING", "-d", ecsAddress, "-p", "tcp", "--dport", "80", "-j", "DNAT", "--to-destination", "198.51.100.1:"+agentPort)
	}
	remove()
	t.Cleanup(remove)

	for line := range strings.Lines(`ip netns add ` + cloudSpace + `
		ip link add ` + cloudOutside + ` type veth peer name ` + cloudInside + ` netns ` + cloudSpace + `
		ip addr add 198.51.100.1/30 dev ` + cloudOutside + `
		ip addr add fd00:be27:c::1/64 dev ` + cloudOutside + ` nodad
		ip link set ` + cloudOutside + ` up
		ip -n ` + cloudSpace + ` addr add 198.51.100.2/30 dev ` + cloudInside + `
		ip -n ` + cloudSpace + ` addr add fd00:be27:c::2/64 dev ` + cloudInside + ` nodad
		ip -n ` + cloudSpace + ` addr add ` + metadataAddress + `/32 dev lo
		ip -n ` + cloudSpace + ` addr add ` + metadataAddress6 + `/128 dev lo
		ip -n ` + cloudSpace + ` link set lo up
		ip -n ` + cloudSpace + ` link set ` + cloudInside + ` up
		ip -n ` + cloudSpace + ` route add default via 198.51.100.1
		ip -n ` + cloudSpace + ` -6 route add default via fd00:be27:c::1
		ip route add ` + metadataAddress + `/32 via 198.51.100.2
		ip -6 route add ` + metadataAddress6 + `/128 via fd00:be27:c::2
		iptables -t nat -A PREROUTING -d ` + ecsAddress + ` -p tcp --dport 80 -j DNAT --to-destination 198.51.100.1:` + agentPort) {
		out, err := exec.Command("sh", "-c", line).CombinedOutput() //nolint:noctx // answers at once
		require.NoError(t, err, "%s: %s", line, out)
	}

	agent, err := net.Listen("tcp", "198.51.100.1:"+agentPort) //nolint:noctx // the same
	require.NoError(t, err)
	t.Cleanup(func() { _ = agent.Close() })

	go serveCredentials(agent)

	program, err := os.Executable()
	require.NoError(t, err)

	servers := exec.Command("ip", "netns", "exec", cloudSpace, program) //nolint:noctx // ended below
	servers.Env = append(os.Environ(), cloudVariable+"=1")
	launch(t, servers, filepath.Join(t.TempDir(), "cloud.log"), os.O_TRUNC)
	t.Cleanup(func() { stop(servers, syscall.SIGKILL) })

	require.Eventually(t, func() bool {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", net.JoinHostPort(metadataAddress6, "80")) // the last that is opened
		if err == nil {
			err = c.Close()
		}

		return err == nil
	}, startTimeout, tick)
}

func quietly(name string, args ...string) {
	_ = exec.CommandContext(context.Background(), name, args...).Run()
}

// serveCloud is the cloud's servers, inside its namespace.
func serveCloud() {
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}

	names, err := net.ListenPacket("udp", metadataAddress+":53") //nolint:noctx // for as long as the process runs
	check(err)

	streams, err := net.Listen("tcp", metadataAddress+":53") //nolint:noctx // the same
	check(err)

	metadata, err := net.Listen("tcp", metadataAddress+":80") //nolint:noctx // the same
	check(err)

	metadata6, err := net.Listen("tcp", net.JoinHostPort(metadataAddress6, "80")) //nolint:noctx // the same
	check(err)

	go func() {
		buffer := make([]byte, 512)

		for {
			n, from, err := names.ReadFrom(buffer)
			check(err)
			_, err = names.WriteTo(answerName(buffer[:n]), from)
			check(err)
		}
	}()
	go accept(streams, func(c net.Conn) {
		question := make([]byte, 514) // behind two bytes with its length
		if n, err := c.Read(question); err == nil && n > 2 {
			answer := answerName(question[2:n])
			_, _ = c.Write(append([]byte{0, byte(len(answer))}, answer...)) //nolint:gosec // G115: some bytes
		}
	})
	go serveCredentials(metadata)

	serveCredentials(metadata6)
}

// answerName answers a question for a name's address: the question itself, and one record.
func answerName(question []byte) []byte {
	end := 12 + bytes.IndexByte(question[12:], 0) + 5
	answer := append([]byte{question[0], question[1], 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0}, question[12:end]...)

	return append(append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4), net.ParseIP(answeredName).To4()...)
}

// serveCredentials answers every request with the machine's credentials.
func serveCredentials(l net.Listener) {
	accept(l, func(c net.Conn) {
		if n, err := c.Read(make([]byte, 4096)); err == nil && n > 0 {
			_, _ = io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\n"+credentials)
		}
	})
}

// accept serves connections until the listener is closed.
func accept(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}

		go func() {
			defer c.Close() //nolint:errcheck // the peer has what it gets

			serve(c)
		}()
	}
}
