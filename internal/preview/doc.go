// Package preview says what a sweep would do before it is launched: how many
// trials in which memory shapes, what each would reserve and why, how many run
// at once on which machine and what binds there, in how many waves, how long.
//
//	preview.go   Enumerate and For: spec, hosts and footprints in, Preview out
//	fit.go       how many at once, and which dimension is used up first
//	warnings.go  what is allowed but probably not meant here
//
// It is pure: the caller brings the hosts and the footprints.
package preview
