// Package temporal is the server's side of Temporal: it starts and steers the
// workflows, and runs the loops that keep the database and Temporal in step.
//
//   - Relay tells Temporal what the database decided.
//   - Identity holds a namespace to one installation.
//   - Orphans ends sweeps whose workflow no longer exists.
//
// Package workflows has the workflows' own code.
package temporal
