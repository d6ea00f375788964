// Package fake holds in-memory stand-ins for the two things that a worker talks
// to: the host's Docker and the ledger. They keep every promise of the real
// ones, which one conformance suite each says of both (internal/testkit/runtimetest,
// internal/testkit/ledgertest), and no more. Tests that need a thousand hosts, a reboot
// or a clock that jumps use them; tests that need one use the real thing.
//
// Both tell an observer of every change, so that a test can look at its
// invariants at each step.
package fake
