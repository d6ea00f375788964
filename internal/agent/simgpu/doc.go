// Package simgpu simulates GPUs for a worker of a machine without any: real
// containers whose programs talk to a simulated GPU instead of NVIDIA's driver. The
// rest of Berth is then real (placement, probes, limits, sharing, recovery); the
// memory of a GPU and the duration of a step are invented, by a model fitted to one
// H200.
//
//	spec.go    "2x24GiB,1x80GiB"
//	card.go    one GPU, and each program's part of its memory
//	step.go    when a step is done, and how busy the GPU is
//	faults.go  faults: of the GPU, and of one program for others
//	mps.go     NVIDIA's Multi-Process Service, without daemons
//	driver.go  the GPUs as a gpu.Driver
//	server.go  the sockets by which programs, and testers, reach a GPU
//
// A program in a container reaches its GPU by a socket in a directory that is
// mounted there; internal/agent/simgpu/wire is their protocol. The GPU knows the program's
// PID on the machine from the connection, so that a container's memory is found as
// on a real GPU.
package simgpu
