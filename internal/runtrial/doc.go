// Package runtrial is the host-side life of one attempt: prepare directories,
// start or adopt the container, follow its metrics, log and memory, stop it
// when told, collect its result and commit it.
//
//	prepare ─► ensure (start | adopt | collect) ─► watch ─► exit ─► classify ─► commit ─► remove
//	                                                │
//	                     stop (canceled, timed out) ┤
//	                                   detach ◄─────┘  container goes on; another Run adopts it
//
// It may die at any point: everything it needs to go on is in the container's
// name and labels, the attempt's directory, and the database. Results are
// files until they are committed (rule R6), and the container is removed only
// after that (rule R2).
package runtrial
