// Package parallelism decides how many attempts share a GPU, and how, by what was
// measured: how fast attempts got on in each company. It is pure.
//
// The placer starts from a rule (internal/packing: cores, memory and activity). The
// rule knows what an attempt takes when it has the GPU for itself, not what company
// costs it. That is learned while a sweep runs:
//
//   - Each attempt that ends says how long it took and how many shared its GPU in the
//     mean over its run: a berth.Pace for its shape, mix and company.
//   - With enough work waiting, more at once are tried, a third to a half more each
//     time, as long as that makes trials end faster by gainful. Then fewer, which keep
//     memory and cores free for others.
//   - Where something in the mix fills a large part of the GPU, the other way to share
//     it is tried once, after the attempts there have ended.
//   - Of what is about as fast as the best, the fewest at once are chosen.
//
// A mix is the set of shapes on a GPU, as two that get on well may both suffer beside
// a third. Nothing is tried for a sweep that is too short to gain by it.
package parallelism
