// Package preview predicts a sweep before its launch: how many trials in which
// memory shapes, what each would reserve and why, how many run at once on which
// machine and which limit binds there, in how many waves, how long.
//
//	preview.go   Enumerate and For: spec, hosts and footprints in, Preview out
//	fit.go       how many at once, and which dimension is used up first
//	warnings.go  allowed settings that are probably a mistake here
//
// It is pure: the caller brings the hosts and the footprints.
package preview
