// Package metrics finds metrics in what a job prints or writes, and keeps what of them counts
// for its trial. A line is read by one grammar (Reader); of several sources one is chosen,
// once (Series).
package metrics
