// Package firewall keeps what comes from one bridge of this machine away from a
// cloud's metadata services, which may hand out the machine's credentials:
//
//	FORWARD ──▶ DOCKER-USER ─┐ -i BRIDGE
//	                         ├──────────▶ BERTH-METADATA: reject TCP to their addresses, port 53 excepted
//	INPUT ───────────────────┘ -i BRIDGE
//
// Packets of other bridges never enter the chain. Docker keeps DOCKER-USER first in
// FORWARD, before its own rules that accept; where another program has a rule before it,
// as Calico does, the jump is in FORWARD itself. INPUT sees what a program of this
// machine answers itself, by a rule that changes the destination, as Amazon's agent for
// ECS and kube2iam do.
package firewall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berthml/berth"
)

const (
	// Chain holds the rules. Nothing but this package writes to it.
	Chain = "BERTH-METADATA"

	dockerUser = "DOCKER-USER"

	// lockSeconds is how long iptables waits for another program that changes the
	// rules; dockerd holds its lock for some ms.
	lockSeconds = "5"

	// busyExit is the exit status of iptables when it did not get that lock, or
	// another program changed the rules beneath it. Its nft variant ends so, too, when
	// the kernel refuses a rule, so that its words must tell.
	busyExit = 4

	// tries bounds how often rules are put in again that are gone at once.
	tries = 3
)

// family is one of the two protocols.
type family struct {
	tool      string
	addresses []string
}

// families are the addresses under which clouds serve metadata and credentials. Name
// servers are at some of them, too (Google: 169.254.169.254, Azure: 168.63.129.16), so
// port 53 stays open, and so does UDP: time servers.
var families = []family{
	{"iptables", []string{
		"169.254.0.0/16",  // AWS, Google, Azure, Oracle, OpenStack, IBM, DigitalOcean: .169.254; ECS: .170.2; EKS: .170.23; Tencent: .0.23; Scaleway: .42.42
		"100.100.100.200", // Alibaba
		"168.63.129.16",   // Azure's wire server, ports 80 and 32526
	}},
	{"ip6tables", []string{
		"fd00:ec2::254",      // AWS
		"fd00:ec2::23",       // EKS
		"fd20:ce::254",       // Google
		"fd00:c1::a9fe:a9fe", // Oracle
		"fd00:42::42",        // Scaleway
	}},
}

// ByHand is the command by which an administrator closes the service to what every
// container of a machine sends through it.
var ByHand = "iptables -I " + dockerUser + " -p tcp -d " + strings.Join(families[0].addresses, ",") + " ! --dport 53 -j REJECT"

// protocols are those of a bridge's containers.
func protocols(ipv6 bool) []family {
	if ipv6 {
		return families
	}

	return families[:1]
}

// rules are those of the chain, in the words of iptables. A job's search for credentials
// ends at once. The first of an address answers with a reset, of which the kernel sends
// as many as are due. The second is for packets whose destination another rule has
// changed: a reset would not find back, as the kernel does not change its source, and
// so they are answered by ICMP (measured on Linux 6.18, 2026-11-26).
func (f family) rules() (rules [][]string) {
	for _, address := range f.addresses {
		rules = append(rules,
			[]string{"-p", "tcp", "-d", address, "!", "--dport", "53", "-j", "REJECT", "--reject-with", "tcp-reset"},
			[]string{"-p", "tcp", "-m", "conntrack", "--ctorigdst", address, "!", "--ctorigdstport", "53", "-j", "REJECT"})
	}

	return rules
}

// Firewall is that of this network namespace.
type Firewall struct {
	command func(ctx context.Context, name string, args ...string) *exec.Cmd
}

// New returns the firewall. It touches nothing yet.
func New() *Firewall { return &Firewall{command: exec.CommandContext} }

// Check says why rules cannot be put in here: iptables is not there, or may not be
// used. ipv6 is as Block's. Errors: invalid; unavailable while another program holds the
// lock; ctx's cause.
func (f *Firewall) Check(ctx context.Context, ipv6 bool) error {
	for _, fam := range protocols(ipv6) {
		if _, err := f.read(ctx, fam); err != nil {
			return err
		}
	}

	return nil
}

// HasBridge says why a bridge of Docker is not in this network namespace, where rules
// for it would match nothing. gateways are its addresses, as Docker has them: those of
// IPv6 with the length of the prefix up to Docker 27.
// Errors: invalid.
func HasBridge(bridge string, gateways []string) error {
	elsewhere := berth.Errorf(berth.KindInvalid, "Docker's bridge %q is not in the worker's network namespace: "+
		"the worker is in a container, or Docker is (rootless, or a Docker in Docker)", bridge)

	device, err := net.InterfaceByName(bridge)
	if err != nil {
		return elsewhere
	}

	addresses, err := device.Addrs()
	if err != nil {
		return berth.Errorf(berth.KindInvalid, "reading addresses of %q: %w", bridge, err)
	}

	for _, gateway := range gateways {
		gateway, _, _ = strings.Cut(gateway, "/")
		if !slices.ContainsFunc(addresses, func(a net.Addr) bool {
			network, ok := a.(*net.IPNet)

			return ok && network.IP.Equal(net.ParseIP(gateway))
		}) {
			return elsewhere
		}
	}

	return nil
}

// Block makes sure that the rules for a bridge are there and come first, and puts them
// in where not; it looks again after that. ipv6 says whether its containers have IPv6,
// too. changed tells that something was missing.
// Errors: as Check; invalid when the rules do not stay.
func (f *Firewall) Block(ctx context.Context, bridge string, ipv6 bool) (changed bool, err error) {
	for _, fam := range protocols(ipv6) {
		put, err := f.block(ctx, fam, bridge)
		if changed = changed || put; err != nil {
			return changed, err
		}
	}

	return changed, nil
}

// block is Block for one protocol. Putting in fails when another worker put the same
// rules in since they were read, so that it reads again before it gives up.
func (f *Firewall) block(ctx context.Context, fam family, bridge string) (changed bool, err error) {
	for range tries {
		now, cannot := f.read(ctx, fam)
		if cannot != nil {
			return changed, cannot
		}

		if now.comesFirst(bridge) && f.holds(ctx, fam, now) {
			return changed, nil
		}

		_, err = f.run(ctx, now.script(fam, bridge), fam.tool+"-restore", "--noflush", "--wait", lockSeconds)
		changed = changed || err == nil
	}

	if err != nil {
		return changed, err
	}

	return changed, berth.Errorf(berth.KindInvalid, "the rules of chain %s for %q do not stay: another program takes them away at once; see `%s -S`",
		Chain, bridge, fam.tool)
}

// holds reports whether the chain has our rules and nothing else. iptables itself
// compares them: its versions print the same rule in other words.
func (f *Firewall) holds(ctx context.Context, fam family, now table) bool {
	rules := fam.rules()
	if len(now[Chain]) != len(rules) {
		return false
	}

	for _, rule := range rules {
		if _, err := f.run(ctx, "", fam.tool, slices.Concat([]string{"-w", lockSeconds, "-C", Chain}, rule)...); err != nil {
			return false // where iptables itself fails, putting them in fails with its reason
		}
	}

	return true
}

// read returns the table of filters as it is.
func (f *Firewall) read(ctx context.Context, fam family) (table, error) {
	text, err := f.run(ctx, "", fam.tool, "-w", lockSeconds, "-S")

	return parse(text), err
}

// run runs a tool of iptables and returns what it prints.
func (f *Firewall) run(ctx context.Context, input, tool string, args ...string) (string, error) {
	path, err := find(tool)
	if err != nil {
		return "", berth.Errorf(berth.KindInvalid, "%s is not installed on this machine, or not for this user to run", tool)
	}

	var stdout, stderr bytes.Buffer

	cmd := f.command(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr

	err = cmd.Run()
	said := strings.ReplaceAll(strings.TrimSpace(stderr.String()), "\n", "; ")
	locked := strings.Contains(said, "xtables lock") || strings.Contains(said, "temporarily unavailable")

	var exit *exec.ExitError

	switch {
	case err == nil:
		return stdout.String(), nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("running %s: %w", tool, context.Cause(ctx))
	case errors.As(err, &exit) && exit.ExitCode() == busyExit && locked:
		return "", berth.Errorf(berth.KindUnavailable, "running %s: it is busy: %s", tool, said)
	default:
		return "", berth.Errorf(berth.KindInvalid, "running %s: %w: %s", tool, err, said)
	}
}

// find looks for a tool also where root alone has it on PATH.
func find(tool string) (string, error) {
	path, err := exec.LookPath(tool)
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if err != nil {
			path, err = exec.LookPath(filepath.Join(dir, tool))
		}
	}

	return path, err
}
