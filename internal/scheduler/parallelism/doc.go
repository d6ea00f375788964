// Package parallelism decides how many attempts share a GPU, and in which mode, by
// measured paces: how fast attempts ran in each company (mode and number). It is pure.
//
// The placer starts from a rule (internal/scheduler/packing: cores, memory and activity). The
// rule knows the need of an attempt alone on the GPU, not how much neighbours slow it.
// Berth learns that while a sweep runs:
//
//   - Each attempt that ends gives its duration and the mean number of attempts on its
//     GPU: a berth.Pace for its shape, mix and company.
//   - With enough work waiting, Berth tries more at once, a third to a half more each
//     time, as long as that makes trials end faster by gainful. Then fewer, which keep
//     memory and cores free for others.
//   - Where a shape in the mix fills a large part of the GPU, Berth tries the other
//     mode once, after the attempts there have ended.
//   - Of the companies about as fast as the best, it chooses the one with the fewest.
//
// A mix is the set of shapes on a GPU, because two that run well together may both
// suffer beside a third. Berth tries nothing for a sweep that is too short to gain by
// it.
package parallelism
