// Package metrictext reads metrics from text: from the lines that a training program
// prints, and from the records that it writes to a file. Of each metric it says at which
// step it was reported, of which data it is, and how much its name is like the
// objective's. It reads no files and no clock.
package metrictext
