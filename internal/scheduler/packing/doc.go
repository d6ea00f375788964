// Package packing decides which attempt runs where, and why the others wait. It
// is pure: the same hosts and requests give the same decisions in any order of
// input.
//
// Hard constraints, each a Dimension of a Rejection: the host takes attempts;
// reserved + demand ≤ total − headroom in memory, CPU and device memory;
// memory measured free now covers it too; limits on attempts and contexts;
// exclusive attempts are alone. A sweep's own limits come first.
//
// Order: requests that waited longer than DrainAfter, and not behind their
// sweep's own limit, oldest first; then the longest expected run weighted by its
// dominant share (longest processing time first), so that long runs do not start
// last, and unmeasured shapes before all of them; then the oldest. Smaller ones
// fill the gaps behind requests that do not fit (backfill).
//
// decide.go is the round, fit.go the hard constraints, ledger.go the choice among hosts and
// GPUs that fit, which rank.go compares.
//
// The need of an attempt depends on the class of device: a request has a demand
// for each class that it can use, and fits where its demand for that class
// fits.
//
// Nothing starves: for a request that waited for DrainAfter the placer keeps a
// host free, or one of its GPUs where the host has room beside it, the same in
// every round, until the attempts on it have ended. It keeps it free in turns:
// for an hour, then open to all for an hour, then for two, up to a day, so that
// the host is not idle for the whole of a long run; each turn is for another host
// or GPU. It keeps no host whose memory programs outside Berth hold, and at most
// a quarter of the hosts, or of the GPUs, at once.
//
// A GPU that is advised to be shared in another mode drains: it takes no request that
// can be there in that mode until it is empty (advised.go).
//
// A host that fails to start containers wins nothing by being empty: hosts that
// are healthy come first, and for a retry those where the trial has not failed.
// A host whose worker is silent may be gone and comes last.
// A cordoned host takes one test attempt when it is due, and nothing else. A
// host that lacks an image is cordoned for the sweeps that need it alone, and a
// trial that found it missing goes elsewhere, if another host may have it.
//
// What a lost host holds is left out of a sweep's limit for the sake of its
// retries: no sibling takes the places of these.
package packing
