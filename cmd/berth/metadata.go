package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
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
	// possible says why Berth cannot close the service here. It changes nothing.
	possible(ctx context.Context) error
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

	mu   sync.Mutex
	held bool // it was closed once: from then on an error is no reason to leave it open
	open bool // auto, and it cannot be closed here, which was said
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
		if changed {
			g.log.Info("rejects what trials with a network send to a cloud's metadata service", "network", network.Name, "bridge", network.Bridge,
				"chain", firewall.Chain, "again", g.held, "undo", "docs/production.md, Network")
		}

		g.held = true

		return network.Name, nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case berth.KindOf(err) == berth.KindUnavailable: // Docker is away, or another program changes the rules: nothing is known
		return "", err
	case g.mode == blockAuto && !g.held:
		g.open = true
		g.log.Warn("trials with a network reach a cloud's metadata service from this machine, which may hand out its credentials: this worker cannot block it",
			"why", err, "by_hand", firewall.ByHand, "see", "docs/production.md, Network")

		return docker.DefaultNetwork, nil
	default:
		return "", fmt.Errorf("a cloud's metadata service cannot be kept from trials (--block-metadata=%s): %w", g.mode, err)
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

		g.mu.Lock()
		held := g.held
		g.mu.Unlock()

		if !held { // no trial has asked for a network
			continue
		}

		switch _, err := g.network(ctx); {
		case err == nil:
			said = ""
		case ctx.Err() == nil && err.Error() != said:
			said = err.Error()
			g.log.Error("trials with a network that run may reach a cloud's metadata service", "error", err)
		}
	}
}

func (g *metadataGuard) close(ctx context.Context) (docker.Network, bool, error) {
	if !g.held {
		if err := g.wall.possible(ctx); err != nil {
			return docker.Network{}, false, err
		}
	}

	return g.wall.close(ctx)
}

// dockerWall is the wall of this machine.
type dockerWall struct {
	docker   *docker.Docker
	firewall *firewall.Firewall
}

// possible looks whether iptables may be used, and whether Docker's bridges are here.
func (w dockerWall) possible(ctx context.Context) error {
	if err := w.firewall.Check(ctx, false); err != nil {
		return err
	}

	usual, err := w.docker.Network(ctx, docker.DefaultNetwork)
	if berth.KindOf(err) == berth.KindNotFound { // a daemon may have none; then the network of trials tells
		return nil
	}

	if err != nil {
		return err
	}

	return firewall.HasBridge(usual.Bridge, usual.Gateways)
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
func (m *machine) guardMetadata(ctx context.Context, d *docker.Docker, log *slog.Logger) (*metadataGuard, error) {
	guard := &metadataGuard{mode: cmp.Or(m.blockMetadata, blockAuto), wall: dockerWall{d, firewall.New()}, log: log}
	if m.blockMetadata != blockRequire {
		return guard, nil
	}

	_, err := guard.network(ctx)
	if err != nil {
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
	err := w.possible(ctx)

	switch {
	case err == nil:
		return fine("network", "a worker of this user can keep trials with a network from a cloud's metadata service, and does unless --block-metadata is off")
	case !inCloud(ctx):
		return fine("network", "no cloud's metadata service answers here; a worker of this user could not keep trials with a network from one: "+err.Error())
	default:
		return berth.Finding{
			OK: true, Warn: true, Part: "network",
			What: "trials with a network reach the cloud's metadata service, which may hand out this machine's credentials; a worker of this user cannot block it: " + err.Error(),
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
	default:
		return nil
	}
}
