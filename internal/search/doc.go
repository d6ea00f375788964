// Package search decides which assignment each trial of a sweep tries.
//
//	search.go   Searcher: New, Next and its end; Size
//	sample.go   Complete, Sample: why an assignment may not be tried
//	space.go    the parameters in an order in which each can be computed
//	walk.go     every assignment of a finite space by its number
//	grid.go     in order; random.go by lot; sobol.go evenly
//	learn.go    from results: which model suggests; past.go what models know
//	tpe.go      by Parzen estimators (parzen.go); gp.go by a Gaussian process (process.go)
//	enqueue.go  assignments that the user wants first
//	shape.go    values that decide memory
//
// A suggestion is a pure function of the spec, the trial's number and the earlier
// trials in berth.Tried: a grid goes on behind the last one, a random search
// asks which of its draws were tried, and a model reads all results. So a search has no
// state: it continues after a restart from the stored trials, in batches of any size.
package search
