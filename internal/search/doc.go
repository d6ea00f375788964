// Package search decides which assignment each trial of a sweep tries.
//
//	search.go   Searcher: New, Next and why it ends; Size
//	verdict.go  why an assignment may not be tried; Complete, Sample
//	space.go    the parameters in an order in which each can be computed
//	walk.go     every assignment of a finite space by its number
//	grid.go     in order; random.go by lot
//	enqueue.go  what the user wants tried first
//	shape.go    which values decide memory
//
// A suggestion is a pure function of the spec, the trial's number and, as far as
// berth.Tried tells, the earlier trials: a grid goes on behind the last one, and a
// random search asks which of its draws were tried. So a search needs no state of
// its own: it continues after a restart from the trials that are stored, and it
// does not matter in what batches it is asked.
package search
