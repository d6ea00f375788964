//go:build integration

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berthml/berth/api/client"
)

// looksForCredentials is what a program does that looks for the machine's credentials,
// and for a name by the name server at the same address.
const looksForCredentials = `
import socket, time, urllib.request
def fetch(address):
    began = time.monotonic()
    try: said = urllib.request.urlopen("http://%s/" % address, timeout=10).read().decode()
    except Exception as e: said = str(e)
    print(address, "said", said, "soon" if time.monotonic() - began < 5 else "late")
for address in ("` + metadataAddress + `", "` + ecsAddress + `", "[` + metadataAddress6 + `]"): fetch(address)
question = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05berth\x04test\x00\x00\x01\x00\x01"
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(10)
udp.sendto(question, ("` + metadataAddress + `", 53))
print("udp names", socket.inet_ntoa(udp.recv(512)[-4:]))
tcp = socket.create_connection(("` + metadataAddress + `", 53), 10)
tcp.sendall(len(question).to_bytes(2, "big") + question)
print("tcp names", socket.inet_ntoa(tcp.recv(512)[-4:]))
print("acc=1", flush=True)
`

// curious is a sweep of one trial that looks for credentials.
func curious() string {
	return "name: curious\nimage: berth-examples/python:3.11\nnetwork: true\ncommand:\n  - python3\n  - -c\n  - |\n    " +
		strings.ReplaceAll(strings.TrimSpace(looksForCredentials), "\n", "\n    ") + "\n  - \"{{n}}\"\n" +
		"parameters: [{name: n, values: [1]}]\nobjective: {metric: acc, goal: maximize}\nlimits: {max_trials: 1}\nmetrics: {source: stdout}\n"
}

// look runs the trial and returns what it saw. It finds the name server in any case.
func (s *stack) look() string {
	s.t.Helper()

	id := s.submit(curious())
	sweep := s.until(id, time.Minute, ended)
	require.Equal(s.t, client.SweepStateSucceeded, sweep.State, sweep.Reason)

	log := s.log(s.attempts(id)[0].ID)
	require.Contains(s.t, log, "udp names "+answeredName)
	require.Contains(s.t, log, "tcp names "+answeredName)

	return log
}

// requireBlocked holds that a trial with a network is refused the machine's
// credentials, at once. ipv6 says whether it has IPv6, too.
func (s *stack) requireBlocked(ipv6 bool) {
	s.t.Helper()

	log := s.look()
	require.NotContains(s.t, log, credentials)
	require.Contains(s.t, log, metadataAddress+" said <urlopen error [Errno 111] Connection refused> soon")
	require.Contains(s.t, log, ecsAddress+" said <urlopen error [Errno 111] Connection refused> soon")

	if ipv6 {
		require.Contains(s.t, log, "["+metadataAddress6+"] said <urlopen error [Errno 111] Connection refused> soon")
	}
}

// outsider is what a container that is not Berth's sees on a network.
func outsider(t *testing.T, network string) string {
	t.Helper()

	out, err := exec.CommandContext(t.Context(), "docker", "run", "--rm", "--network", network, "berth-examples/python:3.11",
		"python3", "-c", looksForCredentials).CombinedOutput()
	require.NoError(t, err, string(out))

	return string(out)
}

// again starts the worker anew with other flags.
func (s *stack) again(flags ...string) {
	s.t.Helper()

	stop(s.worker, syscall.SIGTERM)
	s.flags = flags
	s.startWorker()
}

// removeRules takes the rules away, as docs/production.md says, and the network of trials.
func removeRules() {
	for _, tool := range []string{"iptables", "ip6tables"} {
		quietly("sh", "-c", tool+` -S | sed -n 's/^-A \(.* -j BERTH-METADATA\)$/-D \1/p' | xargs -r -L1 `+tool)
		quietly(tool, "-F", "BERTH-METADATA")
		quietly(tool, "-X", "BERTH-METADATA")
	}

	quietly("docker", "network", "rm", "berth-trials")
}

// TestMetadata: a trial with a network does not get a machine's credentials from its
// cloud, and finds the name server at the same address; containers of others get what
// they got before. It runs alone: rules and network are the machine's.
func TestMetadata(t *testing.T) { //nolint:paralleltest // see above
	fakeCloud(t)
	t.Cleanup(removeRules)
	removeRules()

	s := start(t, "--block-metadata", "off")

	// Without it the trial has the credentials: what it is refused below is there.
	log := s.look()
	require.Contains(t, log, metadataAddress+" said "+credentials)
	require.Contains(t, log, ecsAddress+" said "+credentials)
	require.Error(t, exec.CommandContext(t.Context(), "docker", "network", "inspect", "berth-trials").Run(), "off makes no network")

	// A worker without the right to change the firewall says so, or does not start.
	s.program = filepath.Join(t.TempDir(), "berth")
	require.NoError(t, os.WriteFile(s.program, []byte("#!/bin/sh\nexec setpriv --bounding-set=-net_admin "+binary+" \"$@\"\n"), 0o700)) //nolint:gosec // G306: a program
	s.again()
	require.Contains(t, s.look(), metadataAddress+" said "+credentials)
	require.Contains(t, s.output("worker"), "this worker cannot block it")

	stop(s.worker, syscall.SIGTERM)
	s.flags = []string{"--block-metadata", "require"}
	s.startWorkerProcess()
	require.Eventually(t, func() bool { return !lives(s.worker) }, startTimeout, tick)
	require.Contains(t, s.output("worker"), "run the worker as root on the machine itself")
	require.Error(t, exec.CommandContext(t.Context(), "docker", "network", "inspect", "berth-trials").Run(), "nothing was made in vain")

	s.program = ""
	s.again()
	s.requireBlocked(false)
	require.Contains(t, s.output("worker"), "rejects what trials with a network send")

	seen := outsider(t, "bridge")
	require.Contains(t, seen, metadataAddress+" said "+credentials)
	require.Contains(t, seen, ecsAddress+" said "+credentials)

	// Another program takes the rules away, or puts one before them.
	for _, loss := range []string{
		"iptables -F DOCKER-USER", "iptables -F BERTH-METADATA", "iptables -I DOCKER-USER -j RETURN",
		"iptables -I BERTH-METADATA -j RETURN", "iptables -D INPUT -i berth0 -j BERTH-METADATA",
	} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", loss).CombinedOutput()
		require.NoError(t, err, "%s: %s", loss, out)
		s.requireBlocked(false)
	}

	// Also while no other trial starts, by a worker that started anew.
	s.again()
	require.NoError(t, exec.CommandContext(t.Context(), "iptables", "-F", "BERTH-METADATA").Run())
	require.Eventually(t, func() bool { return !strings.Contains(outsider(t, "berth-trials"), credentials) }, time.Minute, tick)

	// An administrator makes the network, with IPv6.
	removeRules()
	out, err := exec.CommandContext(t.Context(), "docker", "network", "create", "--ipv6", "--subnet", "fd00:be27::/64",
		"--opt", "com.docker.network.bridge.name=berth0", "berth-trials").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, outsider(t, "berth-trials"), "["+metadataAddress6+"] said "+credentials)

	s.again("--block-metadata", "require")
	require.Contains(t, s.output("worker"), "rejects what trials with a network send", "before the first trial")
	s.requireBlocked(true)
}
