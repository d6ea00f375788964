// Package temporal is the server's side of Temporal: it starts and steers the
// workflows, and runs the loops that keep the database and Temporal in step.
//
//   - Relay tells Temporal what the database decided.
//   - Identity holds a namespace to one installation.
//   - Orphans ends sweeps whose workflow is not there any more.
//
// What runs inside workflows is package workflows.
package temporal
