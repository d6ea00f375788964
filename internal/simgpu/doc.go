// Package simgpu simulates GPUs for a worker of a machine that has none: real
// containers whose programs talk to a card of ours instead of NVIDIA's driver. All
// that Berth does is then real (placement, probes, limits, sharing, recovery); the
// memory of a card and the time that a step takes are invented, by a model fitted to
// one H200.
//
//	spec.go    "2x24GiB,1x80GiB"
//	model.go   how fast jobs get on that share a card (pure)
//	card.go    one card: who holds how much of its memory
//	step.go    when a step is done, and how busy the card was
//	faults.go  what goes wrong: errors of the card, and of one program for others
//	mps.go     the cards' daemons of NVIDIA's Multi-Process Service
//	driver.go  the cards as a gpu.Driver
//	server.go  the sockets by which programs, and people who test, reach a card
//
// A program in a container reaches its card by a socket in a directory that is
// mounted there; internal/simgpu/wire is what they say to each other. The card knows
// the program's PID on the machine from the connection, so that a container's memory
// is found as on a real card.
package simgpu
