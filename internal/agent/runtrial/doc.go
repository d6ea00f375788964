// Package runtrial is the host-side life of one attempt: prepare directories,
// start or adopt the container, follow its metrics, log and memory, stop it
// when told, collect its result and commit it.
//
//	prepare ─► ensure (start | adopt | collect) ─► watch ─► exit ─► classify ─► verdict ─► commit ─► remove
//	                                                │                             │
//	                     stop (canceled, timed out) ┤                             └ a file; another Run commits it
//	                                   detach ◄─────┘  container goes on; another Run adopts it
//
// It may die at any point: everything it needs to go on is in the container's
// name and labels, the attempt's directory, and the database. The verdict, with
// what of the log and the metrics is not in the database yet, is a file until
// it is committed (rule R6), and the container is removed only after that (rule
// R2). Of one attempt there is one Run at a time in a process: the newest.
package runtrial
