package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/berthml/berth"
	"github.com/berthml/berth/internal/docker"
	"github.com/berthml/berth/internal/firewall"
)

// What --block-metadata says about trials with a network.
const (
	blockAuto    = "auto"    // they are kept from a cloud's metadata service where this worker may change the firewall
	blockRequire = "require" // or have no network here
	blockOff     = "off"     // they are on Docker's default network, and Berth changes no firewall
)

// wall is what of Docker and the firewall a metadataGuard needs.
type wall interface {
	// possible says why Berth cannot close the service here. It changes nothing. exists
	// is false when the network of trials is known not to be made yet.
	possible(ctx context.Context) (exists bool, err error)
	// close makes sure that the service is closed to what is on the network that it
	// returns. changed tells that it was not before.
	close(ctx context.Context) (network docker.Network, changed bool, err error)
}

// metadataGuard decides on which network of Docker trials with a network run, and
// keeps that one closed.
type metadataGuard struct {
	mode string
	wall wall
	log  *slog.Logger

	mu     sync.Mutex
	held   bool // it was closed once: from then on an error is no reason to leave it open
	open   bool // auto, and it cannot be closed here, which was said
	absent bool // auto, and when the worker started there was no network of trials to look after
	again  bool // that rules are put in again was said: a program that keeps its own first takes no end
}

// network is docker.Config.Network. The rules are looked at before each start: another
// program with rules may have taken them away, as a reload of firewalld does.
func (g *metadataGuard) network(ctx context.Context) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.mode == blockOff || g.open {
		return docker.DefaultNetwork, nil
	}

	network, changed, err := g.close(ctx)

	switch {
	case err == nil:
		g.say(network, changed)
		g.held = true

		return network.Name, nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case berth.KindOf(err) == berth.KindUnavailable: // Docker is away, or another program changes the rules: nothing is known
		return "", err
	case g.mode == blockAuto && !g.held:
		g.open = true
		g.log.Warn("trials with a network reach a cloud's metadata service from this machine, which may hand out its credentials, "+
			"unless a rule of yours blocks it, which Berth does not see: this worker cannot block it",
			"why", err, "by_hand", firewall.ByHand, "see", "docs/production.md, Network")

		return docker.DefaultNetwork, nil
	default:
		return "", fmt.Errorf("a cloud's metadata service cannot be kept from trials (--block-metadata=%s): %w", g.mode, err)
	}
}

// say tells of rules that were put in: the first time, and once of all others.
func (g *metadataGuard) say(network docker.Network, changed bool) {
	switch {
	case !changed || g.again:
	case g.held:
		g.again = true
		g.log.Warn("the rules that keep trials from a cloud's metadata service were gone, or behind a rule of another program: "+
			"Berth put them in again, and says so only this once", "bridge", network.Bridge, "chain", firewall.Chain)
	default:
		g.log.Info("rejects what trials with a network send to a cloud's metadata service", "network", network.Name, "bridge", network.Bridge,
			"chain", firewall.Chain, "undo", "docs/production.md, Network")
	}
}

// watch looks after the rules while trials run, too.
func (g *metadataGuard) watch(ctx context.Context, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()

	for said := ""; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}

		said = g.look(ctx, said)
	}
}

// look looks after the rules once. said is the error that the look before told, which
// is not told again; it returns its own.
func (g *metadataGuard) look(ctx context.Context, said string) string {
	if !g.looksAfter(ctx) {
		return ""
	}

	_, err := g.network(ctx)

	switch {
	case err == nil:
		return ""
	case ctx.Err() != nil || err.Error() == said:
		return said
	case berth.KindOf(err) == berth.KindUnavailable:
		g.log.Warn("cannot look at the rules that keep trials from a cloud's metadata service", "error", err)
	default:
		g.log.Error("trials with a network that run may reach a cloud's metadata service", "error", err)
	}

	return err.Error()
}

// looksAfter reports whether trials may run on the network that must be closed: one
// asked for it, or it was there when the worker started, and trials of its predecessor
// may be on it.
func (g *metadataGuard) looksAfter(ctx context.Context) bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.held || g.open || g.absent || g.mode == blockOff {
		return g.held
	}

	exists, err := g.wall.possible(ctx)
	g.absent = !exists

	return exists && berth.KindOf(err) != berth.KindUnavailable
}

func (g *metadataGuard) close(ctx context.Context) (docker.Network, bool, error) {
	if !g.held {
		if _, err := g.wall.possible(ctx); err != nil {
			return docker.Network{}, false, err
		}
	}

	return g.wall.close(ctx)
}

// dockerWall is the wall of this machine.
type dockerWall struct {
	docker   networks
	firewall *firewall.Firewall
}

// networks is what of Docker a dockerWall needs.
type networks interface {
	Network(ctx context.Context, name string) (docker.Network, error)
	EnsureTrialNetwork(ctx context.Context) (docker.Network, error)
}

// possible looks whether iptables may be used, and whether Docker's bridges are here: that
// of trials, or where it is not made yet, Docker's own.
func (w dockerWall) possible(ctx context.Context) (exists bool, err error) {
	network, err := w.docker.Network(ctx, docker.TrialNetwork)
	exists = berth.KindOf(err) != berth.KindNotFound

	if !exists {
		network, err = w.docker.Network(ctx, docker.DefaultNetwork)
		network.IPv6 = false // as Berth makes that of trials
	}

	switch {
	case err == nil:
		err = firewall.HasBridge(network.Bridge, network.Gateways)
	case berth.KindOf(err) == berth.KindNotFound: // a daemon may have none; then the network of trials tells
		err = nil
	}

	if err != nil {
		return exists, err
	}

	return exists, w.firewall.Check(ctx, network.IPv6)
}

func (w dockerWall) close(ctx context.Context) (docker.Network, bool, error) {
	network, err := w.docker.EnsureTrialNetwork(ctx)
	if err != nil {
		return network, false, err
	}

	if err := firewall.HasBridge(network.Bridge, network.Gateways); err != nil {
		return network, false, err
	}

	changed, err := w.firewall.Block(ctx, network.Bridge, network.IPv6)

	return network, changed, err
}

// guardMetadata returns the guard of this worker. Where it must hold, it holds before
// the worker takes its first trial. Errors: why it cannot.
func (m *machine) guardMetadata(ctx context.Context, w wall, log *slog.Logger) (*metadataGuard, error) {
	guard := &metadataGuard{mode: cmp.Or(m.blockMetadata, blockAuto), wall: w, log: log}
	if m.blockMetadata != blockRequire {
		return guard, nil
	}

	err := retry(ctx, log, "Docker and iptables", connectPatience, func() error { // another program may change the rules at boot
		_, err := guard.network(ctx)

		return err
	})
	if berth.KindOf(err) == berth.KindInvalid {
		err = fmt.Errorf("%w; run the worker as root on the machine itself, with iptables installed, or block the service by hand (%s) and leave --block-metadata out",
			err, firewall.ByHand)
	}

	return guard, err
}

// metadataServices are where most clouds serve metadata, and Alibaba does.
var metadataServices = []string{"169.254.169.254:80", "100.100.100.200:80"}

// metadataPatience is for a service on the machine's own link, which answers in a millisecond.
const metadataPatience = 500 * time.Millisecond

// inCloud reports whether a cloud's metadata service answers this machine.
func inCloud(ctx context.Context) bool {
	for _, address := range metadataServices {
		c, err := (&net.Dialer{Timeout: metadataPatience}).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = c.Close() // nothing was asked

			return true
		}
	}

	return false
}

// checkMetadata is about a worker that this user runs here. Outside clouds there is
// nothing to fix.
func checkMetadata(ctx context.Context, w wall, inCloud func(context.Context) bool) berth.Finding {
	_, err := w.possible(ctx)

	switch {
	case err == nil:
		return fine("network", "a worker of this user can keep trials with a network from a cloud's metadata service, and does unless --block-metadata is off")
	case !inCloud(ctx):
		return fine("network", "no cloud's metadata service answers here; a worker of this user could not keep trials with a network from one: "+err.Error())
	default:
		return berth.Finding{
			OK: true, Warn: true, Part: "network",
			What: "trials with a network reach the cloud's metadata service, which may hand out this machine's credentials, " +
				"unless a rule of yours blocks it, which Berth does not see; a worker of this user cannot block it: " + err.Error(),
			Next: "run the worker as root on the machine itself, or type: " + firewall.ByHand,
		}
	}
}

// checkProxy looks at --trial-proxy. Errors: invalid.
func checkProxy(proxy string) error {
	if proxy == "" {
		return nil
	}

	switch u, err := url.Parse(proxy); {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return berth.Errorf(berth.KindInvalid, "--trial-proxy must be a URL such as http://10.0.0.1:3128")
	case u.User != nil:
		return berth.Errorf(berth.KindInvalid, "--trial-proxy must have no name and password: every trial could read them; let the proxy know this machine by its address")
	case strings.EqualFold(u.Hostname(), "localhost"), net.ParseIP(u.Hostname()).IsLoopback():
		return berth.Errorf(berth.KindInvalid, "--trial-proxy %q is on loopback, and a trial's own loopback is not the machine's: name an address of the machine", proxy)
	default:
		return nil
	}
}
