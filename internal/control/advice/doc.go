// Package advice names the bottleneck of a program on its GPU, and the user's options,
// from the measurements of its shape on one class of device. It is pure.
//
// A label needs activity: a GPU without GPM gets none. Each piece of advice names its
// figures; without figures there is none. A figure measured elsewhere to weigh an
// advice (a time, a size) names the GPU.
//
// A footprint's activity is the mean over whole runs, start and end included, because
// others can use the rest of the GPU. A label is about the program: if attempts report
// for which part of their runs they held the GPU, the mean is over that part.
package advice
