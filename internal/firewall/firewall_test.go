//go:build integration

package firewall

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/runtimetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup returns the firewall of a network namespace of the test's own, and what runs a
// command there.
func setup(t *testing.T) (*Firewall, func(command string) string) {
	t.Helper()

	for _, tool := range []string{"ip", "iptables", "ip6tables"} {
		if _, err := exec.LookPath(tool); err != nil || os.Geteuid() != 0 {
			runtimetest.Skip(t, "needs root, ip and iptables: %v", err)
		}
	}

	space := "berth-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	require.NoError(t, exec.CommandContext(t.Context(), "ip", "netns", "add", space).Run())
	t.Cleanup(func() {
		require.NoError(t, exec.CommandContext(context.WithoutCancel(t.Context()), "ip", "netns", "del", space).Run())
	})

	f := &Firewall{command: func(ctx context.Context, name string, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", space, name}, args...)...)
	}}

	return f, func(command string) string {
		out, err := exec.CommandContext(t.Context(), "ip", "netns", "exec", space, "sh", "-c", command).CombinedOutput()
		require.NoError(t, err, "%s: %s", command, out)

		return string(out)
	}
}

// Rules that are there stay as they are, and those that are gone, or behind another, come
// again; what others have stays.
func TestBlock(t *testing.T) {
	t.Parallel()

	f, run := setup(t)
	require.NoError(t, f.Check(t.Context()))
	run("iptables -N DOCKER-USER; iptables -A FORWARD -j DOCKER-USER; iptables -A DOCKER-USER -j RETURN; iptables -A INPUT -i lo -j ACCEPT")

	block := func() bool {
		changed, err := f.Block(t.Context(), "berth0", true)
		require.NoError(t, err)

		return changed
	}

	require.True(t, block())
	require.False(t, block(), "nothing was missing")

	whole := run("iptables -S")
	require.Contains(t, whole, "-A DOCKER-USER -i berth0 -j BERTH-METADATA\n-A DOCKER-USER -j RETURN\n")
	require.Contains(t, whole, "-A INPUT -i berth0 -j BERTH-METADATA\n-A INPUT -i lo -j ACCEPT\n")
	require.Contains(t, run("ip6tables -S"), "-A FORWARD -i berth0 -j BERTH-METADATA\n", "Docker has no chain there")

	for _, loss := range []string{
		"iptables -D DOCKER-USER 1", "iptables -D INPUT 1", "iptables -D BERTH-METADATA 2", "iptables -F BERTH-METADATA",
		"iptables -I BERTH-METADATA -s 10.0.0.0/8 -j RETURN", "iptables -R BERTH-METADATA 1 -p udp -j REJECT",
		"iptables -F DOCKER-USER; iptables -A DOCKER-USER -j RETURN; iptables -A DOCKER-USER -i berth0 -j BERTH-METADATA",
	} {
		run(loss)
		require.True(t, block(), loss)
		require.False(t, block(), loss)
		require.Equal(t, whole, run("iptables -S"), loss)
	}

	run("ip6tables -F")
	require.True(t, block())
	require.False(t, block())
}

// Without IPv6 its rules are left alone.
func TestBlock_WithoutIPv6(t *testing.T) {
	t.Parallel()

	f, run := setup(t)
	changed, err := f.Block(t.Context(), "berth0", false)
	require.NoError(t, err)
	require.True(t, changed)
	require.NotContains(t, run("ip6tables -S"), Chain)
	require.Contains(t, run("iptables -S"), "-A FORWARD -i berth0 -j BERTH-METADATA\n", "no Docker is here")
}

// A user who may not change the firewall is told so.
func TestCheck_WithoutRights(t *testing.T) {
	t.Parallel()

	if _, err := exec.LookPath("setpriv"); err != nil || os.Geteuid() != 0 {
		runtimetest.Skip(t, "needs root and setpriv: %v", err)
	}

	f := &Firewall{command: func(ctx context.Context, name string, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, "setpriv", append([]string{"--reuid", "65534", "--clear-groups", name}, args...)...)
	}}
	err := f.Check(t.Context())
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	require.ErrorContains(t, err, "ermission denied")
}

// A bridge that Docker has elsewhere is told from one that is here.
func TestHasBridge(t *testing.T) {
	t.Parallel()

	require.NoError(t, HasBridge("lo", []string{"127.0.0.1"}))
	require.ErrorContains(t, HasBridge("lo", []string{"172.17.0.1"}), "not in the worker's network namespace")
	require.ErrorContains(t, HasBridge("berth-none", nil), "not in the worker's network namespace")
}
