package docker

import (
	"context"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"

	"github.com/berthml/berth"
)

// The networks of trials that have one: Docker's own, on which every container is that
// names no other, and one that all Berths of a daemon share. It has no other containers
// than trials, so that a firewall can tell these by the bridge that they come from.
const (
	DefaultNetwork = "bridge"
	TrialNetwork   = "berth-trials"
)

const (
	// trialBridge is the bridge of TrialNetwork. Its fixed name is one that a person can
	// type, and of two workers that make the network at once the second fails.
	trialBridge = "berth0"

	labelNetwork = "berth.network"
	driverBridge = "bridge"

	optionBridge = "com.docker.network.bridge.name"
	optionICC    = "com.docker.network.bridge.enable_icc"
	optionMTU    = "com.docker.network.driver.mtu"
)

// Network is a network of Docker's driver "bridge".
type Network struct {
	Name     string
	Bridge   string   // its network interface
	Gateways []string // the addresses of that; empty = it has none
	IPv6     bool     // containers have IPv6, too

	mtu string // as it was made with; empty = Docker's default
}

// Network returns a network. Errors: not_found; invalid when it is of another driver;
// unavailable.
func (d *Docker) Network(ctx context.Context, name string) (Network, error) {
	got, err := d.short.NetworkInspect(ctx, name, network.InspectOptions{})
	if err != nil {
		return Network{}, d.translate(ctx, err, "inspecting Docker's network %q", name)
	}

	if got.Driver != driverBridge {
		return Network{}, berth.Errorf(berth.KindInvalid,
			"Docker's network %q is of the driver %q, and Berth needs a bridge: remove it (docker network rm %s)", name, got.Driver, name)
	}

	n := Network{Name: got.Name, Bridge: got.Options[optionBridge], IPv6: got.EnableIPv6, mtu: got.Options[optionMTU]}
	if n.Bridge == "" {
		n.Bridge = "br-" + got.ID[:min(len(got.ID), 12)] // as Docker names it
	}

	for _, pool := range got.IPAM.Config {
		if pool.Gateway != "" {
			n.Gateways = append(n.Gateways, pool.Gateway)
		}
	}

	return n, nil
}

// EnsureTrialNetwork returns the network of trials, which is made where there is none: with
// a subnet of Docker's choice, without traffic between containers. One that an administrator
// made is taken as it is. Errors: as Network; internal when Docker cannot make it.
func (d *Docker) EnsureTrialNetwork(ctx context.Context) (Network, error) {
	found, err := d.Network(ctx, TrialNetwork)
	if berth.KindOf(err) != berth.KindNotFound {
		return found, err
	}

	options := map[string]string{optionBridge: trialBridge, optionICC: "false"}

	// Docker's setting for networks narrower than 1500 bytes is one of its default network.
	usual, err := d.Network(ctx, DefaultNetwork)
	if err == nil && usual.mtu != "" {
		options[optionMTU] = usual.mtu
	} else if err != nil && berth.KindOf(err) != berth.KindNotFound { // a daemon may have none
		return Network{}, err
	}

	bounded, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()

	_, err = d.long.NetworkCreate(bounded, TrialNetwork, network.CreateOptions{
		Driver: driverBridge, Options: options, Labels: map[string]string{labelNetwork: "trials"},
	})
	if err == nil {
		return d.Network(ctx, TrialNetwork)
	}

	// Another worker may be making it just now: it has the name, or only the bridge yet.
	for deadline := time.Now().Add(d.config.APITimeout); ; {
		if found, again := d.Network(ctx, TrialNetwork); again == nil {
			return found, nil
		}

		if taken := cerrdefs.IsConflict(err) || strings.Contains(err.Error(), "same bridge name"); !taken || time.Now().After(deadline) {
			return Network{}, d.translate(ctx, err, "making Docker's network %q", TrialNetwork)
		}

		if err := pause(ctx); err != nil {
			return Network{}, err
		}
	}
}

// network says on which network a launch's container is, and is asked right before each
// start. Errors: a *berth.StartError of kind infra when this host may give it none;
// unavailable; ctx's cause.
func (d *Docker) network(ctx context.Context, l berth.Launch) (string, error) {
	switch {
	case !l.Network:
		return "none", nil
	case d.config.Network == nil:
		return DefaultNetwork, nil
	}

	name, err := d.config.Network(ctx)
	if err == nil || ctx.Err() != nil || berth.KindOf(err) == berth.KindUnavailable {
		return name, err
	}

	return "", &berth.StartError{Kind: berth.FailureInfra, Err: berth.Errorf(berth.KindUnavailable, "giving the container a network: %w", err)}
}

// startCreated starts a container that was only created. One with another network than
// the host gives now has never run, and is made anew.
func (d *Docker) startCreated(ctx context.Context, found berth.Container, l berth.Launch) (berth.Container, error) {
	if !l.Network {
		return d.start(ctx, found, l)
	}

	name, err := d.network(ctx, l)
	if err != nil {
		return berth.Container{}, err
	}

	got, err := d.short.ContainerInspect(ctx, found.ID)
	if err != nil {
		return berth.Container{}, d.translate(ctx, err, "inspecting container %q", found.ID)
	}

	if string(got.HostConfig.NetworkMode) == name {
		return d.start(ctx, found, l)
	}

	if err := d.Remove(ctx, found.ID); err != nil {
		return berth.Container{}, err
	}

	made, err := d.create(ctx, l)
	if err != nil {
		return berth.Container{}, err
	}

	return d.start(ctx, made, l)
}
