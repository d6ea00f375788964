// Package advice says what limits a program on its GPU, and what a person can do about
// it, from what was measured of its shape on one class of device. It is pure.
//
// A label needs activity: a GPU without GPM gets none. Each piece of advice names the
// figures that it rests on; without figures there is none. What was measured elsewhere
// to weigh an advice (a time, a size) names the card.
//
// A footprint has activity as the mean over whole runs, start and end included, as that
// is what others can use of the GPU. A label is about the program: where attempts say for
// which part of their runs they held the GPU, the mean is taken over that part.
package advice
