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
	require.NoError(t, f.Check(t.Context(), true))
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

// A rule that another program has before Docker's chain may accept what the jump there
// never sees.
func TestBlock_BeforeARuleOfAnotherProgram(t *testing.T) {
	t.Parallel()

	f, run := setup(t)
	run("iptables -N DOCKER-USER; iptables -A FORWARD -j DOCKER-USER")

	_, err := f.Block(t.Context(), "berth0", false)
	require.NoError(t, err)
	run("iptables -I FORWARD -j ACCEPT")

	for _, want := range []bool{true, false} {
		changed, err := f.Block(t.Context(), "berth0", false)
		require.NoError(t, err)
		require.Equal(t, want, changed)
		require.Contains(t, run("iptables -S FORWARD"), "-A FORWARD -i berth0 -j BERTH-METADATA\n-A FORWARD -j ACCEPT\n-A FORWARD -j DOCKER-USER\n")
	}
}

// Another worker of the machine puts the same rules in between our look and our change.
func TestBlock_WithAnotherWorker(t *testing.T) {
	t.Parallel()

	other, run := setup(t)
	run("iptables -N DOCKER-USER; iptables -A FORWARD -j DOCKER-USER")

	for range 2 { // both put it in, as neither saw the other's
		_, err := other.run(t.Context(), table{"FORWARD": {"-j " + dockerUser}, dockerUser: nil}.script(families[0], "berth0"), "iptables-restore", "--noflush")
		require.NoError(t, err)
	}

	run("iptables -F DOCKER-USER")

	raced := false
	f := &Firewall{command: func(ctx context.Context, name string, args ...string) *exec.Cmd {
		if strings.HasSuffix(name, "iptables-restore") && !raced {
			raced = true
			changed, err := other.Block(ctx, "berth0", false)
			require.NoError(t, err)
			require.True(t, changed)
		}

		return other.command(ctx, name, args...)
	}}
	changed, err := f.Block(t.Context(), "berth0", false)
	require.NoError(t, err)
	require.False(t, changed, "the other did it")
	require.True(t, raced)
	require.Equal(t, 1, strings.Count(run("iptables -S INPUT"), Chain))
}

// What the kernel refuses stays refused, and the reason is told whole, whichever variant
// of iptables says it.
func TestRun_Refused(t *testing.T) {
	t.Parallel()

	f, _ := setup(t)
	_, err := f.run(t.Context(), "*filter\n:A - [0:0]\n:B - [0:0]\n-A A -j B\n-A B -j A\n-A INPUT -j A\nCOMMIT\n", "iptables-restore", "--noflush")
	require.Equal(t, berth.KindInvalid, berth.KindOf(err), err)
	require.ErrorContains(t, err, "line ")
	require.NotContains(t, err.Error(), "\n")
}

// Only a lock is worth waiting for.
func TestRun_Busy(t *testing.T) {
	t.Parallel()

	for said, want := range map[string]berth.Kind{
		"Another app is currently holding the xtables lock. Stopped waiting after 5s.":                              berth.KindUnavailable,
		"iptables: Resource temporarily unavailable.":                                                               berth.KindUnavailable,
		"iptables v1.8.9 (nf_tables): Could not fetch rule set generation id: Permission denied (you must be root)": berth.KindInvalid,
		"Fatal: can't open lock file /run/xtables.lock: Permission denied":                                          berth.KindInvalid,
	} {
		f := &Firewall{command: func(ctx context.Context, _ string, _ ...string) *exec.Cmd {
			return exec.CommandContext(ctx, "sh", "-c", `echo "$1" >&2; exit 4`, "sh", said)
		}}
		_, err := f.run(t.Context(), "", "sh")
		require.Equal(t, want, berth.KindOf(err), said)
		require.ErrorContains(t, err, said)
	}
}

// A bridge with IPv6 needs ip6tables, too.
func TestCheck_IPv6(t *testing.T) {
	t.Parallel()

	whole, _ := setup(t)
	f := &Firewall{command: func(ctx context.Context, name string, args ...string) *exec.Cmd {
		if strings.HasSuffix(name, "ip6tables") {
			return exec.CommandContext(ctx, "sh", "-c", "echo no IPv6 >&2; exit 3")
		}

		return whole.command(ctx, name, args...)
	}}
	require.NoError(t, f.Check(t.Context(), false))
	require.ErrorContains(t, f.Check(t.Context(), true), "no IPv6")
}

// What an administrator types closes all addresses.
func TestByHand(t *testing.T) {
	t.Parallel()

	_, run := setup(t)
	run("iptables -N DOCKER-USER; " + ByHand)

	rules := run("iptables -S DOCKER-USER")
	for _, address := range []string{"169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32"} {
		require.Contains(t, rules, "-A DOCKER-USER -d "+address+" -p tcp -m tcp ! --dport 53 -j REJECT")
	}

	require.Contains(t, production(t), ByHand, "docs/production.md has it, too")
}

// The commands of the documentation take away all rules, also those of a bridge that
// Docker named, and no others.
func TestUndo(t *testing.T) {
	t.Parallel()

	f, run := setup(t)
	run("iptables -N DOCKER-USER; iptables -A FORWARD -j DOCKER-USER; iptables -A INPUT -i lo -j ACCEPT")

	before := run("iptables -S; ip6tables -S")

	for _, bridge := range []string{"berth0", "br-0123456789ab"} {
		_, err := f.Block(t.Context(), bridge, true)
		require.NoError(t, err)
	}

	_, undo, found := strings.Cut(production(t), "```sh\nfor ip in ")
	require.True(t, found)
	undo, _, found = strings.Cut(undo, "docker network rm")
	require.True(t, found)
	run("for ip in " + undo)
	require.Equal(t, before, run("iptables -S; ip6tables -S"))
}

func production(t *testing.T) string {
	t.Helper()

	text, err := os.ReadFile("../../docs/production.md")
	require.NoError(t, err)

	return string(text)
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
	err := f.Check(t.Context(), false)
	require.Equal(t, berth.KindInvalid, berth.KindOf(err))
	require.ErrorContains(t, err, "ermission denied")
}

// A bridge that Docker has elsewhere is told from one that is here.
func TestHasBridge(t *testing.T) {
	t.Parallel()

	require.NoError(t, HasBridge("lo", []string{"127.0.0.1"}))
	require.NoError(t, HasBridge("lo", []string{"127.0.0.1/8"}), "as Docker up to 27 gives those of IPv6")
	require.ErrorContains(t, HasBridge("lo", []string{"172.17.0.1"}), "not in the worker's network namespace")
	require.ErrorContains(t, HasBridge("berth-none", nil), "not in the worker's network namespace")
}
