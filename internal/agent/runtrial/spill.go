package runtrial

import (
	"cmp"
	"maps"
	"math"
	"strconv"

	"github.com/berthml/berth"
)

// fractionVariables bound JAX's pool as a part of the GPU's memory. JAX refuses to start
// where both are set.
var fractionVariables = []string{"XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"}

// spill lets the program use unified memory: as much as the GPU and what of the host's
// memory is reserved for it hold together. What the user set wins. TensorFlow has no
// variable for its pool's bound: its program says so itself (docs/packing.md).
func (r *run) spill(env, user map[string]string) {
	demand := r.who.Attempt.Demand
	if demand.SpillBytes == 0 {
		return
	}

	own := map[string]string{"TF_FORCE_UNIFIED_MEMORY": "1"}

	if user[fractionVariables[0]] == "" && user[fractionVariables[1]] == "" {
		card := cmp.Or(r.who.CardBytes, demand.DeviceBytes)
		fraction := math.Floor(float64(demand.DeviceBytes+demand.SpillBytes)/float64(card)*100) / 100 // no more than is reserved
		own[fractionVariables[0]] = strconv.FormatFloat(fraction, 'f', 2, 64)
	}

	maps.Copy(own, user)
	maps.Copy(env, own)
}

// spillNote says of an attempt that it ran in unified memory; empty = it did not.
func spillNote(d berth.Demand) string {
	if d.SpillBytes == 0 {
		return ""
	}

	return "it ran in unified memory, alone on its GPU, with " + berth.BytesText(d.SpillBytes) + " of the host's memory for what the GPU's " +
		berth.BytesText(d.DeviceBytes) + " do not hold"
}
