// Package simgpu simulates GPUs for a worker of a machine that has none: real
// containers whose programs talk to a card of ours instead of NVIDIA's driver. All
// that Berth does is then real (placement, probes, limits, sharing, recovery); the
// time that a step takes and the memory of the card are invented, by a model fitted
// to one H200.
//
//	model.go    how fast jobs get on that share a card (pure)
//	spec.go     "2x24GiB,1x80GiB"
package simgpu
