// Package sampling keeps what is measured of a running attempt: which part of its time was
// measured, what it held of its host's and its GPU's memory over time and by phase, and what
// of a GPU's activity is its own where several attempts share the GPU.
package sampling
