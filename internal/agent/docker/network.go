package docker

import (
	"context"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
)

// trialNetwork is the network of trials that have one. All Berths of a daemon share it.
// Unlike Docker's default network it keeps its containers from each other.
const trialNetwork = "berth-trials"

// trialBridge is its network interface, for rules of a firewall.
const trialBridge = "berth0"

const (
	optionBridge = "com.docker.network.bridge.name"
	optionICC    = "com.docker.network.bridge.enable_icc"
	optionMTU    = "com.docker.network.driver.mtu"
)

// ensureTrialNetwork makes trialNetwork where it is missing. It keeps a network that an
// administrator made. Errors: as translate.
func (d *Docker) ensureTrialNetwork(ctx context.Context) error {
	d.makingNetwork.Lock()
	defer d.makingNetwork.Unlock()

	_, err := d.short.NetworkInspect(ctx, trialNetwork, network.InspectOptions{})
	if !cerrdefs.IsNotFound(err) {
		return d.translate(ctx, err, "inspecting Docker's network %q", trialNetwork)
	}

	options := map[string]string{optionBridge: trialBridge, optionICC: "false"}

	// Docker's setting for networks narrower than 1,500 bytes holds for its default network only.
	usual, err := d.short.NetworkInspect(ctx, network.NetworkBridge, network.InspectOptions{})
	if mtu := usual.Options[optionMTU]; err == nil && mtu != "" {
		options[optionMTU] = mtu
	} else if err != nil && !cerrdefs.IsNotFound(err) { // a daemon may have none
		return d.translate(ctx, err, "inspecting Docker's network %q", network.NetworkBridge)
	}

	_, err = d.short.NetworkCreate(ctx, trialNetwork, network.CreateOptions{Driver: network.NetworkBridge, Options: options})
	if err != nil {
		if _, again := d.short.NetworkInspect(ctx, trialNetwork, network.InspectOptions{}); again == nil { // another worker has just made it
			return nil
		}
	}

	return d.translate(ctx, err, "making Docker's network %q", trialNetwork)
}
