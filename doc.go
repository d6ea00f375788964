// Package berth is the domain of Berth: the words every other package speaks.
//
// Berth runs hyperparameter sweeps of small training jobs in containers,
// packed as densely on each host and GPU as their measured memory allows.
//
//	Sweep        one search: image, command, space, objective, limits        sweep.go, spec.go
//	Parameter    a named, typed dimension of the space                       parameter.go
//	Trial        one assignment of values, numbered from 1 in its sweep      trial.go
//	Attempt      one container launch of a trial                             attempt.go
//	Shape        the values that decide memory; its key is a SHA-256         footprint.go
//	Footprint    the measured need of a shape                                footprint.go
//	Host         a machine with a worker                                     host.go
//	Device       one GPU of a host; DeviceClass its kind                     device.go
//	Demand       the need of an attempt on a host and device                 demand.go
//	Lease        the fenced, time-bound claim that holds a reservation       lease.go
//	Placement    where an attempt goes, or Rejections that say why not       placement.go
//	FailureKind  how an attempt ended, and what happens next                 failure.go
//	Error        one closed set of kinds, mapped once per transport          error.go
//
// The package imports the standard library only and has no clock, no
// goroutine and no input or output. Bytes are int64 and end in Bytes; CPU is
// counted in thousandths of a core and ends in CPUMilli; times are UTC.
package berth
