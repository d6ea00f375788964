// Package forecast says when attempts that wait are expected to start: it replays the
// placer's own decision (packing.Decide) while what runs comes to its end.
//
//	forecast.go  Starts: two replays in, a range or a reason for each request out
//	replay.go    one replay: decide, move on to the next ends, decide again
//	booking.go   what placements and ends change of hosts
//
// One replay takes each attempt for as short as such attempts are, the other for as
// long; they are apart by what quartiles of measured times are (berth.TrialTimes.Each and
// Left).
// The long one also knows that sweeps ask for more trials as theirs end. It is pure: the
// caller brings the ledger and the times.
package forecast
